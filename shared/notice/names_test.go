package notice

import (
	"encoding/json"
	"strings"
	"testing"
)

// A mail says what people call the things whose ids an event has.
func TestMailsNameWhatEventsAreAbout(t *testing.T) {
	t.Parallel()
	budget := func(kind, id string) *Event {
		return &Event{Workspace: "ws-1", Summary: "The budget of " + kind + " " + id + " is exhausted", Data: map[string]string{"id": id}, Audience: Audience{Key: "key-1"}}
	}
	for name, c := range map[string]struct {
		event   *Event
		named   Names
		subject string
		lines   []string
	}{
		"a key":            {budget("key", "key-1"), Names{Workspace: "Shop", Key: "Checkout"}, `The budget of key "Checkout" is exhausted`, []string{"key: Checkout\n", "workspace: Shop\n", "workspace id: ws-1\n", "id: key-1\n"}},
		"a short name":     {budget("key", "key-1"), Names{Key: "k"}, `The budget of key "k" is exhausted`, []string{"key: k\n"}},
		"a name and an id": {&Event{Summary: `The key "Checkout" (key-1) ends`, Audience: Audience{Key: "key-1"}}, Names{Key: "Checkout"}, `The key "Checkout" (key-1) ends`, nil},
		"a workspace":      {budget("workspace", "ws-1"), Names{Workspace: "Shop"}, `The budget of workspace "Shop" is exhausted`, []string{"workspace: Shop\n", "workspace id: ws-1\n"}},
		"a policy":         {&Event{Workspace: "ws-1", Summary: "The budget of policy p-1 is exhausted", Data: map[string]string{"kind": "policy", "id": "p-1"}}, Names{Workspace: "Shop", Subject: "Team red"}, `The budget of policy "Team red" is exhausted`, []string{"policy: Team red\n", "workspace: Shop\n", "id: p-1\n"}},
		"what is gone":     {budget("key", "key-1"), Names{}, "The budget of key key-1 is exhausted", []string{"workspace id: ws-1\n"}},
		"a name of lines":  {budget("key", "key-1"), Names{Key: "a\nBcc: b"}, `The budget of key "a Bcc: b" is exhausted`, []string{"key: a Bcc: b\n"}},
		"nothing with one": {&Event{Summary: "A key ends"}, Names{}, "A key ends", []string{"A key ends\n\n"}},
	} {
		body, err := payload(c.event, c.named)
		var sent struct{ Data map[string]string }
		if err != nil || json.Unmarshal(body, &sent) != nil || sent.Data["summary"] != c.subject || sent.Data["workspace_name"] != c.named.Workspace || sent.Data["key_name"] != c.named.Key || sent.Data["policy_name"] != c.named.Subject || sent.Data["id"] != c.event.Data["id"] {
			t.Errorf("%s: webhooks get %s, %v", name, body, err)
		}
		subject, text := c.event.mail(c.named)
		if subject != c.subject || !strings.HasPrefix(text, subject+"\n\n") {
			t.Errorf("%s: %q, %q", name, subject, text)
		}
		for _, line := range c.lines {
			if !strings.Contains(text, line) {
				t.Errorf("%s: no %q in %q", name, line, text)
			}
		}
	}
}
