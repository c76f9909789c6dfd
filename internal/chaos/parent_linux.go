//go:build chaos

package chaos

import "syscall"

// endWithParent has the kernel kill a replica when this process dies.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
