//go:build !linux

package cloud

import "os/exec"

func ownGroup(*exec.Cmd) {}
