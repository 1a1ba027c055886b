package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/resource"
	"gateway/shared/testkit/awstest"
)

// TestARevokedKeyIsRefusedInEveryProcess runs two gateways in processes of their
// own on one DynamoDB endpoint, keeps a key warm in both and revokes it through
// the first. Answers to requests that begin MaxStale after the revocation was
// answered must be rejections in the second too.
// In a row: it sets the environment.
func TestARevokedKeyIsRefusedInEveryProcess(t *testing.T) {
	awstest.Start(t)
	first := spawn(t, t.TempDir(), "-store", "aws")
	second := spawn(t, t.TempDir(), "-store", "aws", "-mock=false")
	request := chatBody("gpt-4o-mini", "Hello", "")
	for _, change := range []struct{ name, method, body string }{
		{"deleted", "DELETE", ""},
		{"stripped of its scope", "PUT", `{"scopes":["logs.view"]}`},
		{"expired", "PUT", `{"expires_at":"%s"}`},
		{"limited to nothing", "PUT", `{"rate_limits":[{"type":"requests","unit":"rpd","value":0}]}`},
	} {
		t.Run(change.name, func(t *testing.T) {
			id, key := first.makeKey(t)
			for _, p := range []*process{first, second} {
				if status := p.chat(t, key, request); status != http.StatusOK {
					t.Fatalf("before the change: %d", status)
				}
			}
			warm, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { second.useRepeatedly(warm, key, request) })
			body, end := change.body, time.Now()
			if change.name == "expired" {
				end = end.Add(2 * time.Second)
				body = fmt.Sprintf(body, end.UTC().Format(time.RFC3339Nano))
			}
			first.change(t, change.method, "/api-keys/"+id, body)
			pause(t.Context(), max(resource.MaxStale, time.Until(end)))
			stop()
			wg.Wait()
			for _, p := range []*process{first, second} {
				if status := p.chat(t, key, request); status == http.StatusOK {
					t.Error("the key still opens a process")
				}
			}
		})
	}
}

// useRepeatedly uses a key again and again, whatever the responses are.
func (p *process) useRepeatedly(ctx context.Context, key, body string) {
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, "POST", p.base+"/chat/completions", strings.NewReader(body))
		if err != nil {
			return
		}
		req.Header.Set("X-Gateway-Api-Key", key)
		req.Header.Set("X-Gateway-Provider", "@mock")
		req.Header.Set("Content-Type", "application/json")
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
}

// makeKey makes a workspace key and gives its id and raw form.
func (p *process) makeKey(t *testing.T) (id, key string) {
	t.Helper()
	got := p.send(t, "POST", "/api-keys/workspace/service", adminKey, `{"name":"short-lived","workspace_id":"default","scopes":["completions.write"]}`)
	made := got.json(t)
	return made["id"].(string), made["key"].(string)
}

func (p *process) change(t *testing.T, method, path, body string) {
	t.Helper()
	if got := p.send(t, method, path, adminKey, body); got.status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, got.status, got.body)
	}
}

func (p *process) chat(t *testing.T, key, body string) int {
	t.Helper()
	return p.send(t, "POST", "/chat/completions", key, body).status
}

func (p *process) send(t *testing.T, method, path, key, body string) reply {
	t.Helper()
	r := running{t: t, base: p.base}
	return r.call(method, path, body, "X-Gateway-Api-Key", key, "X-Gateway-Provider", "@mock")
}
