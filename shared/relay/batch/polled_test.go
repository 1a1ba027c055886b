package batch

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"gateway/shared/queue"
	"gateway/shared/store"
)

// An awaited response is sealed in its message, for its own workspace only, and each poll is
// later than the previous one, up to the longest delay of a queue.
func TestAnAwaitedResponseTravelsSealed(t *testing.T) {
	s, _ := batches(t)
	a := &PolledResponse{ID: "resp_1", Place: "openai", Org: true, Key: "hash", Creator: Creator{KeyID: "k"}, Headers: http.Header{"Authorization": {"Bearer sk-of-the-client"}}, Created: 7}
	var before time.Duration
	for a.Polls = range 12 {
		out, err := s.SchedulePoll(t.Context(), mine, a)
		if err != nil || out.Delay < before || out.Delay > queue.MaxDelay || a.Polls == 0 && out.Delay != time.Minute {
			t.Fatalf("look %d: %v after %v: %v", a.Polls, out.Delay, before, err)
		}
		before = out.Delay
		if bytes.Contains(out.Body, []byte("sk-of-the-client")) {
			t.Fatalf("the message tells a credential: %s", out.Body)
		}
		step, err := ReadMessage(out.Body)
		if err != nil || step.Scope() != mine || step.Awaited == nil {
			t.Fatalf("%+v, %v", step, err)
		}
		got, err := s.OpenPolled(t.Context(), step)
		if err != nil || got.ID != a.ID || got.Polls != a.Polls || !got.Org || got.Headers.Get("Authorization") == "" || got.Created != 7 {
			t.Fatalf("%+v, %v", got, err)
		}
		for _, other := range []Step{
			{Org: mine.Org, Workspace: "another", Batch: step.Batch, Awaited: step.Awaited},
			{Org: mine.Org, Workspace: mine.Workspace, Batch: "resp_2", Awaited: step.Awaited},
			{Org: mine.Org, Workspace: mine.Workspace, Batch: step.Batch, Awaited: step.Awaited[1:]},
			{Org: mine.Org, Workspace: mine.Workspace, Batch: step.Batch, Awaited: []byte("{}")},
		} {
			if got, err := s.OpenPolled(t.Context(), other); err == nil {
				t.Errorf("%+v is read as %+v", other, got)
			}
		}
	}
	if before != queue.MaxDelay {
		t.Errorf("the last wait is %v", before)
	}
	if b, err := s.Get(t.Context(), store.Scope{Org: mine.Org, Workspace: mine.Workspace}, a.ID); b != nil || err != nil {
		t.Errorf("a response is not a batch: %v, %v", b, err)
	}
}
