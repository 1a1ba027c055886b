package runtimeapi

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel end the function when this process dies. A terminal's
// interrupt does not reach it: it finishes its event first.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
