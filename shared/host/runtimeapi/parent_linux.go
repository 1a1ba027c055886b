package runtimeapi

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel end the function when this process dies.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
