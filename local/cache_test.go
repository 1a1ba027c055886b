package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/local/mockprovider"
)

const simpleCache = `{"cache":{"mode":"simple"}}`

const semanticCache = `{"cache":{"mode":"semantic","embedder":{"provider":"@mock","model":"text-embedding-3-small"}}}`

// cached sends a request with a cache and expects a status of the cache. Headers
// come as name, value pairs.
func (r *running) cached(want, path, body string, headers ...string) reply {
	r.t.Helper()
	if !slices.Contains(headers, "X-Gateway-Config") {
		headers = append(headers, "X-Gateway-Config", simpleCache)
	}
	got := r.call("POST", path, body, headers...)
	if status := got.header.Get("X-Gateway-Cache-Status"); got.status != http.StatusOK || status != want {
		r.t.Fatalf("%s %s: %d, cache status %q, want %s: %s", path, body, got.status, status, want, got.body)
	}
	return got
}

// outsideMock is a provider that keeps its address when the gateway restarts, because the
// address is part of the cache's key.
func outsideMock(t *testing.T) string {
	t.Helper()
	m := mockprovider.New(mockprovider.Options{})
	addr, err := m.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return "http://" + strings.TrimPrefix(addr, "http://") + "/v1"
}

func TestAnswersOutliveARestart(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), outsideMock(t)
	r := startIn(t, dir)
	body := `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Do you remember the old harbour town?"}]}`
	direct := []string{"X-Gateway-Provider", "openai", "X-Gateway-Custom-Host", outside, "Authorization", "Bearer sk-of-the-caller", "X-Gateway-Config", semanticCache}
	r.cached("SEMANTIC MISS", "/chat/completions", body, direct...)
	r.cached("HIT", "/chat/completions", body, direct...)
	r.stop()
	r = startIn(t, dir)
	r.cached("HIT", "/chat/completions", body, direct...)
}

func TestVectorsOutliveARestart(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), outsideMock(t)
	r := startIn(t, dir)
	direct := []string{"X-Gateway-Provider", "openai", "X-Gateway-Custom-Host", outside, "Authorization", "Bearer sk-of-the-caller", "X-Gateway-Config", semanticCache}
	r.cached("SEMANTIC MISS", "/chat/completions", chatBody("gpt-4o-mini", "Do you remember the old harbour town", ""), direct...)
	r.stop()
	r = startIn(t, dir)
	r.cached("SEMANTIC HIT", "/chat/completions", chatBody("gpt-4o-mini", "The old harbour town: do you remember", ""), direct...)
}

func TestAnEmbedderThatIsLateIsAMissThatIsPaid(t *testing.T) {
	t.Parallel()
	r := startIn(t, t.TempDir(), func(g *gateway) { g.relay.CacheTimes.Embed = 100 * time.Millisecond })
	config := []string{"X-Gateway-Config", semanticCache}
	body := chatBody("@mock/gpt-4o-mini", "The embedder is late", "")
	if err := r.mock.Fault(1, "delay=1s"); err != nil { // of the embedding, which is asked for first
		t.Fatal(err)
	}
	r.cached("SEMANTIC MISS", "/chat/completions", body, config...)
	r.cached("HIT", "/chat/completions", body, config...)
	if all := r.records(3); len(all) != 3 {
		t.Errorf("%d records", len(all))
	}
	if got, want := booked(archived(t, r.g)), billed(r); got != want || want.requests != 2 {
		t.Errorf("booked %+v, billed %+v", got, want)
	}
}

func TestASemanticCacheNeedsAnEmbedderToBeSaved(t *testing.T) {
	t.Parallel()
	r := start(t)
	for body, field := range map[string]string{
		`{"cache":{"mode":"semantic"}}`:                                              "cache.embedder",
		`{"cache":{"mode":"semantic","embedder":{"provider":"openai","model":"m"}}}`: "cache.embedder.provider",
		`{"cache":{"mode":"semantic","embedder":{"provider":"@mock"}}}`:              "cache.embedder.model",
	} {
		got := r.call("POST", "/configs", `{"name":"c","workspace_id":"default","config":`+body+`}`, "X-Gateway-Api-Key", adminKey)
		if got.status != 400 || !strings.Contains(got.body, field) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	saved := r.admin("POST", "/configs", `{"name":"c","workspace_id":"default","config":`+semanticCache+`}`)
	slug := saved["data"].(map[string]any)["slug"].(string)
	body := chatBody("@mock/gpt-4o-mini", "By a saved config", "")
	r.cached("SEMANTIC MISS", "/chat/completions", body, "X-Gateway-Config", slug)
	r.cached("HIT", "/chat/completions", body, "X-Gateway-Config", slug)
}
