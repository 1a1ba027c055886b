package emulator

import (
	"os/exec"
	"syscall"
)

// apart makes the system kill the emulator when this process dies without cleaning up. It
// also protects the emulator from a terminal's interrupt, because its starter ends it,
// last.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
