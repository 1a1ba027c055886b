package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"gateway/shared/pricing"
)

// Interactions of Gemini are booked by what their answers tell, once, and belong to the
// workspace that made them.
func TestInteractionsAreBookedAndOwned(t *testing.T) {
	t.Parallel()
	const usage = `"usage":{"total_input_tokens":1000,"total_cached_tokens":400,"total_output_tokens":200,"total_thought_tokens":50,"total_tool_use_tokens":30,"total_tokens":1280,
		"input_tokens_by_modality":[{"modality":"audio","tokens":100}],"grounding_tool_count":[{"type":"google_search","count":2}]}`
	done := func(id string) string {
		return fmt.Sprintf(`{"id":%q,"model":"gemini-2.5-flash","status":"completed",%s}`, id, strings.ReplaceAll(usage, "\n\t\t", ""))
	}
	var asked atomic.Int64
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked.Add(1)
		body, _ := io.ReadAll(req.Body)
		w.Header().Set("Content-Type", "application/json")
		switch _, id, _ := strings.Cut(req.URL.Path, "/interactions/"); {
		case id != "":
			id, _, _ = strings.Cut(id, "/")
			_, _ = io.WriteString(w, done(id))
		case strings.Contains(string(body), `"background":true`):
			_, _ = io.WriteString(w, `{"id":"later_1","model":"gemini-2.5-flash","status":"in_progress"}`)
		case strings.Contains(string(body), `"stream":true`):
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"event_type":"interaction.created","interaction":{"id":"stream_1","status":"in_progress"}}`+"\n\n"+
				`data: {"event_type":"step.delta","delta":{"type":"text","text":"Hi"}}`+"\n\n"+
				`data: {"event_type":"interaction.completed","interaction":`+done("stream_1")+"}\n\n")
		case strings.Contains(string(body), "neighbour"):
			_, _ = io.WriteString(w, done("other_1"))
		default:
			_, _ = io.WriteString(w, done("plain_1"))
		}
	}))
	t.Cleanup(host.Close)
	r := start(t)
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"G","slug":"common","ai_provider_id":"google","key":"k","configurations":{"custom_host":%q}}`, host.URL))
	r.admin("PUT", "/integrations/common/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	var keys [2]string
	for i := range keys {
		ws := r.admin("POST", "/workspaces", fmt.Sprintf(`{"name":"Neighbour %d"}`, i))
		keys[i] = r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"]}`, ws["id"]))["key"].(string)
	}
	const at = "/v1beta/interactions"
	if got := r.call("POST", at, `{"model":"gemini-2.5-flash","input":"neighbour"}`, as(keys[1])...); got.status != 200 { // who also uses the credential
		t.Fatalf("%d %s", got.status, got.body)
	}
	free, charged := false, true
	calls := []struct {
		method, path, body string
		charged            bool
	}{
		{"POST", at, `{"model":"gemini-2.5-flash","input":"x"}`, charged},
		{"GET", at + "/plain_1", "", free},
		{"POST", at, `{"model":"gemini-2.5-flash","input":"x","stream":true}`, charged},
		{"POST", at + "/stream_1/cancel", "", free},
		{"POST", at, `{"model":"gemini-2.5-flash","input":"x","previous_interaction_id":"stream_1"}`, charged},
		{"POST", at, `{"model":"gemini-2.5-flash","input":"x","background":true}`, free},
		{"GET", at + "/later_1", "", charged},
		{"GET", at + "/later_1", "", free},
	}
	for _, c := range calls {
		if got := r.call(c.method, c.path, c.body, as(keys[0])...); got.status != 200 {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, got.status, got.body)
		}
	}
	for i, rec := range r.byTime(len(calls) + 1)[1:] {
		c, told := calls[i], ""
		for class := range pricing.NumClasses {
			if n, ok := rec.Usage.Get(class); ok && class != pricing.Requests {
				told += fmt.Sprintf("%s=%d ", class, n)
			}
		}
		want := ""
		if c.charged {
			want = "input=530 cache_read=400 audio_in=100 output=200 reasoning=50 web_searches=2 "
		}
		if told != want || rec.Cost > 0 != c.charged {
			t.Errorf("%s %s %s: %s, cost %v", c.method, c.path, c.body, told, rec.Cost)
		}
	}
	before := asked.Load()
	for _, c := range [][3]string{
		{"GET", at + "/stream_1", ""}, {"GET", at + "/later_1", ""}, {"POST", at + "/later_1/cancel", ""}, {"DELETE", at + "/stream_1", ""},
		{"GET", "/proxy" + at + "/stream_1", ""},
		{"POST", at, `{"model":"gemini-2.5-flash","input":"x","previous_interaction_id":"stream_1"}`},
	} {
		if got := r.call(c[0], c[1], c[2], as(keys[1])...); got.status != 404 {
			t.Errorf("%s %s %s of another workspace: %d %s", c[0], c[1], c[2], got.status, got.body)
		}
	}
	if n := asked.Load() - before; n != 0 {
		t.Errorf("%d requests reached the provider", n)
	}
}
