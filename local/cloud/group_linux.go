package cloud

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a terminal's interrupt from a process: who started it ends it,
// when what is under way has been finished. It ends when this process dies.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
