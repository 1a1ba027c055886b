package response

import (
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/responses"
)

// text is the text of the responses below: 325 tokens by the estimate.
var text = strings.Repeat("thirteen char", 100)

// wholes are responses that are complete except for the usage, in each response format of
// providers.
var wholes = map[string]struct {
	d    chat.Provider
	body string
}{
	"chat":        {openai.Chat{}, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `"},"finish_reason":"stop"}]}`},
	"completions": {openai.Completions{}, `{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"` + text + `","finish_reason":"stop"}]}`},
	"messages":    {anthropic.Messages{}, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"` + text + `"}],"stop_reason":"end_turn","stop_sequence":null}`},
	"responses":   {responses.Responses{}, `{"id":"resp_1","object":"response","created_at":1,"status":"completed","error":null,"model":"m","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"` + text + `","annotations":[]}]}]}`},
	"gemini":      {gemini.Generate{}, `{"candidates":[{"content":{"role":"model","parts":[{"text":"` + text + `"}]},"finishReason":"STOP","index":0}],"modelVersion":"m","responseId":"r"}`},
	"cohere":      {cohere.Chat{}, `{"id":"c","message":{"role":"assistant","content":[{"type":"text","text":"` + text + `"}]},"finish_reason":"COMPLETE"}`},
	"converse":    {converse.Converse{}, `{"output":{"message":{"role":"assistant","content":[{"text":"` + text + `"}]}},"stopReason":"end_turn","metrics":{"latencyMs":1}}`},
}

// A truncated response is charged for the part received, wherever it was truncated, in any
// format.
func TestTruncatedResponsesAreEstimatedByTheTextThatArrived(t *testing.T) {
	t.Parallel()
	for name, c := range wholes {
		start := strings.Index(c.body, text)
		for cut := start + 1; cut <= len(c.body); cut++ {
			b, ok := PartialConversation(c.d, &chat.Traits{}, []byte(c.body[:cut]))
			want := int64(min(cut-start, len(text))+3) / 4
			if got := b.Meter.OutputEstimate(); !ok || !b.HasOutput() && cut < len(c.body) || got != want {
				t.Errorf("%s cut at %d of %d: %d tokens, want %d, answered %t", name, cut, len(c.body), got, want, b.HasOutput())
				break
			}
		}
	}
}
