package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	official "github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/shared/relay/upstream"
)

const (
	adminKey     = "gw-admin-key-of-the-tests-of-mcp"
	workspaceKey = "gw-workspace-key-of-the-tests-of-mcp"
)

// missing skips the test because something is not installed. Where CI is set nothing may
// be missing.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s: not allowed to be missing in CI", what)
	}
	t.Skipf("SKIPPED: %s", what)
}

var (
	built  = map[string]string{} // programs by their packages
	builds sync.Mutex
	shelf  string // folder of the programs
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "gateway-mcp")
	if err != nil {
		panic(err)
	}
	shelf = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// program builds a program, once.
func program(t testing.TB, pkg string) string {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	if built[pkg] == "" {
		at := filepath.Join(shelf, filepath.Base(pkg))
		build := exec.Command("go", "build", "-o", at, pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // as the other tests build theirs
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", pkg, err, out)
		}
		built[pkg] = at
	}
	return built[pkg]
}

// gateway is one that runs as a program of its own.
type gateway struct {
	t    testing.TB
	dir  string
	addr string // that it listens on
	base string // ends in /v1
	env  []string
	cmd  *exec.Cmd
	over chan struct{} // closed when it has ended
}

// startGateway starts a gateway on a port and a folder of its own.
func startGateway(t testing.TB, env ...string) *gateway {
	t.Helper()
	g := &gateway{t: t, dir: filepath.Join(t.TempDir(), "data"), addr: "127.0.0.1:0", env: env}
	g.start()
	t.Cleanup(g.kill)
	return g
}

// start starts it on what it had before, if it has run before.
func (g *gateway) start() {
	g.t.Helper()
	g.cmd = exec.Command(program(g.t, "gateway/local"), "-addr", g.addr, "-data", g.dir)
	g.cmd.Env = append(append(os.Environ(), "GATEWAY_ADMIN_KEY="+adminKey, "GATEWAY_WORKSPACE_KEY="+workspaceKey), g.env...)
	g.cmd.Stderr = os.Stderr
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	if err := g.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	ready, over := make(chan string, 1), make(chan struct{})
	g.over = over
	go func() { // ends with the process
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if at, ok := strings.CutPrefix(lines.Text(), "gateway ready on "); ok {
				ready <- at
			}
		}
		_ = g.cmd.Wait()
		close(over)
	}()
	select {
	case g.base = <-ready:
		at, err := url.Parse(g.base)
		if err != nil {
			g.t.Fatal(err)
		}
		g.addr = at.Host
	case <-over:
		g.t.Fatal("the gateway ended before it was ready")
	case <-time.After(2 * time.Minute):
		g.t.Fatal("the gateway was not ready in time")
	}
}

// kill ends it as a power cut does.
func (g *gateway) kill() {
	_ = g.cmd.Process.Kill() // does nothing to one that has ended
	<-g.over
}

// call sends a request and gives the response.
func (g *gateway) call(method, path, key, body string) (status int, text string, err error) {
	req, err := http.NewRequest(method, g.base+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("X-Gateway-Api-Key", key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return res.StatusCode, string(raw), err
}

// admin calls the administration.
func (g *gateway) admin(method, path, body string) map[string]any {
	g.t.Helper()
	status, text, err := g.call(method, path, adminKey, body)
	var out map[string]any
	if err != nil || status != http.StatusOK || json.Unmarshal([]byte(text), &out) != nil {
		g.t.Fatalf("%s %s: %d %s %v", method, path, status, text, err)
	}
	return out
}

// register makes an integration and a server of it.
func (g *gateway) register(slug, address, auth, configurations string) {
	g.t.Helper()
	const at = `,"workspace_id":"default"}`
	g.admin("POST", "/mcp-integrations", fmt.Sprintf(`{"name":%q,"slug":%q,"url":%q,"auth_type":%q,"transport":"http","configurations":%s`, slug, slug, address, auth, configurations)+at)
	g.admin("POST", "/mcp-servers", fmt.Sprintf(`{"name":%q,"slug":%q,"mcp_integration_id":%q`, slug, slug, slug)+at)
}

// keyed stands in front of the gateway and adds a key, for clients that cannot send one.
// Its paths are those below /v1/mcp. With old it makes clients use sessions.
func (g *gateway) keyed(key string, old bool) (address string) {
	to, err := url.Parse("http://" + g.addr)
	if err != nil {
		g.t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Transport: &speaking{key: key, old: old}, Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(to)
		p.Out.Host, p.Out.URL.Path = p.In.Host, "/v1/mcp"+p.In.URL.Path
		if p.Out.Body != nil {
			p.Out.Body = upstream.WithLength(p.Out.Body, p.Out.ContentLength)
		}
	}}
	s := httptest.NewServer(proxy)
	g.t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// connect connects a client of the official SDK.
func (g *gateway) connect(slug string, through http.RoundTripper) (*official.ClientSession, error) {
	c := official.NewClient(&official.Implementation{Name: "client", Version: "1"}, nil)
	return c.Connect(context.Background(), &official.StreamableClientTransport{
		Endpoint: g.base + "/mcp/" + slug + "/mcp", HTTPClient: &http.Client{Transport: through}, MaxRetries: -1, DisableStandaloneSSE: true,
	}, nil)
}

// speaking is a way out with a key, which can keep a client to sessions.
type speaking struct {
	key string
	old bool
}

func (s *speaking) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.old && r.Header.Get("Mcp-Method") == "server/discover" {
		return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	r = r.Clone(r.Context())
	r.Header.Set("X-Gateway-Api-Key", s.key)
	return http.DefaultTransport.RoundTrip(r)
}
