package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"gateway/functions/assembly"
	"gateway/functions/passthrough"
	"gateway/shared/host/placement"
	"gateway/shared/relay"
	"gateway/shared/relay/routes"
)

// line is a client that sends request targets as they are given.
type line struct {
	t    *testing.T
	addr string
	conn net.Conn
	in   *bufio.Reader
}

func (l *line) send(method, target string) (status int, header http.Header) {
	l.t.Helper()
	if l.conn == nil {
		conn, err := net.Dial("tcp", l.addr)
		if err != nil {
			l.t.Fatal(err)
		}
		l.conn, l.in = conn, bufio.NewReader(conn)
	}
	const body = `{"name":"n","key":"secret-of-the-organisation"}`
	fmt.Fprintf(l.conn, "%s %s HTTP/1.1\r\nHost: gateway\r\nX-Gateway-Api-Key: %s\r\nX-Gateway-Provider: @mock\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, target, workspaceKey, len(body), body)
	resp, err := http.ReadResponse(l.in, &http.Request{Method: method})
	if err != nil {
		l.t.Fatalf("%s %s: %v", method, target, err)
	}
	follows := resp.Header.Get("Content-Type") == "text/event-stream" // goes on until somebody leaves
	if !follows {
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if follows || err != nil || resp.Close {
		l.conn.Close()
		l.conn = nil
	}
	return resp.StatusCode, resp.Header
}

// spellings are request targets that somebody might take for a path.
func spellings(path string) []string {
	name := path[1:]
	return []string{
		"/v1" + path, "/v1" + path + "/", "/v1/" + path, "/v1" + path + "//", "/v1/." + path, "/v1/x/.." + path, "/v1/%2e" + path, "/v1/x/%2E%2E" + path,
		"/v1%2F" + name, "/v1/%2F" + name, "/v1" + path + "%2F", "/v1/" + strings.ReplaceAll(name, "/", "%2F"), "/v1/" + strings.ReplaceAll(name, "/", "%252f"), "/v1" + path + ";a=1", "/v1" + path + "?a=1", "/v1" + path + "%3Fa=1",
		"/v1" + path + ".", "/v1" + path + "%20", "/v1" + path + "%00", "/v1/%5C" + name,
		"/v1/" + strings.ToUpper(name), "/v1/" + strings.ToUpper(name[:1]) + name[1:], "/v1/" + fmt.Sprintf("%%%02x", name[0]) + name[1:], "/v1/" + fmt.Sprintf("%%25%02x", name[0]) + name[1:],
		"/v1/v1" + path, "/v2" + path, path, path + "/", "/" + path,
	}
}

// TestAdministrationIsNeverPassedThrough walks the families that are reserved and
// the paths that are served over methods and spellings, in each place that passes
// paths through: this process, the container, and the function.
//
//lane:exhaustive
func TestAdministrationIsNeverPassedThrough(t *testing.T) {
	t.Parallel()
	r := start(t)
	paths := []string{}
	for _, row := range routes.Reserved() {
		if !row.Passes {
			paths = append(paths, strings.NewReplacer("/**", "", "*", "a").Replace(row.Path))
			if below, ok := strings.CutSuffix(row.Path, "/**"); ok {
				paths = append(paths, below+"/a", below+"/a/b")
			}
		}
	}
	served := []string{}
	for _, row := range placement.Table() {
		if row.Place == placement.Buffered {
			path := strings.NewReplacer("{", "", "}", "").Replace(row.Path)
			if !routes.IsReserved(path) {
				t.Errorf("%s is served by the administration and not reserved", path)
			}
			if !slices.Contains(served, path) {
				served = append(served, path)
			}
		}
	}
	if paths = append(paths, served...); len(paths) < 100 {
		t.Fatalf("%d paths", len(paths))
	}
	// The mock provider keeps what it got; one request that does arrive shows that.
	if got := r.call("POST", "/proxy/guardrails", "{}", "X-Gateway-Provider", "@mock"); got.status/100 == 5 || len(r.mock.Requests(10)) != 1 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	r.mock.Reset()
	container := httptest.NewServer(relay.NewMux(r.g.relay, assembly.DataPlane()))
	defer container.Close()
	function := httptest.NewServer(relay.NewMux(r.g.relay, passthrough.Routes()))
	defer function.Close()
	for place, addr := range map[string]string{
		"local": r.g.server.Addr().String(), "container": container.Listener.Addr().String(), "function": function.Listener.Addr().String(),
	} {
		l := &line{t: t, addr: addr}
		for i, path := range paths {
			for j, target := range spellings(path) {
				for k, method := range []string{"POST", "PUT", "GET", "DELETE", "PATCH"} {
					if place == "local" && slices.Contains(served, path) && j == 0 || j > 0 && place != "local" && (i+j+k)%3 != 0 {
						continue // the first is a call of the administration; of the others a third will do
					}
					status, header := l.send(method, target)
					refused := status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusBadRequest
					if !refused && place != "local" || status >= 500 {
						t.Errorf("%s: %s %s is answered with %d", place, method, target, status)
					}
					if status == http.StatusMethodNotAllowed && header.Get("Allow") == "" {
						t.Errorf("%s: %s %s is refused without what is allowed", place, method, target)
					}
				}
			}
		}
		for _, got := range r.mock.Requests(10) {
			t.Errorf("%s: %s %s?%s was passed through", place, got.Method, got.Path, got.Query)
		}
		r.mock.Reset()
	}
}

// TestWrongMethodsOfTheAdministration asks for routes that are there with methods
// that they do not take.
//
//lane:exhaustive
func TestWrongMethodsOfTheAdministration(t *testing.T) {
	t.Parallel()
	r := start(t)
	methods := map[string][]string{}
	for _, row := range placement.Table() {
		if row.Place == placement.Buffered || row.Path == "/configs/dry-run" {
			methods[row.Path] = append(methods[row.Path], row.Method)
		}
	}
	l := &line{t: t, addr: r.g.server.Addr().String()}
	for path, takes := range methods {
		for _, method := range []string{"POST", "PUT", "GET", "DELETE", "PATCH"} {
			if slices.Contains(takes, method) {
				continue
			}
			status, header := l.send(method, "/v1"+strings.NewReplacer("{", "", "}", "").Replace(path))
			allowed := strings.Split(header.Get("Allow"), ", ")
			slices.Sort(takes)
			if status != http.StatusMethodNotAllowed || !slices.Equal(allowed, takes) {
				t.Errorf("%s %s: %d, allowed %v, want %v", method, path, status, allowed, takes)
			}
		}
	}
	for _, got := range r.mock.Requests(10) {
		t.Errorf("%s %s was passed through", got.Method, got.Path)
	}
}

// TestNeighboursOfReservedPathsPassThrough: what providers have under such names.
func TestNeighboursOfReservedPathsPassThrough(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, row := range routes.Reserved() {
		path := strings.NewReplacer("**", "a/b", "*", "a").Replace(row.Path)
		below := map[bool]string{true: "", false: "/proxy"}[row.Passes]
		if strings.HasPrefix(path, "/batches") || strings.HasPrefix(path, "/files") || strings.HasPrefix(path, "/models") {
			continue // those have routes of their own
		}
		if routes.WithheldReason(path, "openai") != "" {
			continue // not with a stored credential: see openai_paths_test.go
		}
		r.mock.Reset()
		r.call("POST", below+path, "{}", "X-Gateway-Provider", "@mock")
		if got := r.mock.Requests(1); len(got) != 1 || got[0].Path != "/v1"+path {
			t.Errorf("%s arrived as %v", below+path, got)
		}
	}
}
