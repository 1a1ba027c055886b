package emulator

import (
	"os/exec"
	"syscall"
)

// apart has the emulator killed when this process dies without cleaning up, and
// keeps a terminal's interrupt from it: who started it ends it, last.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
