package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// hook is a receiver of webhooks that counts events which are signed as they should be.
type hook struct {
	mu     sync.Mutex
	secret string
	events map[string]int
	bodies string
}

func (h *hook) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	raw, _ := io.ReadAll(req.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	reader, err := standardwebhooks.NewWebhook(h.secret)
	if err != nil || reader.VerifyIgnoringTimestamp(raw, req.Header) != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	for _, kind := range []string{"budget.threshold_reached", "budget.exhausted", "api_key.rotated", "invite.sent"} {
		if strings.Contains(string(raw), fmt.Sprintf("%q:%q", "type", kind)) {
			h.events[kind]++
		}
	}
	h.bodies += string(raw)
}

// A budget that is used up, a key that is rotated and an invitation reach a webhook
// signed, once each, and people by mail.
func TestEventsReachWebhooksAndPeople(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := startIn(t, dir)
	in := &hook{events: map[string]int{}}
	server := httptest.NewServer(in)
	t.Cleanup(server.Close)
	made := r.admin("POST", "/webhooks", fmt.Sprintf(`{"name":"Ops","url":%q}`, server.URL))
	in.mu.Lock()
	in.secret = made["secret"].(string)
	in.mu.Unlock()
	key := r.newKey(`"usage_limits":{"type":"tokens","credit_limit":2000,"alert_threshold":500},"alert_emails":["team@example.com"]`)
	for status := 0; status != 412; {
		got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", `,"max_tokens":20`), "X-Gateway-Api-Key", key)
		if got.status != 200 && got.status != 412 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		status = got.status
	}
	r.admin("POST", "/api-keys/"+r.keyID("a key of the tests")+"/rotate", `{}`)
	r.admin("POST", "/admin/users/invites", `{"email":"new@example.com","role":"admin"}`)
	workspace := r.admin("GET", "/workspaces/default", "")["name"].(string)
	mailed := func() (threshold, exhausted int) {
		all, _ := filepath.Glob(filepath.Join(dir, "mail", "*.eml"))
		for _, name := range all {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.ReplaceAll(string(raw), "=\r\n", ""); strings.Contains(text, "To: team@example.com") {
				for _, line := range []string{"key: a key of the tests", "workspace: " + workspace} {
					if !strings.Contains(text, line) {
						t.Fatalf("no %q in %s", line, text)
					}
				}
				threshold += strings.Count(text, "event: threshold")
				exhausted += strings.Count(text, "event: exhausted")
			}
		}
		return threshold, exhausted
	}
	eventually(t, func() error {
		in.mu.Lock()
		defer in.mu.Unlock()
		threshold, exhausted := mailed()
		if fmt.Sprint(in.events) != "map[api_key.rotated:1 budget.exhausted:1 budget.threshold_reached:1 invite.sent:1]" || threshold != 1 || exhausted != 1 {
			return fmt.Errorf("the webhook got %v, people %d and %d mails", in.events, threshold, exhausted)
		}
		return nil
	})
	// A delivery is noted after its receiver has answered.
	eventually(t, func() error {
		log := r.call("GET", "/webhooks/"+made["id"].(string)+"/deliveries?status=delivered", "", "X-Gateway-Api-Key", adminKey)
		if n := strings.Count(log.body, `"delivery"`); n != 4 {
			return fmt.Errorf("%d deliveries: %d %s", n, log.status, log.body)
		}
		return nil
	})
	in.mu.Lock()
	defer in.mu.Unlock()
	if strings.Contains(in.bodies, key) || strings.Contains(in.bodies, "token=") || strings.Contains(in.bodies, in.secret) {
		t.Error("an event has a secret")
	}
}
