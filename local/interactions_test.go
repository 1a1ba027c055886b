package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/queue/local"
)

// interactionCost is what an interaction of the provider working costs, in
// nano-dollars of gemini-2.5-flash.
const interactionCost = 100*300 + 50*2500

// working is a provider that works on interactions in its own time: each has ended
// once it was read twice.
type working struct {
	mu    sync.Mutex
	made  int
	reads map[string]int
	paths map[string]bool // of the reads
	end   string
}

// ServeHTTP implements http.Handler.
func (p *working) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	body, _ := io.ReadAll(req.Body)
	id, status := req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:], "in_progress"
	if req.Method == http.MethodPost {
		p.made++
		id = fmt.Sprintf("v1_%d", p.made)
	} else {
		p.paths[req.URL.Path] = true
		if p.reads[id]++; p.reads[id] > 2 {
			status = p.end
		}
	}
	usage := ""
	if status == p.end && p.end != "failed" {
		usage = `,"usage":{"total_input_tokens":100,"total_output_tokens":50,"total_tokens":150}`
	}
	w.Header().Set("Content-Type", "application/json")
	if strings.Contains(string(body), `"stream":true`) { // it breaks off before the end
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, `data: {"event_type":"interaction.created","interaction":{"id":%q,"status":"in_progress"}}`+"\n\n", id)
		return
	}
	fmt.Fprintf(w, `{"id":%q,"model":"gemini-2.5-flash","status":%q%s}`, id, status, usage)
}

// Interactions in the background that nobody reads are recorded once, to the key that made
// them. This also holds when the process stopped between their making and their end, when
// the stream that made one broke off, and when clients read at the same time.
func TestUnreadBackgroundInteractionsAreRecorded(t *testing.T) {
	t.Parallel()
	p := &working{reads: map[string]int{}, paths: map[string]bool{}, end: "completed"}
	host := httptest.NewServer(p)
	t.Cleanup(host.Close)
	dir := t.TempDir()
	r := startIn(t, dir, soon)
	r.save("later", `"ai_provider_id":"google","key":"k","configurations":{"custom_host":"`+host.URL+`"}`)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":5}`)
	own := []string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", "@later"}
	brought := []string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", "google", "X-Gateway-Custom-Host", host.URL, "Authorization", "Bearer brought"}
	begin := func(r *running, path, more string, h ...string) (id string) {
		t.Helper()
		got := r.call("POST", path, `{"model":"gemini-2.5-flash","input":"x","background":true`+more+`}`, append(h, "X-Gateway-Trace-Id", "trace-of-interactions")...)
		_, id, _ = strings.Cut(got.body, `"id":"`)
		if id, _, _ = strings.Cut(id, `"`); got.status != 200 || id == "" {
			t.Fatalf("%d %s", got.status, got.body)
		}
		return id
	}
	begin(r, "/v1beta/interactions", "", own...)
	begin(r, "/proxy/v1beta/interactions", "", own...)
	begin(r, "/v1beta/interactions", "", brought...)
	begin(r, "/v1beta/interactions", `,"stream":true`, own...)
	all, paid := r.costing(4)
	ids := map[string]string{}
	for _, rec := range all {
		ids[rec.ID] = rec.TraceID
	}
	for _, rec := range paid {
		if int64(rec.Cost) != interactionCost || rec.Method != "GET" || rec.TraceID != "trace-of-interactions" || ids[rec.ParentSpanID] != rec.TraceID || rec.KeyID == "" {
			t.Errorf("%+v", rec)
		}
	}
	if len(all) != 8 {
		t.Errorf("%d records: looks that book nothing leave none", len(all))
	}
	eventually(t, func() error { return usageIs(r, key, 4*interactionCost) })
	r.stop()
	r = startIn(t, dir, func(g *gateway) { g.relay.Batches().FirstPoll = time.Second })
	begin(r, "/v1beta/interactions", "", own...)
	r.stop()
	r = startIn(t, dir, soon)
	r.costing(5)
	var wg sync.WaitGroup
	for range 4 {
		id := begin(r, "/v1beta/interactions", "", own...)
		for range 3 {
			wg.Go(func() {
				if got := r.call("GET", "/v1beta/interactions/"+id, "", own...); got.status != 200 {
					t.Errorf("%d %s", got.status, got.body)
				}
			})
		}
	}
	wg.Wait()
	r.costing(9)
	r.idle()
	if _, paid := r.costing(9); len(paid) != 9 {
		t.Errorf("%d records cost something", len(paid))
	}
	eventually(t, func() error { return usageIs(r, key, 9*interactionCost) })
	p.mu.Lock()
	defer p.mu.Unlock()
	for path := range p.paths {
		if !strings.HasPrefix(path, "/v1beta/interactions/v1_") {
			t.Errorf("asked at %s", path)
		}
	}
}

// An interaction that ended without usage, or was left over its budget, is asked for
// no more.
func TestHowAnInteractionInTheBackgroundMayEnd(t *testing.T) {
	t.Parallel()
	for end, wanted := range map[string]int{"failed": 0, "budget_exceeded": 1, "requires_action": 1, "cancelled": 1} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			p := &working{reads: map[string]int{}, paths: map[string]bool{}, end: end}
			host := httptest.NewServer(p)
			t.Cleanup(host.Close)
			r := startIn(t, t.TempDir(), soon)
			r.save("later", `"ai_provider_id":"google","key":"k","configurations":{"custom_host":"`+host.URL+`"}`)
			if got := r.call("POST", "/v1beta/interactions", `{"model":"gemini-2.5-flash","input":"x","background":true}`, "X-Gateway-Api-Key", workspaceKey, "X-Gateway-Provider", "@later"); got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
			eventually(t, func() error {
				p.mu.Lock()
				defer p.mu.Unlock()
				if p.reads["v1_1"] < 3 {
					return fmt.Errorf("%d reads", p.reads["v1_1"])
				}
				return nil
			})
			r.idle()
			if _, paid := r.costing(wanted); len(paid) != wanted {
				t.Errorf("%d records cost something", len(paid))
			}
			if p.reads["v1_1"] != 3 {
				t.Errorf("%d reads", p.reads["v1_1"])
			}
		})
	}
}

// idle waits until no response or interaction is waited for.
func (r *running) idle() {
	r.t.Helper()
	eventually(r.t, func() error {
		left, err := r.g.core.RunQueue.(*local.Queue).Depth(r.t.Context())
		if err != nil || left != (local.Depth{}) {
			return fmt.Errorf("%+v left, %v", left, err)
		}
		return nil
	})
}

// An interaction that is read at its end, while its stream has not yet told it, is
// charged with the read alone.
func TestAnInteractionReadBeforeItsStreamEndsIsBookedOnce(t *testing.T) {
	t.Parallel()
	const done = `{"id":"race_1","model":"gemini-2.5-flash","status":"completed","usage":{"total_input_tokens":100,"total_output_tokens":20,"total_tokens":120}}`
	read := make(chan struct{})
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		if req.Method == "GET" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, done)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"event_type":"interaction.created","interaction":{"id":"race_1","status":"in_progress"}}`+"\n\n"+
			`data: {"event_type":"step.delta","delta":{"type":"text","text":"Hi"}}`+"\n\n")
		w.(http.Flusher).Flush()
		select {
		case <-read:
		case <-req.Context().Done():
		}
		_, _ = io.WriteString(w, `data: {"event_type":"interaction.completed","interaction":`+done+"}\n\n")
	}))
	t.Cleanup(host.Close)
	r := start(t)
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"G","slug":"racing","ai_provider_id":"google","key":"k","configurations":{"custom_host":%q}}`, host.URL))
	r.admin("PUT", "/integrations/racing/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	req, err := http.NewRequestWithContext(t.Context(), "POST", r.base+"/v1beta/interactions", strings.NewReader(`{"model":"gemini-2.5-flash","input":"x","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "X-Gateway-Api-Key": {workspaceKey}, "X-Gateway-Provider": {"@racing"}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := resp.Body.Read(make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	if got := r.call("GET", "/v1beta/interactions/race_1", "", "x-gateway-provider", "@racing"); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	close(read)
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	r.paidOnce(2, 120)
}

// paidOnce expects so many tokens in one of n records, which alone cost something.
func (r *running) paidOnce(n int, want int64) {
	r.t.Helper()
	tokens, priced := int64(0), 0
	for _, rec := range r.byTime(n) {
		tokens += rec.Usage.TotalTokens()
		if rec.Cost > 0 {
			priced++
		}
	}
	if tokens != want || priced != 1 {
		r.t.Errorf("%d tokens, %d records cost something", tokens, priced)
	}
}
