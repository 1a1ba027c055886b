package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestARecordingByItsAddress: in place of a file only where a host may take it.
func TestARecordingByItsAddress(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		requests.Add(1)
		if err := req.ParseMultipartForm(1 << 20); err != nil || req.FormValue("url") != "https://example.com/a.mp3" {
			t.Errorf("%v %v", err, req.Form)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"text":"Hello"}`))
	}))
	t.Cleanup(host.Close)
	r := start(t)
	const address = "https://example.com/a.mp3"
	for _, path := range []string{"/audio/transcriptions", "/audio/translations"} {
		for _, c := range []struct {
			provider string
			own      bool
			url      string
			status   int
		}{
			{"groq", true, address, 200}, {"openai", true, address, 200},
			{"groq", true, "", 400}, {"openai", true, "", 400}, {"groq", false, "", 400}, {"openai", false, "", 400},
			{"openai", false, address, 400}, {"azure-openai", false, address, 400},
		} {
			before := requests.Load()
			h := append([]string{"X-Gateway-Provider", c.provider, "Authorization", "Bearer k", "X-Gateway-Azure-Resource-Name", "mine", "X-Gateway-Azure-Deployment-Id", "d", "X-Gateway-Azure-Api-Version", "v1"}, formType...)
			if c.own {
				h = append(h, "X-Gateway-Custom-Host", host.URL+"/v1")
			}
			fields := []string{"model", "whisper-large-v3"}
			if c.url != "" {
				fields = append(fields, "url", c.url)
			}
			got := r.call("POST", path, form(fields...), h...)
			if got.status != c.status || c.status == 400 && !strings.Contains(got.body, "file is required") || requests.Load()-before != int64(map[int]int{200: 1}[c.status]) {
				t.Errorf("%s at %s, own %t, url %q: %d %s", path, c.provider, c.own, c.url, got.status, got.body)
			}
		}
	}
}
