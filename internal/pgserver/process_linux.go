package pgserver

import "syscall"

// endWithParent has the kernel send an immediate shutdown when the thread that starts the child
// ends. What was committed is recovered at the next start.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
