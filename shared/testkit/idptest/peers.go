package idptest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// RunClient runs a program from the folder signin of clients against a gateway. The program
// finds the address and the key in GATEWAY_URL and GATEWAY_ADMIN_KEY.
func RunClient(t *testing.T, clients, file string, env ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-force-exit", "--test-reporter=tap", file)
	cmd.Dir = filepath.Join(clients, "signin")
	cmd.Env = append(os.Environ(), append(env, "TMPDIR="+t.TempDir())...)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("\n# fail 0\n")) || bytes.Contains(out, []byte("\n# pass 0\n")) || !bytes.Contains(out, []byte("\n# skipped 0\n")) {
		t.Errorf("not all tests ran and passed: %v\n%s", err, out)
	}
}

// RequireClients skips a test when npm packages of clients are missing; when CI is set, the test
// fails instead.
func RequireClients(t *testing.T, clients string, names ...string) {
	t.Helper()
	lacking := ""
	if _, err := exec.LookPath("node"); err != nil {
		lacking = "node is not installed"
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(clients, "node_modules", filepath.FromSlash(name), "package.json")); err != nil {
			lacking = "the npm packages are not installed: npm ci --prefix scripts/clients"
		}
	}
	switch {
	case testing.Short():
		t.Skip("SKIPPED: runs programs of node, which -short leaves out")
	case lacking != "" && os.Getenv("CI") != "":
		t.Fatalf("%s: not allowed to be missing in CI", lacking)
	case lacking != "":
		t.Skipf("SKIPPED: %s", lacking)
	}
}

// WithBrowser is RequireClients for tests that drive Chromium.
func WithBrowser(t *testing.T, clients string, names ...string) {
	t.Helper()
	RequireClients(t, clients, append(names, "puppeteer-core", "@sparticuz/chromium")...)
	if runtime.GOARCH != "amd64" || runtime.GOOS != "linux" {
		t.Skip("SKIPPED: the package has Chromium for Linux on x86-64 alone")
	}
}
