package meter_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/host/meter"
	"gateway/shared/usage"
)

// TestInventedNamesDoNotCrowdOutModels: tools are bounded by themselves, and what no server
// lists is "other".
func TestInventedNamesDoNotCrowdOutModels(t *testing.T) {
	t.Parallel()
	totals := meter.NewTotals()
	sink := totals.Sink(&countingSink{})
	emit := func(r *usage.Record) {
		if err := sink.Emit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 400 {
		unknown := requestRecord("mcp", fmt.Sprintf("z%d", i), 200, time.Second, true)
		unknown.Call = &usage.Call{Decision: usage.CallAllowed, Code: -32602}
		emit(unknown)
		known := requestRecord("mcp", fmt.Sprintf("tool%d", i), 200, time.Second, true)
		known.Call = &usage.Call{Decision: usage.CallAllowed}
		emit(known)
	}
	emit(requestRecord("openai", "gpt-4.1", 200, time.Second, true))
	text := metricsOf(t, totals)
	if !strings.Contains(text, `gateway_requests_total{provider="openai",model="gpt-4.1"} 1`) {
		t.Error("a model with a price has no series")
	}
	if n := strings.Count(text, `gateway_requests_total{provider="mcp"`); n != 50 || strings.Contains(text, `"z1"`) || !strings.Contains(text, `provider="mcp",model="tool0"} 1`) {
		t.Errorf("%d series of tools", n)
	}
}

// TestEveryMetricHasHelp: also those of the names that other gateways use.
func TestEveryMetricHasHelp(t *testing.T) {
	t.Parallel()
	totals := meter.NewTotals()
	for _, r := range several() {
		if err := totals.Sink(&countingSink{}).Emit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	text := metricsOf(t, totals)
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ = strings.Cut(name, " ")
			_, help, ok := strings.Cut(text, "# HELP "+name+" ")
			if !ok || strings.HasPrefix(help, "\n") {
				t.Errorf("%s has no help", name)
			}
		}
	}
	for _, name := range []string{
		"request_count", "http_request_duration_seconds_bucket", "gateway_request_duration_milliseconds_sum", "gateway_processing_time_excluding_last_byte_ms_count", "llm_cost_sum", "llm_token_sum",
	} {
		if !strings.Contains(text, "\n"+name+`{app="gateway",env="N/A",method="N/A",`) {
			t.Errorf("there is no %s", name)
		}
	}
}

// metricsOf reads the metrics.
func metricsOf(t *testing.T, h http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatal(w.Code)
	}
	return w.Body.String()
}

// TestMetricsAreServedToThisMachineOrWithAKey at the gateway's own address.
func TestMetricsAreServedToThisMachineOrWithAKey(t *testing.T) {
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	allowed := func(r *http.Request) error {
		if r.Header.Get("Authorization") != "Bearer key" {
			return fault.New(fault.Unauthorized, "", "no key")
		}
		return nil
	}
	for name, c := range map[string]struct {
		path, from, host string
		header           [2]string
		off              bool
		want             int
	}{
		"this machine":                {path: "/metrics", from: "127.0.0.1:4000", host: "127.0.0.1:8787", want: 200},
		"this machine, by IPv6":       {path: "/metrics", from: "[::1]:4000", host: "localhost:8787", want: 200},
		"another machine":             {path: "/metrics", from: "10.0.0.7:4000", host: "127.0.0.1:8787", want: 401},
		"another machine, with a key": {path: "/metrics", from: "10.0.0.7:4000", host: "gateway.example.com", header: [2]string{"Authorization", "Bearer key"}, want: 200},
		"a proxy on this machine":     {path: "/metrics", from: "127.0.0.1:4000", host: "127.0.0.1:8787", header: [2]string{"X-Forwarded-For", "203.0.113.1"}, want: 401},
		"a page of a browser":         {path: "/metrics", from: "127.0.0.1:4000", host: "127.0.0.1:8787", header: [2]string{"Origin", "https://example.com"}, want: 401},
		"a name that leads here":      {path: "/metrics", from: "127.0.0.1:4000", host: "rebound.example.com:8787", want: 401},
		"another path":                {path: "/v1/models", from: "127.0.0.1:4000", host: "127.0.0.1:8787", want: http.StatusTeapot},
		"switched off, this machine":  {path: "/metrics", from: "127.0.0.1:4000", host: "127.0.0.1:8787", off: true, want: http.StatusTeapot},
	} {
		t.Setenv(meter.EnvMetrics, map[bool]string{true: "off"}[c.off])
		r := httptest.NewRequestWithContext(t.Context(), "GET", c.path, nil)
		r.RemoteAddr, r.Host = c.from, c.host
		if c.header[0] != "" {
			r.Header.Set(c.header[0], c.header[1])
		}
		w := httptest.NewRecorder()
		meter.Page(meter.NewTotals(), allowed, next).ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: %d, want %d", name, w.Code, c.want)
		}
	}
}
