package child

import "syscall"

// dieWithParent asks the kernel to send signal to the child when the thread that forks it dies.
func dieWithParent(attr *syscall.SysProcAttr, signal syscall.Signal) { attr.Pdeathsig = signal }
