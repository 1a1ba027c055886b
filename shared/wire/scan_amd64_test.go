//go:build !purego

package wire

import (
	"os"
	"os/exec"
	"testing"
)

// End-to-end tests run once with the assembly switched off in this way.
func TestAssemblyIsSwitchedOffByTheEnvironment(t *testing.T) {
	t.Parallel()
	const off, child = "cpu.avx2=off", "WIRE_WITHOUT_ASSEMBLY"
	if os.Getenv(child) != "" {
		if hasSkipText {
			t.Error("it runs")
		}
		return
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	again := exec.Command(program, "-test.run=^"+t.Name()+"$")
	again.Env = append(os.Environ(), "GODEBUG="+off, child+"=yes")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("with GODEBUG=%s: %v\n%s", off, err, out)
	}
}
