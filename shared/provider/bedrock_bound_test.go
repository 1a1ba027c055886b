package provider

import "testing"

// TestTheBoundOfAChatIsNeverLost holds what is made of it for OpenAI's models at Bedrock.
func TestTheBoundOfAChatIsNeverLost(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"model":"m","max_tokens":100}`:                              `{"max_completion_tokens":100,"model":"m"}`,
		`{"max_tokens":100,"max_completion_tokens":null,"model":"m"}`: `{"max_completion_tokens":100,"model":"m"}`,
		`{"max_tokens":100,"max_completion_tokens":7}`:                `{"max_completion_tokens":7}`,
		`{"max_completion_tokens":7}`:                                 `{"max_completion_tokens":7}`,
		`{"model":"m"}`:                                               `{"model":"m"}`,
	} {
		if got := string(completionTokens([]byte(body))); got != want {
			t.Errorf("%s: %s", body, got)
		}
	}
}
