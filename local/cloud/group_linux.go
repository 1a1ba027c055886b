package cloud

import (
	"os/exec"
	"syscall"
)

// ownGroup protects a process from the interrupt that a terminal sends: the gateway ends
// the process itself, once the work under way is finished. The process also ends when the
// gateway dies.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
