package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
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
