package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// A batch of 24 hours is handed to the provider's own batches. The gateway reads it until
// it has ended and books it once; then the gateway has its output.
func TestABatchThatTheProviderRuns(t *testing.T) {
	t.Parallel()
	for _, host := range []struct {
		jobHost
		options string
	}{
		{jobHost{provider: "openai", key: `"key":"mock-key",`, model: "gpt-4o-mini"}, ""},
		{claudeHost, ""},
		{bedrockHost, `,"role_arn":"arn:aws:iam::123456789012:role/batch"`},
	} {
		t.Run(host.provider, func(t *testing.T) {
			n := host.host(t)
			file := n.storeRows(n.mine, rowsFor("@common/"+host.model))
			made := n.call("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h","metadata":{"a":"b"},"gateway_options":{"x-gateway-virtual-key":"common"}%s}`, file, host.options), asGateway(n.mine)...)
			id, _ := made.json(t)["id"].(string)
			if made.status != 200 || !strings.HasPrefix(id, "gw_batch_") {
				t.Fatalf("%d %s", made.status, made.body)
			}
			b := n.ended(n.mine, id)
			if b["status"] != "completed" || fmt.Sprint(b["request_counts"]) != counts(2, 2, 0) || fmt.Sprint(b["metadata"]) != "map[a:b]" || b["completion_window"] != "24h" || b["input_file_id"] != file {
				t.Fatalf("%v", b)
			}
			out := n.fileRows(n.mine, b["output_file_id"])
			if len(out) != 2 || out[0].CustomID != "row 1." || out[0].Response == nil || out[0].Response.Status != 200 || !strings.Contains(string(out[0].Response.Body), `"chat.completion"`) || !strings.HasPrefix(b["output_file_id"].(string), "gw_file_") {
				t.Fatalf("%+v: %s", out, out[0].Response.Body)
			}
			details := n.call("GET", "/batches/"+id+"?include_provider_details=true", "", asGateway(n.mine)...).json(t)["provider_details"]
			if d, _ := details.(map[string]any); d == nil || d["status"] != "completed" || d["batch_id"] == "" || d["batch"] == nil {
				t.Errorf("%v", details)
			}
			if got := n.call("GET", "/batches/"+id+"?include_provider_details=maybe", "", asGateway(n.mine)...); got.status != 400 {
				t.Errorf("%d %s", got.status, got.body)
			}
			eventually(t, func() error {
				got, want := booked(archived(t, n.g)), billed(n.running)
				if got.output != want.output || got.input != want.input || want.output == 0 {
					return fmt.Errorf("our books %+v, the bill %+v", got, want)
				}
				return nil
			})
		})
	}
}

// What the provider rejects ends the batch with its words.
func TestABatchThatTheProviderRefuses(t *testing.T) {
	t.Parallel()
	n := bedrockHost.host(t)
	file := n.storeRows(n.mine, rowsFor(bedrockHost.model))
	b := n.ended(n.mine, n.id("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h","gateway_options":{"x-gateway-virtual-key":"common"}}`, file), asGateway(n.mine)...))
	if b["status"] != "failed" || !strings.Contains(fmt.Sprint(b["errors"]), "role_arn") {
		t.Errorf("%v", b)
	}
}

// A batch that a provider runs is canceled there.
func TestABatchAtTheProviderIsCancelled(t *testing.T) {
	t.Parallel()
	base, cancelled := slowProvider(t)
	r := start(t)
	r.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":"Slow","slug":"slow","provider":"openai","key":"of-the-provider","workspace_id":"default","customHost":%q}`, base))
	file := r.storeRows(workspaceKey, chatRows(2, "gpt-4o-mini", greeting))
	id := r.id("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h","gateway_options":{"x-gateway-virtual-key":"slow"}}`, file), asGateway(workspaceKey)...)
	r.runsThere(id)
	if got := r.call("POST", "/batches/"+id+"/cancel", "", asGateway(workspaceKey)...); got.status != 200 || got.json(t)["status"] != "cancelling" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if b := r.ended(workspaceKey, id); b["status"] != "cancelled" || b["cancelled_at"] == nil || cancelled.Load() != 1 {
		t.Errorf("cancelled %d times: %v", cancelled.Load(), b)
	}
}

// runsThere waits until a batch is at work at its provider.
func (r *running) runsThere(id string) {
	r.t.Helper()
	eventually(r.t, func() error {
		b := r.call("GET", "/batches/"+id+"?include_provider_details=true", "", asGateway(workspaceKey)...).json(r.t)
		if d, _ := b["provider_details"].(map[string]any); d == nil || d["status"] != "in_progress" {
			return fmt.Errorf("%v", b)
		}
		return nil
	})
}

// slowProvider is a provider with OpenAI's format whose batches run until they are cancelled,
// and have used something by then.
func slowProvider(t *testing.T) (base string, cancelled *atomic.Int32) {
	t.Helper()
	cancelled = new(atomic.Int32)
	batch := func(w http.ResponseWriter, _ *http.Request) {
		status, more := "in_progress", ""
		if cancelled.Load() > 0 {
			status, more = "cancelled", `,"model":"gpt-4o-mini","usage":{"input_tokens":30,"output_tokens":7,"total_tokens":37}`
		}
		fmt.Fprintf(w, `{"id":"batch_slow","object":"batch","input_file_id":"file-slow","endpoint":"/v1/chat/completions","completion_window":"24h","status":%q,"created_at":1%s}`, status, more)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/files", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id":"file-slow","object":"file","bytes":1,"created_at":1,"filename":"f","purpose":"batch"}`)
	})
	mux.HandleFunc("POST /v1/batches", batch)
	mux.HandleFunc("GET /v1/batches/batch_slow", batch)
	mux.HandleFunc("POST /v1/batches/batch_slow/cancel", func(w http.ResponseWriter, r *http.Request) {
		cancelled.Add(1)
		batch(w, r)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL + "/v1", cancelled
}

// A batch of a key that is revoked is canceled at the provider, and what it cost
// until then is recorded as the key's.
func TestABatchAtTheProviderEndsWithItsKey(t *testing.T) {
	t.Parallel()
	base, cancelled := slowProvider(t)
	r := start(t)
	r.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":"Slow","slug":"slow","provider":"openai","key":"of-the-provider","workspace_id":"default","customHost":%q}`, base))
	made := r.admin("POST", "/api-keys/workspace/service", `{"name":"gone soon","workspace_id":"default","scopes":["completions.write"]}`)
	key := made["key"].(string)
	file := r.storeRows(key, chatRows(2, "gpt-4o-mini", greeting))
	id := r.id("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h","gateway_options":{"x-gateway-virtual-key":"slow"}}`, file), asGateway(key)...)
	r.runsThere(id)
	if cancelled.Load() != 0 {
		t.Fatal("it was cancelled with a valid key")
	}
	r.admin("DELETE", "/api-keys/"+made["id"].(string), "")
	b := r.ended(workspaceKey, id)
	if b["status"] != "cancelled" || b["cancelling_at"] == nil || cancelled.Load() != 1 || !strings.Contains(fmt.Sprint(b["errors"]), "so it was cancelled: Invalid API key") {
		t.Errorf("cancelled %d times: %v", cancelled.Load(), b)
	}
	eventually(t, func() error {
		for _, rec := range archived(t, r.g) {
			if rec.Usage.TotalTokens() == 37 {
				if rec.KeyID != made["id"] || rec.WorkspaceSlug != "default" || rec.Cost == 0 {
					t.Errorf("booked as %+v", rec)
				}
				return nil
			}
		}
		return fmt.Errorf("what the batch used is not booked")
	})
}
