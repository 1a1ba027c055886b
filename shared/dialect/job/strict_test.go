package job

import (
	"context"
	"net/http"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// A strict client hears what a provider cannot be told before anything is sent.
func TestStrictBatchesAreRefusedBeforeTheyAreMade(t *testing.T) {
	for _, jobs := range []chat.Jobs{Anthropic{}, Mistral{}, TogetherAI{}, Fireworks{}, Cohere{}} {
		j := &chat.Job{
			Operation: "batches_create", Loss: &chat.Loss{Strict: true}, Field: func(string) string { return "field" },
			Files: &room{files: map[string][2]string{"f": {"batch", chatRows}}, notes: map[string][]byte{}},
			Conversation: func(string, string) (*chat.Conversation, error) {
				return nil, fault.Invalid("model", "the rows are not to be looked at")
			},
			Call: func(_ context.Context, c *chat.JobCall) (*http.Response, error) {
				t.Errorf("%s: %s %s was sent", jobs.Name(), c.Method, c.Operation)
				return nil, fault.Unavailable(nil)
			},
			Body: []byte(`{"input_file_id":"f","endpoint":"/v1/chat/completions","completion_window":"24h","role_arn":"arn:aws:iam::1:role/r"}`),
		}
		if _, err := jobs.Do(t.Context(), j); !fault.Is(err, fault.TranslationLoss) {
			t.Errorf("%s: %v", jobs.Name(), err)
		}
	}
}
