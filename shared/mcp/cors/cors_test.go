package cors

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHandlerSetsCORSHeadersForAllowedOrigins(t *testing.T) {
	t.Parallel()
	const page, long = "https://app.example.com", "/v1/mcp/tools/mcp"
	p := Pages{Origins: []string{page}}
	h := p.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for name, c := range map[string]struct {
		method, path, origin, method2, headers string
		status                                 int
		allowed, exposes                       bool
	}{
		"preflight":                      {"OPTIONS", long, page, "POST", "content-type, x-gateway-api-key", 204, true, false},
		"without version":                {"OPTIONS", "/mcp/tools/mcp", page, "POST", "", 204, true, false},
		"of the token":                   {"OPTIONS", "/v1/oauth/token", page, "POST", "content-type", 204, true, false},
		"of a document":                  {"OPTIONS", "/.well-known/oauth-protected-resource/v1/mcp/tools/mcp", page, "GET", "mcp-protocol-version", 204, true, false},
		"the call itself":                {"POST", long, page, "", "", 418, true, true},
		"OPTIONS that is none":           {"OPTIONS", long, page, "", "", 418, true, true},
		"another page":                   {"OPTIONS", long, "https://other.example.com", "POST", "", 418, false, false},
		"a page without origin":          {"OPTIONS", long, "null", "POST", "", 418, false, false},
		"no page":                        {"POST", long, "", "", "", 418, false, false},
		"another address":                {"OPTIONS", "/v1/chat/completions", page, "POST", "", 418, false, false},
		"the page of consent":            {"OPTIONS", "/v1/oauth/authorize", page, "GET", "", 418, false, false},
		"the administration as a server": {"OPTIONS", "/v1/mcp", page, "POST", "", 418, false, false},
		"the administration":             {"OPTIONS", "/v1/mcp-servers", page, "POST", "", 418, false, false},
		"a page of the same machine":     {"OPTIONS", long, "http://localhost:6274", "POST", "", 418, false, false},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		for k, v := range map[string]string{"Origin": c.origin, "Access-Control-Request-Method": c.method2, "Access-Control-Request-Headers": c.headers} {
			if v != "" {
				r.Header.Set(k, v)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		got := w.Header()
		if w.Code != c.status || (got.Get("Access-Control-Allow-Origin") == c.origin && c.origin != "") != c.allowed || strings.Contains(got.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") != c.exposes {
			t.Errorf("%s: %d %v", name, w.Code, got)
		}
		if got.Get("Access-Control-Allow-Headers") != c.headers || (got.Get("Access-Control-Allow-Methods") != "") != (c.status == 204) {
			t.Errorf("%s: %v", name, got)
		}
		if strings.Contains(strings.Join(got.Values("Vary"), ","), "Origin") != c.allowed || got.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestInvalidHeaderNamesAreNotEchoed(t *testing.T) {
	t.Parallel()
	h := Pages{Origins: []string{"https://app.example.com"}}.Handler(http.NotFoundHandler())
	for _, names := range []string{"a\x00b", "a: b", "a;b", "é", strings.Repeat("a,", maxRequestHeaders)} {
		r := httptest.NewRequest("OPTIONS", "/v1/mcp/tools/mcp", nil)
		r.Header = http.Header{"Origin": {"https://app.example.com"}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {names}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 204 || w.Header().Get("Access-Control-Allow-Headers") != "" {
			t.Errorf("%.20q: %d %v", names, w.Code, w.Header())
		}
	}
}

func TestTheListOfPages(t *testing.T) {
	t.Parallel()
	got, err := Parse(" https://app.example.com, http://localhost:6274 ,")
	if err != nil || len(got) != 2 || got[1] != "http://localhost:6274" {
		t.Errorf("%q %v", got, err)
	}
	for _, list := range []string{"*", "app.example.com", "https://app.example.com/", "https://App.example.com", "ftp://a", "https://", "null", "https://a?b", "https://u@a", strings.Repeat("https://a,", maxOrigins+1)} {
		if got, err := Parse(list); err == nil {
			t.Errorf("%.40q: %q", list, got)
		}
	}
}
