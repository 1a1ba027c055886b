//go:build !linux

package dynamotest

import "os/exec"

// endWithParent does nothing: the emulator is a Linux program.
func endWithParent(*exec.Cmd) {}
