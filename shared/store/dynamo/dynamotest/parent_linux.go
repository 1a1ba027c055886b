package dynamotest

import (
	"os/exec"
	"syscall"
)

// endWithParent has the emulator killed when the test process dies without
// cleaning up.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
