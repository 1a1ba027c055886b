package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"gateway/shared/host/meter"
)

// TestMetricsOfALaptop: what was asked stands in the metrics, at an address of their
// own and nowhere else.
//
// In a row: it sets a variable of the process.
func TestMetricsOfALaptop(t *testing.T) {
	t.Setenv(meter.EnvMetricsAddr, "127.0.0.1:0")
	r := start(t)
	full := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(full.Close)
	r.admin("POST", "/telemetry-destinations", `{"name":"full","endpoint":"`+full.URL+`"}`)
	for _, model := range []string{"gpt-4o-mini", "no-such-model"} { // the mock provider has every model, the price list has not
		if a := r.call("POST", "/chat/completions", chatBody(model, "Hello", ""), "x-gateway-provider", "@mock"); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	read := func(address string) (int, string) {
		res, err := http.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(raw)
	}
	status, text := read("http://" + r.g.metrics.Addr().String() + "/metrics")
	for _, want := range []string{
		`gateway_requests_total{provider="openai",model="gpt-4o-mini`, `gateway_requests_total{provider="openai",model="other"} 1`,
		`gateway_errors_total{provider="openai",model="other"} 0`, `gateway_latency_seconds_count{provider="openai",model="gpt-4o-mini`, `gateway_cost_total{provider="openai",model="gpt-4o-mini`,
	} {
		if status != 200 || !strings.Contains(text, want) {
			t.Errorf("%d without %s:\n%s", status, want, text)
		}
	}
	if !strings.Contains(text, "# TYPE gateway_telemetry_dropped_total counter\n") {
		t.Errorf("nothing of what telemetry has dropped:\n%s", text)
	}
	eventually(t, func() error { // reports are sent in the background
		if _, text := read("http://" + r.g.metrics.Addr().String() + "/metrics"); !regexp.MustCompile(`(?m)^gateway_telemetry_dropped_total [1-9]`).MatchString(text) {
			return fmt.Errorf("no dropped report is told:\n%s", text)
		}
		return nil
	})
	if strings.Contains(text, "no-such-model") {
		t.Error("a name that a caller made up is a label")
	}
	// This is the machine of the gateway; another one needs a key of the organization.
	own := strings.TrimSuffix(r.base, "/v1") + "/metrics"
	if status, text := read(own); status != 200 || !strings.Contains(text, "gateway_requests_total") || !strings.Contains(text, "request_count{") {
		t.Errorf("the gateway's own address answers %d %s", status, text)
	}
	for key, want := range map[string]int{"": 401, "wrong": 401, workspaceKey: 403, adminKey: 200} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", own, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Forwarded-For", "203.0.113.1")
		req.Header.Set("X-Gateway-Api-Key", key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("with %q: %d, want %d", key, res.StatusCode, want)
		}
	}
}
