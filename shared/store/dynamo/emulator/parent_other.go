//go:build !linux

package emulator

import "os/exec"

// apart does nothing: the emulator is a Linux program.
func apart(*exec.Cmd) {}
