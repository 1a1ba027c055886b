package batch

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"gateway/shared/queue"
	"gateway/shared/store"
)

// Step is the body of a message that requests one step of a batch.
type Step struct {
	Org       string `json:"org"`
	Workspace string `json:"workspace"`
	Batch     string `json:"batch"`
	Step      int64  `json:"step"`
	Sweep     bool   `json:"sweep,omitempty"`   // instead: look for stalled batches
	Awaited   []byte `json:"awaited,omitempty"` // instead: poll the response named by Batch; see Awaited
}

// Scope is the workspace of the batch.
func (s Step) Scope() store.Scope { return store.Scope{Org: s.Org, Workspace: s.Workspace} }

// Message returns the message for a step, after a delay.
func Message(sc store.Scope, batch string, step int64, delay time.Duration) queue.Outgoing {
	return message(Step{Org: sc.Org, Workspace: sc.Workspace, Batch: batch, Step: step}, delay)
}

func message(s Step, delay time.Duration) queue.Outgoing {
	body, _ := json.Marshal(s) // texts, bytes and a number
	out := queue.Outgoing{Group: s.Org, Body: body, Delay: min(max(delay, 0), queue.MaxDelay)}
	if out.Check() != nil {
		out.Group = "" // not a valid group id
	}
	return out
}

// SweepMessage returns the message that starts a search for stalled batches.
func SweepMessage() queue.Outgoing { return queue.Outgoing{Body: []byte(`{"sweep":true}`)} }

// ReadMessage reads the body of a message.
func ReadMessage(body []byte) (s Step, err error) {
	if err := json.Unmarshal(body, &s); err != nil {
		return s, fmt.Errorf("managed: message: %w", err)
	}
	if !s.Sweep && (s.Org == "" || s.Workspace == "" || s.Batch == "") {
		return s, fmt.Errorf("managed: message without a batch")
	}
	return s, nil
}

// Headers returns the headers that a batch's options set.
func Headers(options map[string]string) http.Header {
	h := make(http.Header, len(options)+6)
	for name, v := range options {
		if v != "" {
			h.Set(name, v)
		}
	}
	return h
}
