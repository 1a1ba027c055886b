package admin_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"gateway/shared/testkit/admintest"
)

// Whatever is sent, the response is JSON and never a 5xx.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		`{"name":"a","color":"red","size":3}`, `{"name":null}`, `{"setup":{"fast":1}}`, `{"tags":{"":1}}`, `[`, "\xff", `{"a":1,"a":2}`,
		`{"name":"a","made":"2026-01-01"}`, `{"key":{"x":[1,2]}}`, `{"workspace_id":5}`, `{"parts":[[[]]],"labels":[]}`, `{"slug":"#"}`, `{"name":"\ud83d\ude00\ud800"}`, `{"name":"\\"}`, `{"\u00`,
	} {
		f.Add("POST", "/gadgets", "", body)
		f.Add("PUT", "/gadgets/x", "?page_size=1", body)
	}
	f.Add("GET", "/gadgets/%2e%2e/%00", "?tags=%7B%7D&status=;", "")
	f.Add("GET", "/gadgets", "?workspace_id=%ff&current_page=1e9", "")
	f.Add("DELETE", "/admin/gadgets/a;b", "?%zz", "")
	h := newInstallation(f)
	makeGadget(f, h, `{"name":"a","slug":"x"}`)
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		if strings.Contains(path, "/panic") || strings.ContainsAny(path+query+method, " \n\r\t\x00#") || !strings.HasPrefix(path, "/") {
			t.Skip("not a request line, or the route that breaks on purpose")
		}
		r := httptest.NewRequest("POST", "/v1/x", strings.NewReader(body))
		r.Method = method
		u, err := r.URL.Parse("http://gateway" + path + query)
		if err != nil {
			t.Skip("not an address")
		}
		r.URL = u
		r.Header.Set("x-gateway-api-key", admintest.WorkspaceA)
		got := h.For(t).Send(r)
		if got.Status >= 500 || !json.Valid(got.Body) {
			t.Errorf("%s %s%s %q: %d %s", method, path, query, body, got.Status, got.Body)
		}
	})
}
