package egress

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gateway/shared/fault"
)

// laned are requests, all but the first two of which must not share a connection
// with any other.
func laned(t *testing.T, url string) []*http.Request {
	t.Helper()
	var out []*http.Request
	add := func(tenant, workspace, query string, headers ...string) {
		req := newRequest("POST", url+query, []byte("x"))
		for i := 0; i < len(headers); i += 2 {
			req.Header[headers[i]] = []string{headers[i+1]}
		}
		if tenant != "" {
			req = req.WithContext(&Lane{Context: req.Context(), Tenant: tenant, Workspace: workspace})
		}
		out = append(out, req)
	}
	const signed = "AWS4-HMAC-SHA256 Credential=%s/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=%s"
	add("a", "w", "", "Authorization", fmt.Sprintf(signed, "AKID1", "00"))
	add("a", "w", "", "Authorization", fmt.Sprintf(signed, "AKID1", "ff"))
	add("a", "w", "", "Authorization", fmt.Sprintf(signed, "AKID2", "00"))
	add("", "", "")
	for _, tenant := range []string{"a", "b"} {
		for _, workspace := range []string{"w", "x"} {
			add(tenant, workspace, "")
			add(tenant, workspace, "?key=1")
			add(tenant, workspace, "?alt=sse&key=2")
			for _, name := range credentialHeaders {
				add(tenant, workspace, "", name, "one")
				add(tenant, workspace, "", name, "two")
			}
		}
	}
	return out
}

func TestConnectionsAreNotSharedBetweenTenantsAndCredentials(t *testing.T) {
	t.Parallel()
	p := mustAllow(t, "127.0.0.0/8")
	for name, tr := range map[string]Transport{"HTTP1": New(p, Options{}), "net/http": New(p, Options{Standard: true})} {
		defer CloseIdle(tr)
		var mu sync.Mutex
		seen := map[string]int{} // connection -> request
		s, _ := counted(t, func(w http.ResponseWriter, r *http.Request) {
			var n int
			_, _ = fmt.Sscan(r.Header.Get("N"), &n)
			mu.Lock()
			defer mu.Unlock()
			if before, used := seen[r.RemoteAddr]; used && before != n {
				t.Errorf("%s: request %d came on the connection of %d", name, n, before)
			}
			seen[r.RemoteAddr] = n
		})
		for range 2 {
			for i, req := range laned(t, s.URL) {
				if i == 1 {
					i = 0 // the same lane
				}
				req = req.Clone(req.Context())
				req.Body = NewBody([]byte("x"))
				req.Header.Set("N", fmt.Sprint(i))
				if _, _, err := call(client{tr: tr}, req); err != nil {
					t.Fatal(err)
				}
			}
		}
		if want := len(laned(t, s.URL)) - 1; len(seen) != want {
			t.Errorf("%s: %d connections, want %d, each used again", name, len(seen), want)
		}
	}
}

func TestLanesGoFromContextToContext(t *testing.T) {
	t.Parallel()
	of := &Lane{Context: t.Context(), Tenant: "a", Workspace: "w"}
	inner, cancel := context.WithCancel(of)
	defer cancel()
	for _, ctx := range []context.Context{of, inner, WithLane(context.Background(), LaneOf(inner))} {
		if l := laneOf((&http.Request{URL: &url.URL{Path: "/"}, Header: http.Header{}}).WithContext(ctx)); l.tenant != "a" || l.workspace != "w" {
			t.Errorf("%+v", l)
		}
	}
	if ctx := t.Context(); WithLane(ctx, LaneOf(context.Background())) != ctx {
		t.Error("a lane came from nowhere")
	}
}

// TestStandardLimitsLanes: callers name as many credentials as they like.
func TestStandardLimitsLanes(t *testing.T) {
	t.Parallel()
	s, _ := counted(t, func(http.ResponseWriter, *http.Request) {})
	tr := NewStandard(mustAllow(t, "127.0.0.0/8"))
	defer tr.CloseIdleConnections()
	for i := range 2 * maxLanes {
		req := newRequest("POST", s.URL, []byte("x"))
		req.Header["Authorization"] = []string{fmt.Sprint(i)}
		if _, _, err := call(client{tr: tr}, req); err != nil {
			t.Fatal(err)
		}
	}
	if len(tr.lanes) != maxLanes {
		t.Errorf("%d lanes", len(tr.lanes))
	}
}

func TestRootsBesidesTheSystems(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _ := tlsServer(t, func(http.ResponseWriter, *http.Request) {})
	write := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := write("good.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	p := mustAllow(t, "127.0.0.0/8")
	for _, standard := range []bool{false, true} {
		p.RootCAs = nil
		if _, _, err := call(client{tr: New(p, Options{Standard: standard})}, newRequest("GET", s.URL, nil)); err == nil {
			t.Error("a server of an unknown authority is trusted")
		}
		roots, err := Roots(good)
		if err != nil {
			t.Fatal(err)
		}
		if p.RootCAs = roots; true {
			tr := New(p, Options{Standard: standard})
			if _, _, err := call(client{tr: tr}, newRequest("GET", s.URL, nil)); err != nil {
				t.Errorf("standard %v: %v", standard, err)
			}
			CloseIdle(tr)
		}
	}
	if roots, err := Roots(""); roots != nil || err != nil {
		t.Errorf("no variable: %v %v", roots, err)
	}
	if system, err := x509.SystemCertPool(); err == nil {
		//lint:ignore SA1019 what is counted is all of them
		if roots, _ := Roots(good); roots.Equal(system) || len(system.Subjects()) > 0 && len(roots.Subjects()) != len(system.Subjects())+1 {
			t.Error("the system's roots are gone")
		}
	}
	for _, file := range []string{filepath.Join(dir, "none"), dir, write("empty", nil), write("text", []byte("secret text"))} {
		_, err := Roots(file)
		if !fault.Is(err, fault.InvalidRequest) || !strings.Contains(err.Error(), EnvRoots) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", file, err)
		}
	}
}
