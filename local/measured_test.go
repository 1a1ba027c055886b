package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// measuredTarget is a target of the mock provider that follows directives.
func measuredTarget(model, directives string) string {
	return fmt.Sprintf(`{"provider":"@mock","override_params":{"model":%q,"messages":[{"role":"user","content":"mock: %s"}]}}`, model, directives)
}

// The strategies choose by what was measured, avoid a target that fails at once, and are
// explained with their figures: in records, in the explanation and in dry runs.
func TestStrategiesThatMeasure(t *testing.T) {
	t.Parallel()
	r := start(t)
	targets := strings.Join([]string{measuredTarget("gpt-4o", "status=503"), measuredTarget("gpt-4.1", "delay=300ms"), measuredTarget("gpt-4o-mini", "delay=1ms")}, ",")
	for n, c := range []struct {
		mode, unit string
		failed     int // requests that may meet the failing target
	}{{"latency", "ms", 3}, {"cost", "cents", 0}, {"least_busy", "requests", 3}} {
		config := fmt.Sprintf(`{"strategy":{"mode":%q,"explore":0,"min_observations":1},"targets":[%s]}`, c.mode, targets)
		seen, failed := map[string]int{}, 0
		for range 20 {
			got := r.call("POST", "/chat/completions", chatBody("gpt-4o", "Hello", ""), "X-Gateway-Config", config)
			if got.status != 200 {
				failed++
			}
			seen[got.header.Get("X-Gateway-Last-Used-Option-Index")]++
		}
		if failed > c.failed || c.mode != "least_busy" && seen["config.targets[2]"] < 15 {
			t.Errorf("%s: %v, %d failed", c.mode, seen, failed)
		}
		records := r.records(20 * (n + 1))
		last := records[len(records)-1]
		if len(last.Measured) != 1 || last.Measured[0].By != c.mode || len(last.Measured[0].Figures) != 3 || last.Mode != c.mode {
			t.Fatalf("%s: %+v", c.mode, last.Measured)
		}
		steps, _ := json.Marshal(r.get("/logs/"+last.ID+"/explain", workspaceKey)["steps"])
		if !strings.Contains(string(steps), `"measure"`) || !strings.Contains(string(steps), "Strategy "+c.mode) || !strings.Contains(string(steps), c.unit) {
			t.Errorf("%s: %s", c.mode, steps)
		}
		body, _ := json.Marshal(map[string]any{"config": json.RawMessage(config), "path": "/chat/completions", "body": json.RawMessage(chatBody("gpt-4o", "Hello", ""))})
		dry := r.call("POST", "/configs/dry-run", string(body))
		if !strings.Contains(dry.body, `"measured":[{"path":"config","strategy":"`+c.mode+`"`) || !strings.Contains(dry.body, `"unit":"`+c.unit+`"`) {
			t.Errorf("%s: %s", c.mode, dry.body)
		}
	}
}

// Requests in flight are counted until their response has ended.
func TestLeastBusyAvoidsABusyTarget(t *testing.T) {
	t.Parallel()
	r := start(t)
	config := `{"strategy":{"mode":"least_busy","tie_break":"order"},"targets":[` + measuredTarget("gpt-4o", "pace=200ms chunks=20") + `,` + measuredTarget("gpt-4o-mini", "delay=1ms") + `]}`
	held := make(chan reply, 1)
	go func() {
		got, _ := r.try("POST", "/chat/completions", chatBody("gpt-4o", "Hello", `,"stream":true`), "X-Gateway-Config", config)
		held <- got
	}()
	eventually(t, func() error {
		if n := len(r.mock.Requests(10)); n != 1 {
			return fmt.Errorf("%d requests", n)
		}
		return nil
	})
	var targets []string
	for range 5 {
		got := r.call("POST", "/chat/completions", chatBody("gpt-4o", "Hello", ""), "X-Gateway-Config", config)
		targets = append(targets, got.header.Get("X-Gateway-Last-Used-Option-Index"))
	}
	if got := <-held; got.status != 200 {
		t.Fatal(got.status, got.body)
	}
	after := r.call("POST", "/chat/completions", chatBody("gpt-4o", "Hello", ""), "X-Gateway-Config", strings.Replace(config, "200ms", "1ms", 1))
	want := slices.Repeat([]string{"config.targets[1]"}, 5)
	if !slices.Equal(targets, want) || after.header.Get("X-Gateway-Last-Used-Option-Index") != "config.targets[0]" {
		t.Errorf("%v, after it %s", targets, after.header.Get("X-Gateway-Last-Used-Option-Index"))
	}
}
