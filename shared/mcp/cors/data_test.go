package cors

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestDataPlaneAllowsListedOriginsOnly(t *testing.T) {
	t.Parallel()
	const page, chat = "https://app.example.com", "/v1/chat/completions"
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for name, c := range map[string]struct {
		pages                         DataPlane
		method, path, origin, method2 string
		status                        int
		allowed                       bool
	}{
		"preflight":            {DataPlane{page}, "OPTIONS", chat, page, "POST", 204, true},
		"call":                 {DataPlane{page}, "POST", chat, page, "", 418, true},
		"OPTIONS that is none": {DataPlane{page}, "OPTIONS", chat, page, "", 418, true},
		"off":                  {nil, "OPTIONS", chat, page, "POST", 418, false},
		"another page":         {DataPlane{page}, "OPTIONS", chat, "https://other.example.com", "POST", 418, false},
		"the same machine":     {DataPlane{page}, "OPTIONS", chat, "http://localhost:1", "POST", 418, false},
		"no origin":            {DataPlane{page}, "OPTIONS", chat, "", "POST", 418, false},
		"null":                 {DataPlane{page}, "OPTIONS", chat, "null", "POST", 418, false},
		"MCP":                  {DataPlane{page}, "OPTIONS", "/v1/mcp/tools/mcp", page, "POST", 418, false},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		for k, v := range map[string]string{"Origin": c.origin, "Access-Control-Request-Method": c.method2, "Access-Control-Request-Headers": "x-gateway-api-key"} {
			if v != "" {
				r.Header.Set(k, v)
			}
		}
		w := httptest.NewRecorder()
		c.pages.Handler(h).ServeHTTP(w, r)
		got := w.Header()
		if w.Code != c.status || (got.Get("Access-Control-Allow-Origin") != "") != c.allowed || got.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %d %v", name, w.Code, got)
		}
		if c.status == 204 && (got.Get("Access-Control-Allow-Headers") != "x-gateway-api-key" || got.Get("Access-Control-Allow-Methods") != dataMethods) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
