package observe

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/shared/store"
	"gateway/shared/usage"
)

// TestFromEnvironment reads the variables as OpenTelemetry's exporters do.
func TestFromEnvironment(t *testing.T) {
	t.Parallel()
	const base = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318/"
	for _, c := range []struct {
		name, variables string
		traces, metrics string // addresses; "": nothing is sent
		fails           string
	}{
		{"none", "", "", "", ""},
		{"a base", base, "http://127.0.0.1:4318/v1/traces", "http://127.0.0.1:4318/v1/metrics", ""},
		{"whole addresses", base + "|OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://c.example/in", "https://c.example/in", "http://127.0.0.1:4318/v1/metrics", ""},
		{"one signal", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=https://c.example/m", "", "https://c.example/m", ""},
		{"a signal that is off", base + "|OTEL_METRICS_EXPORTER=none", "http://127.0.0.1:4318/v1/traces", "", ""},
		{"switched off", base + "|OTEL_SDK_DISABLED=true", "", "", ""},
		{"no address", "OTEL_EXPORTER_OTLP_ENDPOINT=collector:4317", "", "", "must be a URL"},
		{"another protocol", base + "|OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "", "", "OTEL_EXPORTER_OTLP_PROTOCOL"},
		{"bad headers", base + "|OTEL_EXPORTER_OTLP_HEADERS=x", "", "", "OTEL_EXPORTER_OTLP_HEADERS"},
	} {
		variables := map[string]string{}
		for pair := range strings.SplitSeq(c.variables, "|") {
			name, value, _ := strings.Cut(pair, "=")
			variables[name] = value
		}
		got, err := FromEnvironment(func(name string) string { return variables[name] })
		if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %v, want %q", c.name, err, c.fails)
			continue
		}
		for signal, want := range map[string]string{Traces: c.traces, Metrics: c.metrics} {
			is := ""
			if got != nil && got.gets(signal) {
				is = got.address(signal)
			}
			if is != want {
				t.Errorf("%s: %s go to %q, want %q", c.name, signal, is, want)
			}
		}
	}
	variables := map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c.example", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20t", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=prod,service.name=x", "OTEL_SERVICE_NAME": "own",
	}
	got, err := FromEnvironment(func(name string) string { return variables[name] })
	if err != nil || !slices.Equal(got.Headers, [][2]string{{"authorization", "Bearer t"}}) || got.Attributes["service.name"] != "own" || got.Attributes["deployment.environment"] != "prod" || got.Content {
		t.Errorf("%+v %v", got, err)
	}
}

type nowhere struct{}

func (nowhere) Targets(context.Context, store.Scope) ([]Target, error) { return nil, nil }

// TestTheProcessHasADestinationOfItsOwn: it gets the records of every organization.
func TestTheProcessHasADestinationOfItsOwn(t *testing.T) {
	t.Parallel()
	paths := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { paths <- r.URL.Path }))
	defer collector.Close()
	own, err := FromEnvironment(func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	e := &Exporter{Directory: nowhere{}, ProcessTarget: own, ProcessTransport: http.DefaultTransport, Now: time.Now}
	e.Send(t.Context(), e.Prepare(t.Context(), []usage.Record{{ID: "1", Org: "a", Start: time.Now()}, {ID: "2", Org: "b", Start: time.Now()}}))
	close(paths)
	got := map[string]int{}
	for p := range paths {
		got[p]++
	}
	if got["/v1/traces"] != 2 || got["/v1/metrics"] != 2 || e.Dropped() != 0 {
		t.Errorf("%v, %d dropped", got, e.Dropped())
	}
}
