package runtimeapi

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel end the function when this process dies. A
// terminal's interrupt does not reach it: its event is finished first.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
