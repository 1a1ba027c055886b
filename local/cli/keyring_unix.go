//go:build !windows

package cli

import (
	"io/fs"
	"os/exec"
	"runtime"
)

// SystemKeyring returns the key store of the system; nil if there is none.
func SystemKeyring(getenv func(string) string) Keyring {
	if runtime.GOOS == "darwin" {
		if program, err := exec.LookPath("security"); err == nil {
			return keychain(program)
		}
		return nil
	}
	// Without a session bus the program has no service to talk to.
	if program, err := exec.LookPath("secret-tool"); err == nil && getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return secretService(program)
	}
	return nil
}

// private reports whether only the user may read a file.
func private(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }

func protect(raw []byte) ([]byte, error)   { return raw, nil }
func unprotect(raw []byte) ([]byte, error) { return raw, nil }
