// Package source finds the source tree from which programs are built when they are needed.
package source

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Root is the folder of the module in which this process was started.
func Root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	mod := strings.TrimSpace(string(out))
	if err != nil || mod == "" || mod == os.DevNull {
		return "", errors.New("-store aws builds programs: start it within the source tree, with the go command at hand")
	}
	return filepath.Dir(mod), nil
}
