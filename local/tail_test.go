package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// tailing follows logs as a client of server-sent events does.
type tailing struct {
	t     *testing.T
	lines *bufio.Scanner
	mark  string // of the last log
}

func (r *running) tail(key, after string) *tailing {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.base+"/logs/tail", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-Gateway-Api-Key", key)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		r.t.Fatal(resp.Status)
	}
	f := &tailing{t: r.t, lines: bufio.NewScanner(resp.Body)}
	f.lines.Buffer(nil, 1<<20)
	f.next() // how soon to come again
	return f
}

// next is the next event; "end" at the end.
func (f *tailing) next() (name string, data map[string]any) {
	f.t.Helper()
	for f.lines.Scan() {
		switch key, value, _ := strings.Cut(f.lines.Text(), ": "); key {
		case "":
			return name, data
		case "event":
			name = value
		case "id":
			f.mark = value
		case "data":
			if err := json.Unmarshal([]byte(value), &data); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	return "end", nil
}

// logs are the models of the next n logs.
func (f *tailing) logs(n int) (models []string) {
	f.t.Helper()
	for len(models) < n {
		name, data := f.next()
		if name == "log" {
			models = append(models, fmt.Sprint(data["ai_model"]))
		} else if name != "" { // a comment keeps the connection
			f.t.Fatalf("%s %v behind %v", name, data, models)
		}
	}
	return models
}

// Logs are followed while they come, further on where the connection broke, and no
// longer than the key is good.
func TestLogsAreFollowedLive(t *testing.T) {
	t.Parallel()
	r := start(t)
	send := func(model string) {
		if got := r.call("POST", "/chat/completions", chatBody("@mock/"+model, "Hello", "")); got.status != 200 {
			t.Fatal(got.body)
		}
	}
	send("gpt-4o")
	r.records(1)
	made := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"looks","workspace_id":%q,"scopes":["logs.list"]}`, r.workspace()))
	f, shared := r.tail(made["key"].(string), ""), r.tail(workspaceKey, "")
	send("gpt-4o-mini")
	for _, each := range []*tailing{f, shared} {
		if got := each.logs(1); !strings.HasPrefix(got[0], "gpt-4o-mini") {
			t.Errorf("got %v", got)
		}
	}
	send("gpt-4.1")
	send("gpt-4.1-mini")
	r.records(4)
	again := r.tail(workspaceKey, f.mark)
	if got := again.logs(2); !strings.HasPrefix(got[0], "gpt-4.1") || !strings.HasPrefix(got[1], "gpt-4.1") || got[0] == got[1] {
		t.Errorf("got %v", got)
	}
	f.logs(2)
	r.admin("DELETE", "/api-keys/"+made["id"].(string), "")
	if name, data := f.next(); name != "refused" || data["success"] != false {
		t.Errorf("%s %v", name, data)
	}
	if name, _ := f.next(); name != "end" {
		t.Error("a tail outlives its key")
	}
}
