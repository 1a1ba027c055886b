package cli

import (
	"os/exec"
	"runtime"
)

// SystemBrowser returns a function that opens an address in the browser of the user; nil if
// there is no screen to show it.
func SystemBrowser(getenv func(string) string) func(address string) error {
	name, args := "xdg-open", []string(nil)
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler"}
	default:
		if getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "" || getenv("SSH_CONNECTION") != "" {
			return nil
		}
	}
	program, err := exec.LookPath(name)
	if err != nil {
		return nil
	}
	return func(address string) error {
		cmd := exec.Command(program, append(args, address)...)
		if err := cmd.Start(); err != nil {
			return err
		}
		go cmd.Wait() //nolint:errcheck // the browser is not ours
		return nil
	}
}
