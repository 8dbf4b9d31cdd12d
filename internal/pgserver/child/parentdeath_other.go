//go:build unix && !linux

package child

import "syscall"

// dieWithParent has no counterpart outside Linux: there a killed parent leaves its children to be stopped by hand.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
