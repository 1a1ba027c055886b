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
	"gateway/shared/usage"
)

// lateCost is what a response of the provider later costs, in nano-dollars of
// gpt-4o-mini.
const lateCost = 100*150 + 50*600

// soon has responses in the background looked at without a long wait.
func soon(g *gateway) { g.relay.Batches().FirstPoll = 10 * time.Millisecond }

// moody is the provider later, that answers reads as mood says: "" as usual.
type moody struct {
	later
	mood  string // "making": nothing ends; "down", "unknown", "cancelled", "failed"
	reads int    // how often a response was read in another mood than making
}

func newMoody(t *testing.T) (*moody, string) {
	t.Helper()
	m := &moody{later: later{reads: map[string]int{}}}
	host := httptest.NewServer(m)
	t.Cleanup(host.Close)
	return m, host.URL + "/v1"
}

// ServeHTTP implements http.Handler.
func (m *moody) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet {
		id := req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:]
		m.mu.Lock()
		mood := m.mood
		if mood != "making" {
			m.reads++
		}
		reads := m.reads
		m.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case mood == "making":
			_, _ = io.WriteString(w, m.object(id, "in_progress"))
			return
		case mood == "down" && reads < 4:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":{"message":"we are down","type":"server_error"}}`)
			return
		case mood == "unknown":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":{"message":"no such response","type":"invalid_request_error"}}`)
			return
		case mood == "cancelled":
			_, _ = io.WriteString(w, strings.Replace(m.object(id, "completed"), `"status":"completed"`, `"status":"cancelled"`, 1))
			return
		case mood == "failed":
			_, _ = io.WriteString(w, m.object(id, "failed"))
			return
		}
	}
	m.later.ServeHTTP(w, req)
}

func (m *moody) be(mood string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mood = mood
}

// looks is how often a response was read.
func (m *moody) looks() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reads
}

func (r *running) makeLater(path string, h ...string) (id string) {
	r.t.Helper()
	got := r.call("POST", path, `{"model":"gpt-4o-mini","input":"Hello","background":true}`, append(h, "X-Gateway-Trace-Id", "trace-of-"+strings.Trim(path, "/"))...)
	_, id, _ = strings.Cut(got.body, `"id":"`)
	if id, _, _ = strings.Cut(id, `"`); got.status != 200 || id == "" {
		r.t.Fatalf("%s: %d %s", path, got.status, got.body)
	}
	return id
}

// costing waits for n records that cost something, and gives all.
func (r *running) costing(n int) (all, paid []usage.Record) {
	r.t.Helper()
	eventually(r.t, func() error {
		all, paid = archived(r.t, r.g), nil
		for _, rec := range all {
			if rec.Cost > 0 {
				paid = append(paid, rec)
			}
		}
		if len(paid) < n {
			return fmt.Errorf("%d of %d records cost something", len(paid), n)
		}
		return nil
	})
	return all, paid
}

// A response in the background that nobody reads is recorded once, to the key that made it.
// This holds for the gateway's own route and for pass-through, for the provider's saved
// credential and for the client's, and when the process stopped between the response's
// making and its end.
func TestUnreadBackgroundResponsesAreRecorded(t *testing.T) {
	t.Parallel()
	_, host := newMoody(t)
	dir := t.TempDir()
	r := startIn(t, dir, soon)
	r.save("later", `"ai_provider_id":"openai","key":"sk-later","configurations":{"custom_host":"`+host+`"}`)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":5}`)
	own := []string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", "@later"}
	brought := []string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", "openai", "X-Gateway-Custom-Host", host, "Authorization", "Bearer sk-brought"}
	r.makeLater("/responses", own...)
	r.makeLater("/proxy/responses", own...)
	r.makeLater("/responses", brought...)
	all, paid := r.costing(3)
	ids := map[string]string{}
	for _, rec := range all {
		ids[rec.ID] = rec.TraceID
	}
	for _, rec := range paid {
		if int64(rec.Cost) != lateCost || rec.Method != "GET" || !strings.HasPrefix(rec.TraceID, "trace-of-") || ids[rec.ParentSpanID] != rec.TraceID || rec.KeyID == "" {
			t.Errorf("%+v", rec)
		}
	}
	eventually(t, func() error { return usageIs(r, key, 3*lateCost) })
	if len(all) != 6 {
		t.Errorf("%d records: looks that book nothing leave none", len(all))
	}
	r.stop()
	r = startIn(t, dir, func(g *gateway) { g.relay.Batches().FirstPoll = time.Second })
	r.makeLater("/responses", own...)
	r.stop()
	r = startIn(t, dir, soon)
	r.costing(4)
	eventually(t, func() error { return usageIs(r, key, 4*lateCost) })
}

// What a client's reads and the gateway's own book at the same time is recorded once.
func TestAResponseIsBookedOnceWhoeverReadsIt(t *testing.T) {
	t.Parallel()
	m, host := newMoody(t)
	r := startIn(t, t.TempDir(), soon)
	r.save("later", `"ai_provider_id":"openai","key":"sk-later","configurations":{"custom_host":"`+host+`"}`)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":5}`)
	h := []string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", "@later"}
	const n = 8
	var wg sync.WaitGroup
	for range n {
		id := r.makeLater("/responses", h...)
		for range 3 {
			wg.Go(func() {
				if got := r.call("GET", "/responses/"+id, "", h...); got.status != 200 {
					t.Errorf("%d %s", got.status, got.body)
				}
			})
		}
	}
	wg.Wait()
	r.costing(n)
	m.be("failed") // from here on no read could book anything
	r.makeLater("/responses", h...)
	r.records(n + 3*n + 1)
	if _, paid := r.costing(n); len(paid) != n {
		t.Errorf("%d records cost something", len(paid))
	}
	eventually(t, func() error { return usageIs(r, key, n*lateCost) })
}

// A response is also booked if its key was deleted, if it was canceled, and if the
// provider was down for a while. The gateway stops asking for a response that the provider
// no longer knows, or that failed and used nothing.
func TestHowAResponseInTheBackgroundMayEnd(t *testing.T) {
	t.Parallel()
	for _, mood := range []string{"", "down", "cancelled", "unknown", "failed"} {
		t.Run("mood "+mood, func(t *testing.T) {
			t.Parallel()
			m, host := newMoody(t)
			r := startIn(t, t.TempDir(), soon)
			r.save("later", `"ai_provider_id":"openai","key":"sk-later","configurations":{"custom_host":"`+host+`"}`)
			made := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"gone soon","workspace_id":%q,"scopes":["completions.write"]}`, r.workspace()))
			m.be("making")
			r.makeLater("/responses", "X-Gateway-Api-Key", made["key"].(string), "X-Gateway-Provider", "@later")
			r.admin("DELETE", "/api-keys/"+made["id"].(string), "")
			m.be(mood)
			if mood == "unknown" || mood == "failed" {
				wanted := map[string]int{"unknown": 3, "failed": 1}[mood]
				eventually(t, func() error {
					left, err := r.g.core.RunQueue.(*local.Queue).Depth(t.Context())
					if err != nil || left != (local.Depth{}) || m.looks() < wanted {
						return fmt.Errorf("%d looks, %+v left, %v", m.looks(), left, err)
					}
					return nil
				})
				if n := m.looks(); n != wanted {
					t.Errorf("%d looks", n)
				}
				return
			}
			_, paid := r.costing(1)
			if len(paid) != 1 || int64(paid[0].Cost) != lateCost || paid[0].KeyID != made["id"] {
				t.Errorf("%+v", paid)
			}
		})
	}
}
