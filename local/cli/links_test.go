package cli

import (
	"os/exec"
	"strings"
	"testing"
)

// Verbs are clients: what serves, stores or relays is not linked into them, so nothing of it
// is initialized before a verb starts.
func TestVerbsLinkNoServer(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "gateway/local/cli").CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		for _, of := range []string{"gateway/functions", "gateway/shared/app", "gateway/shared/relay", "gateway/shared/host", "gateway/shared/store/sqlite", "gateway/local/mockprovider", "modernc.org/sqlite"} {
			if name == of || strings.HasPrefix(name, of+"/") {
				t.Errorf("the package links %s", name)
			}
		}
	}
}
