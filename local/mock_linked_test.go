package main

import (
	"os/exec"
	"strings"
	"testing"
)

// A build with the tag nomock has no code of the mock provider, and a build without it does.
func TestBuildsWithoutMockDoNotLinkIt(t *testing.T) {
	t.Parallel()
	for tags, want := range map[string]bool{"": true, "nomock": false} {
		out, err := exec.Command("go", "list", "-deps", "-tags", tags, "gateway/local").CombinedOutput()
		if err != nil {
			t.Fatalf("%v %s", err, out)
		}
		if got := strings.Contains("\n"+string(out), "\ngateway/local/mockprovider\n"); got != want {
			t.Errorf("tags %q: linked %v", tags, got)
		}
	}
}
