package main

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

// peers runs a program of scripts/clients/signin against a gateway.
func peers(t *testing.T, r *running, file string, env ...string) {
	t.Helper()
	dir := filepath.Join("..", "scripts", "clients", "signin")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-force-exit", "--test-reporter=tap", file)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "GATEWAY_URL="+r.base, "GATEWAY_ADMIN_KEY="+adminKey, "TMPDIR="+t.TempDir())...)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("\n# fail 0\n")) || bytes.Contains(out, []byte("\n# pass 0\n")) || !bytes.Contains(out, []byte("\n# skipped 0\n")) {
		t.Errorf("not all tests ran and passed: %v\n%s", err, out)
	}
}

// withPeers skips a test where the npm packages are missing; where CI is set they must be
// there.
func withPeers(t *testing.T, names ...string) {
	t.Helper()
	lacking := ""
	if _, err := exec.LookPath("node"); err != nil {
		lacking = "node is not installed"
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join("..", "scripts", "clients", "node_modules", filepath.FromSlash(name), "package.json")); err != nil {
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

func TestPeopleSignInByAStrictProvider(t *testing.T) {
	t.Parallel()
	withPeers(t, "oidc-provider")
	peers(t, newEntrance(t).running, "oidc_provider.test.mjs")
}

func TestStrictClientsSignInHere(t *testing.T) {
	t.Parallel()
	withPeers(t, "openid-client", "oauth4webapi", "oidc-provider")
	l := newLobby(t)
	peers(t, l.running, "strict_clients.test.mjs", "SESSION="+l.session, "RESOURCE="+l.resource)
}

func TestABrowserSignsIn(t *testing.T) {
	t.Parallel()
	withPeers(t, "oidc-provider", "puppeteer-core", "@sparticuz/chromium")
	if runtime.GOARCH != "amd64" || runtime.GOOS != "linux" {
		t.Skip("SKIPPED: the package has Chromium for Linux on x86-64 alone")
	}
	peers(t, newEntrance(t).running, "browser.test.mjs")
}
