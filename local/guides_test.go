package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The fenced sh blocks of each guide work as they are written, in order, against a new gateway.
// Commands that need an AWS account or an identity provider are fenced as console.
func TestGuidesWorkAsWritten(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("../functions/docs/guides/*.md")
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		script, blocks := shellBlocks(t, string(raw))
		if blocks == 0 {
			continue
		}
		tested += blocks
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			r := start(t)
			cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "GATEWAY_URL="+strings.TrimSuffix(r.base, "/v1"), "GATEWAY_ADMIN_KEY="+adminKey, "GATEWAY_WORKSPACE_KEY="+workspaceKey)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if n := strings.Count(string(out), `"chat.completion"`); filepath.Base(name) == "quickstart.md" && n != 2 {
				t.Errorf("%d completions:\n%s", n, out)
			}
		})
	}
	if tested < 10 {
		t.Errorf("%d blocks", tested)
	}
}

// shellBlocks returns the sh blocks of a guide as one script. The gateway of the test runs
// already, at an address of its own.
func shellBlocks(t *testing.T, guide string) (script string, blocks int) {
	t.Helper()
	script = "set -euo pipefail\n"
	for _, block := range strings.Split(guide, "\n```sh\n")[1:] {
		block, _, closed := strings.Cut(block, "\n```")
		if !closed {
			t.Fatal("a block does not end")
		}
		script += strings.ReplaceAll(block, "go run ./local &", "") + "\necho\n"
		blocks++
	}
	return script, blocks
}
