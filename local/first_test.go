package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// opened opens a gateway as the command does; what is opened is closed with the
// test.
func opened(t *testing.T, dir string) (*gateway, error) {
	t.Helper()
	o, err := parse([]string{"-addr", "127.0.0.1:0", "-data", dir})
	if err != nil {
		t.Fatal(err)
	}
	return open(context.Background(), o)
}

// In a row: it sets the environment.
func TestFirstKeysMustBeUsable(t *testing.T) {
	for name, keys := range map[string][2]string{
		"the same twice":  {"one-key", "one-key"},
		"a space":         {"one key", ""},
		"an end of line":  {"", "one-key\n"},
		"a quote":         {"it's", ""},
		"not ASCII":       {"clé", ""},
		"a control":       {"", "a\x7fb"},
		"blank":           {" ", ""},
		"a tab behind it": {"key\t", ""},
	} {
		t.Setenv("GATEWAY_ADMIN_KEY", keys[0])
		t.Setenv("GATEWAY_WORKSPACE_KEY", keys[1])
		g, err := opened(t, t.TempDir())
		if err == nil {
			_ = g.close()
			t.Errorf("%s: taken", name)
		} else if !strings.Contains(err.Error(), "GATEWAY_") || keys[0] != "" && strings.Contains(err.Error(), keys[0]+" ") && keys[0] != " " {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Keys that the environment gives are printed at no start, others once.
// In a row: it sets the environment.
func TestOnlyKeysThatWereMadeArePrinted(t *testing.T) {
	for _, keys := range [][2]string{{}, {"given-admin", ""}, {"", "given-workspace"}, {"given-admin", "given-workspace"}} {
		t.Setenv("GATEWAY_ADMIN_KEY", keys[0])
		t.Setenv("GATEWAY_WORKSPACE_KEY", keys[1])
		dir := t.TempDir()
		for i, start := range []string{"first", "later"} {
			g, err := opened(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			g.announce(&out)
			if strings.Contains(out.String(), "given-") {
				t.Errorf("%v, %s start: a key of the environment is printed:\n%s", keys, start, out.String())
			}
			if i == 0 {
				for j, key := range []string{g.made.AdminKey, g.made.WorkspaceKey} {
					if made := keys[j] == ""; strings.Contains(out.String(), key) != made {
						t.Errorf("%v: key %d, made here: %v:\n%s", keys, j, made, out.String())
					}
				}
			}
			ctx, stop := context.WithCancel(context.Background())
			stop()
			if err := g.serve(ctx, io.Discard); err != nil {
				t.Error(err)
			}
		}
	}
}

// A later start says which keys of the environment the stores do not have, and how a lost admin
// key is replaced. In a row: it sets the environment.
func TestLaterStartsNameTheKeysThatAreIgnored(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ admin, workspace, want string }{
		{"first-admin", "first-workspace", ""},
		{"first-admin", "first-workspace", ""},
		{"", "", ""},
		{"other-admin", "first-workspace", "GATEWAY_ADMIN_KEY: ignored"},
		{"other-admin", "other-workspace", "GATEWAY_ADMIN_KEY, GATEWAY_WORKSPACE_KEY: ignored"},
	} {
		t.Setenv("GATEWAY_ADMIN_KEY", c.admin)
		t.Setenv("GATEWAY_WORKSPACE_KEY", c.workspace)
		g, err := opened(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		g.announce(&out)
		if got := out.String(); strings.Contains(got, "ignored") != (c.want != "") || !strings.Contains(got, c.want) || strings.Contains(got, "recover -data "+dir) != (c.want != "") || strings.Contains(got, "other-") {
			t.Errorf("%+v: %s", c, got)
		}
		ctx, stop := context.WithCancel(context.Background())
		stop()
		if err := g.serve(ctx, io.Discard); err != nil {
			t.Error(err)
		}
	}
}

// What is printed can be pasted into a shell: on the first start, and on a later
// one with the key in the environment. In a row: it sets it.
func TestThePrintedCommandWorks(t *testing.T) {
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s: not allowed to be missing in CI", tool)
			}
			t.Skipf("SKIPPED: %s is not installed", tool)
		}
	}
	t.Setenv("GATEWAY_ADMIN_KEY", "")
	t.Setenv("GATEWAY_WORKSPACE_KEY", "")
	dir := t.TempDir()
	for _, start := range []string{"first", "later"} {
		g, err := opened(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		if g.made != nil {
			t.Setenv("GATEWAY_WORKSPACE_KEY", g.made.WorkspaceKey)
		}
		var out strings.Builder
		g.announce(&out)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- g.serve(ctx, new(strings.Builder)) }()
		_, command, _ := strings.Cut(out.String(), "  curl ")
		command, _, _ = strings.Cut(command, "\n\n")
		answer, err := exec.Command("bash", "-c", "curl -sS --max-time 20 "+command).CombinedOutput()
		if err != nil || !strings.Contains(string(answer), `"chat.completion"`) {
			t.Errorf("%s start: %v %s\n%s", start, err, answer, out.String())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
