//go:build unix && !linux

package pgserver

import "syscall"

// endWithParent can do nothing here: the next Start finds the server and stops it.
func endWithParent(*syscall.SysProcAttr) {}
