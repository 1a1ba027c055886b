package main

import (
	"fmt"
	"testing"
)

// A log names the version of the config that was in force when it was made, and
// shows the times that were measured.
func TestALogNamesTheVersionOfItsConfigAndItsTimes(t *testing.T) {
	t.Parallel()
	r := start(t)
	made := r.admin("POST", "/configs", `{"name":"c","workspace_id":"default","config":{"provider":"@mock"}}`)
	slug := member(made, "data/slug").(string)
	send := func() {
		if got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Config", slug); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	send()
	r.logs(1, workspaceKey)
	changed := r.admin("PUT", "/configs/"+slug, `{"workspace_id":"default","config":{"provider":"@mock","retry":{"attempts":1}}}`)
	send()
	r.call("POST", "/chat/completions", `{"model":"@mock/gpt-4o-mini"}`) // without a config, and rejected
	rows := r.logs(3, workspaceKey)
	for i, want := range []any{nil, member(changed, "data/version_id"), member(made, "data/version_id")} {
		one := r.get("/logs/"+rows[i]["id"].(string), workspaceKey)
		for of, row := range map[string]map[string]any{"list": rows[i], "log": one["metrics"].(map[string]any)} {
			if row["config_version_id"] != want || (want == nil) != (row["config_version"] == nil) {
				t.Errorf("%s, %d: version %v (%v), want %v", of, i, row["config_version_id"], row["config_version"], want)
			}
			if (want != nil) != (row["pre_processing_time"] != nil) {
				t.Errorf("%s, %d: before the first call %v", of, i, row["pre_processing_time"])
			}
			if want == nil {
				continue
			}
			if err := timesAddUp(row); err != nil {
				t.Errorf("%s, %d: %v", of, i, err)
			}
		}
		timing := r.get("/logs/"+rows[i]["id"].(string)+"/explain", workspaceKey)["timing"]
		if !near(member(timing, "total_ms"), rows[i]["response_time"]) || !near(member(timing, "gateway_ms"), rows[i]["gateway_processing_time"]) ||
			member(timing, "first_call_ms") != rows[i]["pre_processing_time"] {
			t.Errorf("the explanation tells %v of %v", timing, rows[i])
		}
	}
	r.admin("DELETE", "/configs/"+slug+"?workspace_id=default", "")
	if got := r.get("/logs/"+rows[1]["id"].(string), workspaceKey); member(got, "metrics/config") != slug {
		t.Errorf("a log of a deleted config: %v", got["metrics"])
	}
}

// timesAddUp checks the times of a request that one call answered.
func timesAddUp(row map[string]any) error {
	total, own, upstream := row["response_time"].(float64), row["gateway_processing_time"].(float64), row["upstream_response_time"].(float64)
	before, first := row["pre_processing_time"].(float64), row["time_to_first_byte"].(float64)
	const rounded = 0.01
	if upstream <= 0 || before <= 0 || own <= 0 || before+upstream > total+rounded || own > total || first > total+rounded || first+rounded < before {
		return fmt.Errorf("total %v, own %v, upstream %v, before %v, first byte %v", total, own, upstream, before, first)
	}
	return nil
}
