package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"gateway/shared/provider"
	"gateway/shared/usage"
)

// hostileTargets are providers by the dialect that they speak, with the name of an
// error event of theirs.
var hostileTargets = []struct{ id, event string }{
	{"openai", "server_error"}, {"anthropic", "overloaded_error"}, {"google", "INTERNAL"}, {"bedrock", "modelStreamErrorException"}, {"cohere", "internal"},
}

// hostile are responses that are not what was asked for. A whole one is correct all the same:
// the client must get all of it.
var hostile = []struct {
	name, directives string
	stream, whole    bool
}{
	{"a page", "html", false, false},
	{"nothing", "empty", false, false},
	{"not JSON", "garbage", false, false},
	{"half of the JSON", "garbage=after:60", false, false},
	{"less than was announced", "wrong-length", false, false},
	{"compressed unasked", "gzip", false, true},
	{"10 MB", "huge=10485760", false, true},
	{"a page for a stream", "html", true, false},
	{"nothing for a stream", "empty", true, false},
	{"no event", "cut=after:0", true, false},
	{"cut between events", "chunks=12 cut=after:5", true, false},
	{"cut in an event", "chunks=12 cut=mid:5", true, false},
	{"garbage after events", "chunks=12 garbage=after:5", true, false},
	{"an error after events", "chunks=12 error-event=EVENT after=5", true, false},
	{"an error at once", "error-event=EVENT after=0", true, false},
	{"cut characters", "split-utf8", true, true},
	{"compressed stream", "chunks=5 gzip", true, true},
	{"a line of 10 MB", "chunks=5 huge-line=10485760", true, true},
}

// TestHostileAnswers gives every client every bad response in every dialect.
// In a row: it counts the goroutines of this process.
//
//lane:standard
func TestHostileAnswers(t *testing.T) {
	m := newMatrix(t)
	before := runtime.NumGoroutine()
	type tried struct {
		w             *cellRequest
		name          string
		stream, whole bool
	}
	var mu sync.Mutex
	all, requests := map[string]tried{}, 0
	var wg sync.WaitGroup
	for _, target := range hostileTargets {
		p, _ := provider.ByID(target.id)
		m.save(p)
		wg.Go(func() {
			for _, c := range clients[:3] {
				for _, h := range hostile {
					column := colPlain
					if h.stream {
						column = colStream
					}
					if strings.Contains(h.directives, "huge") && (c.operation != provider.Chat || target.id != "openai" && target.id != "anthropic") {
						continue // passed on once and translated once is enough
					}
					if target.id == "bedrock" && h.stream && strings.Contains(h.directives, "gzip") {
						continue // frames are not compressed
					}
					directives := strings.ReplaceAll(h.directives, "EVENT", target.event)
					mu.Lock()
					requests++
					mu.Unlock()
					w := m.send(p, c.operation, column, c.path, strings.Replace(c.bodies[column], "mock: say=Hello there", "mock: "+directives, 1))
					name := fmt.Sprintf("%s, %s of %s", h.name, c.operation, target.id)
					mu.Lock()
					all[w.tag] = tried{w, name, h.stream, h.whole}
					mu.Unlock()
					checkHostile(t, name, &c, w, h.stream, h.whole)
				}
			}
		})
	}
	wg.Wait()
	eventually(t, func() error {
		if open := m.mock.Bill().Open; open != 0 {
			return fmt.Errorf("%d rows of the bill are open", open)
		}
		return nil
	})
	list := make([]*cellRequest, 0, len(all))
	for _, a := range all {
		list = append(list, a.w)
	}
	m.billed(list...)
	recorded := map[string]*usage.Record{}
	for _, rec := range m.records(requests) {
		recorded[tagForm.FindString(rec.Model)] = &rec
	}
	for tag, a := range all {
		rec := recorded[tag]
		if rec == nil {
			t.Errorf("%s: not in the log", a.name)
			continue
		}
		if (rec.ErrorCode == "") != a.whole {
			t.Errorf("%s: the log says error %q, whole %v", a.name, rec.ErrorCode, a.whole)
		}
		if a.w.bill == nil {
			t.Errorf("%s: not on the bill", a.name)
			continue
		}
		// A piece that was made and never sent is on the bill only, and a stream that
		// nobody can read is not read to its end.
		// Where nothing of a response came, nothing is recorded.
		unread := strings.HasPrefix(a.name, "garbage after") || strings.HasPrefix(a.name, "not JSON")
		if made := a.w.bill.Output + a.w.bill.Reasoning; rec.Usage.OutputTokens() < made-1 && !rec.Usage.Estimated && !unread || rec.Usage.OutputTokens() > made && !rec.Usage.Estimated {
			t.Errorf("%s: %d tokens in the log, %d on the bill, not marked as estimated", a.name, rec.Usage.OutputTokens(), made)
		}
	}
	eventually(t, func() error {
		if now := runtime.NumGoroutine(); now > before+30 {
			return fmt.Errorf("%d goroutines, %d before", now, before)
		}
		return nil
	})
}

// checkHostile checks one response against what the client may get: all of it, or an error in
// its own dialect, or a stream that does not look complete at its end.
func checkHostile(t *testing.T, name string, c *client, w *cellRequest, stream, whole bool) {
	t.Helper()
	body := w.body
	if len(body) > 600 {
		body = body[:300] + " ... " + body[len(body)-300:]
	}
	switch {
	case whole && stream:
		if s, err := c.stream([]byte(w.body)); w.status != 200 || err != nil || s.Text == "" {
			t.Errorf("%s: %d %v %s", name, w.status, err, body)
		}
	case whole:
		var v any
		if err := json.Unmarshal([]byte(w.body), &v); w.status != 200 || err != nil || c.read(v).text == "" {
			t.Errorf("%s: %d %v %s", name, w.status, err, body)
		}
	case w.status >= 400:
		var v map[string]any
		if err := json.Unmarshal([]byte(w.body), &v); err != nil {
			t.Errorf("%s: %d, not JSON: %s", name, w.status, body)
			return
		}
		if textAt(v, "error", "message") == "" || textAt(v, "error", "type") == "" || c.operation == provider.Messages && v["type"] != "error" {
			t.Errorf("%s: %d is no error of the client's dialect: %s", name, w.status, body)
		}
	case stream && w.status == 200:
		if _, err := c.stream([]byte(w.body)); err == nil || strings.Contains(w.body, "[DONE]") || strings.Contains(w.body, `"message_stop"`) || strings.Contains(w.body, `"response.completed"`) {
			t.Errorf("%s ends as if it were whole: %s", name, body)
		}
		if list := events(w.body); len(list) == 0 || !strings.Contains(list[len(list)-1], `"error"`) {
			t.Errorf("%s: the last event is no error: %s", name, body)
		}
	default:
		t.Errorf("%s: %d %s", name, w.status, body)
	}
}
