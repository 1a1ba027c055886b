package guardrail

import (
	"context"
	"strconv"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/guard/chain"
)

// TestVerdictsOfASessionAreBounded checks that a session without records retains the latest
// ones.
func TestVerdictsOfASessionAreBounded(t *testing.T) {
	t.Parallel()
	var l Live
	const many = 10 * maxNotes
	for i := range many {
		l.note([]chain.Result{{ID: strconv.Itoa(i)}}, guard.Before)
	}
	got := l.take()
	if len(got) != maxNotes || got[maxNotes-1].Hook != strconv.Itoa(many-1) || cap(got) > 4*maxNotes {
		t.Errorf("%d verdicts in room for %d, the last of %s", len(got), cap(got), got[len(got)-1].Hook)
	}
	if len(l.take()) != 0 {
		t.Error("verdicts are told twice")
	}
}

// TestDocumentsInSessionsAreUnread: an item with a document is rejected as a request with one
// is.
func TestDocumentsInSessionsAreUnread(t *testing.T) {
	t.Parallel()
	const pdf = `{"input":[{"type":"message","role":"user","content":[{"type":"input_file","file_data":"data:application/pdf;base64,JVBERi0xLjcKJeLjz9MKMSAwIG9iag=="}]}]}`
	for more, want := range map[string]fault.Code{``: fault.GuardrailUnread, `,"allow_unread":["realtime"]`: ""} {
		l := &Live{kind: "realtime", call: chain.Call{Kind: "realtime", Now: time.Now}}
		k := &SessionGuardrails{live: l, in: chain.Hooks{localKit.Prepare(guard.ReadHook([]byte(`{"regexMatch":{"rule":"hunter2","not":true},"deny":true`+more+`}`), true, false))}}
		w := k.JudgeInput(context.Background(), []byte(pdf))
		if w.Denied != (want != "") || w.Denied && w.Denial().Code != want {
			t.Errorf("%s: %+v", more, w)
		}
		if w := k.JudgeInput(context.Background(), []byte(`{"input":"my hunter2"}`)); !w.Denied || w.Denial().Code != fault.GuardrailDenied {
			t.Errorf("%s: a text: %+v", more, w)
		}
	}
}
