package mcp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A stream is resumed after its last complete event, however its bytes were split.
func TestResumesReturnsLastCompleteEvent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2*maxLine)
	for name, c := range map[string]struct {
		stream, id string
		wait       time.Duration
	}{
		"nothing":          {"data: {}\n\n", "", 0},
		"a name":           {"id: a\ndata: {}\n\n", "a", 0},
		"without data":     {"id: a\nretry: 500\n\n", "a", 500 * time.Millisecond},
		"the later one":    {"id: a\ndata: {}\n\nid: b\ndata: {}\n\n", "b", 0},
		"not whole":        {"id: a\ndata: {}\n\nid: b\ndata: {", "a", 0},
		"other line ends":  {"id:a\r\nretry:7\r\ndata: {}\r\n\r\n", "a", 7 * time.Millisecond},
		"a name of others": {"idle: a\ndata: id: b\n: id: c\n\n", "", 0},
		"taken back":       {"id: a\n\nid:\n\n", "", 0},
		"with a zero byte": {"id: a\x00b\n\n", "", 0},
		"odd times":        {"retry: -1\nretry: x\nretry: 99999999999\nid: a\n\n", "a", 0},
		"too long":         {"id: " + long + "\n\n", "", 0},
		"a long line":      {"id: a\ndata: " + long + "\n\n", "a", 0},
	} {
		for _, step := range []int{1, 3, len(c.stream)} {
			p := new(position)
			for rest := c.stream; rest != ""; {
				n := min(step, len(rest))
				p.feed([]byte(rest[:n]))
				rest = rest[n:]
			}
			if p.id != c.id || p.wait != c.wait {
				t.Errorf("%s, by %d: %q after %v", name, step, p.id, p.wait)
			}
		}
	}
}

// A server that rejects the version and also lists it as supported is called again once.
func TestDiscoverRetriesContradictoryVersionErrors(t *testing.T) {
	t.Parallel()
	const good = `{"jsonrpc":"2.0","id":0,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}`
	refused := func(code, supported string) string {
		return `{"jsonrpc":"2.0","id":0,"error":{"code":` + code + `,"message":"no","data":{"supported":` + supported + `}}}`
	}
	for name, c := range map[string]struct {
		first    string
		requests int
		modern   bool
	}{
		"at once":         {good, 1, true},
		"again":           {refused("-32022", `["2026-07-28"]`), 2, true},
		"another version": {refused("-32022", `["2027-01-01"]`), 1, false},
		"another error":   {refused("-32601", `["2026-07-28"]`), 1, false},
		"other types":     {refused(`"-32022"`, `"2026-07-28"`), 1, false},
	} {
		requests := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			answer := good
			if requests++; requests == 1 {
				answer = c.first
			}
			if answer != good {
				w.WriteHeader(http.StatusBadRequest)
			}
			_, _ = io.WriteString(w, answer)
		}))
		u := &Upstream{URL: s.URL, RoundTripper: http.DefaultTransport}
		hello, _, err := u.Discover(context.Background())
		if s.Close(); err != nil || requests != c.requests || (hello != nil) != c.modern {
			t.Errorf("%s: asked %d times, %s %v", name, requests, hello, err)
		}
	}
}
