package dialect_test

import (
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/fault"
	"gateway/shared/testkit/golden"
)

// TestThreadsAreRejectedWithoutStorage sends a thread to providers of every shape: what
// Anthropic's SDK then sends is the whole conversation.
func TestThreadsAreRejectedWithoutStorage(t *testing.T) {
	for thread, want := range map[string]fault.Code{
		`{"type":"create"}`: fault.ThreadUnsupported,
		`{"type":"continue","previous_message_id":"msg_1"}`: fault.ThreadNotFound,
	} {
		body := []byte(`{"model":"m","max_tokens":9,"thread":` + thread + `,"messages":[{"role":"user","content":"Hi"}]}`)
		for name, d := range golden.Providers {
			r, err := anthropic.Messages{}.DecodeRequest(body)
			if err != nil {
				t.Fatal(err)
			}
			traits := chat.Traits{NoThreads: d.Name() == "anthropic.messages"} // as of Vertex
			if _, err := chat.Translate(nil, anthropic.Messages{}, d, r, &traits, &chat.Loss{}); !fault.Is(err, want) {
				t.Errorf("%s, %s: %v", name, thread, err)
			}
		}
		r, _ := anthropic.Messages{}.DecodeRequest(body)
		if err := r.ThreadError(false); err != nil {
			t.Errorf("Anthropic itself: %v", err)
		}
	}
}
