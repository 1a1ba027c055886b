package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// later is a provider that makes responses in the background: a response has usage only
// after it was read a few times.
type later struct {
	mu    sync.Mutex
	made  int
	reads map[string]int
}

// readyAfter is how many reads tell that a response is still being made.
const readyAfter = 2

func (l *later) object(id, status string) string {
	usage := "null"
	if status == "completed" {
		usage = `{"input_tokens":100,"input_tokens_details":{"cached_tokens":0},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":150}`
	}
	background := !strings.HasPrefix(id, "resp_now")
	return fmt.Sprintf(`{"id":%q,"object":"response","created_at":1,"status":%q,"background":%v,"error":null,"incomplete_details":null,"model":"gpt-4o-mini","output":[],"usage":%s}`, id, status, background, usage)
}

// ServeHTTP implements http.Handler.
func (l *later) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	body, _ := io.ReadAll(req.Body)
	id := strings.TrimSuffix(req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:], "/cancel")
	status := "completed"
	if req.Method == http.MethodPost {
		l.made++
		id = fmt.Sprintf("resp_%d", l.made)
		switch {
		case strings.Contains(string(body), `"stream":true`):
		case strings.Contains(string(body), `"background":true`):
			status = "queued"
		default:
			id = fmt.Sprintf("resp_now%d", l.made)
		}
	} else if l.reads[id]++; l.reads[id] <= readyAfter {
		status = "in_progress"
	}
	if !strings.Contains(string(body), `"stream":true`) && req.URL.Query().Get("stream") != "true" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, l.object(id, status))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":%s}\n\n", l.object(id, "in_progress"))
	fmt.Fprintf(w, "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":1,\"response\":%s}\n\n", l.object(id, "completed"))
}

// A response that is made in the background is recorded once, by the first response that tells
// its usage, on the gateway's own routes and passed through. A response that was made at
// once is not booked again when it is read.
func TestResponsesInTheBackgroundAreBookedOnce(t *testing.T) {
	t.Parallel()
	const cost = 100*150 + 50*600 // nano-dollars of gpt-4o-mini
	cases := []struct {
		name, base, body string
		read             string // query of the reads
		booked           []int  // 1 for each response that costs
	}{
		{"own", "/responses", `"background":true`, "", []int{0, 0, 0, 1, 0}},
		{"own, read streamed", "/responses", `"background":true`, "?stream=true", []int{0, 1, 0, 0, 0}},
		{"own, streamed", "/responses", `"background":true,"stream":true`, "", []int{1, 0, 0, 0, 0}},
		{"own, at once", "/responses", `"background":false`, "", []int{1, 0, 0, 0, 0}},
		{"raw", "/proxy/responses", `"background":true`, "", []int{0, 0, 0, 1, 0}},
		{"raw, read streamed", "/proxy/responses", `"background":true`, "?stream=true", []int{0, 1, 0, 0, 0}},
		{"raw, streamed", "/proxy/v1/responses", `"background":true,"stream":true`, "", []int{1, 0, 0, 0, 0}},
		{"raw, at once", "/proxy/responses", `"store":true`, "", []int{1, 0, 0, 0, 0}},
	}
	host := httptest.NewServer(&later{reads: map[string]int{}})
	t.Cleanup(host.Close)
	r := start(t)
	r.save("later", `"ai_provider_id":"openai","key":"sk-later","configurations":{"custom_host":"`+host.URL+`/v1"}`)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":5}`)
	h := []string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", "@later"}
	requests := 0
	for _, c := range cases {
		got := r.call("POST", c.base, `{"model":"gpt-4o-mini","input":"Hello",`+c.body+`}`, h...)
		_, id, _ := strings.Cut(got.body, `"id":"`)
		if id, _, _ = strings.Cut(id, `"`); got.status != 200 || !strings.HasPrefix(id, "resp_") {
			t.Fatalf("%s: %d %s", c.name, got.status, got.body)
		}
		for range len(c.booked) - 1 {
			if got := r.call("GET", c.base+"/"+id+c.read, "", h...); got.status != 200 || !strings.Contains(got.body, id) {
				t.Fatalf("%s: %d %s", c.name, got.status, got.body)
			}
		}
		requests += len(c.booked)
	}
	records := r.byTime(requests)
	for _, c := range cases {
		for i, booked := range c.booked {
			rec := records[0]
			if records = records[1:]; int64(rec.Cost) != int64(booked)*cost || rec.Usage.Estimated || rec.Usage.TotalTokens() != int64(booked)*150 {
				t.Errorf("%s, %d: %s costs %d, %+v", c.name, i, rec.Path, rec.Cost, rec.Usage)
			}
		}
	}
	eventually(t, func() error { return usageIs(r, key, int64(len(cases))*cost) })
}
