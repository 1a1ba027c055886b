package openai

import (
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
)

// TestReturnedReasoningIsPreserved: a host that drops the reasoning of earlier turns by default is told
// to keep it, and only when it gets some.
func TestReturnedReasoningIsPreserved(t *testing.T) {
	t.Parallel()
	for _, host := range hosts.Reasoners {
		for _, reasoned := range []bool{true, false} {
			call := &chat.ToolCall{ID: "c1", Name: "f", Arguments: "{}"}
			turn := chat.Message{Role: chat.Assistant, At: 1, Parts: []chat.Part{{Kind: chat.Call, Call: call}}}
			if reasoned {
				turn.Parts = append([]chat.Part{{Kind: chat.Reasoned, Text: "hm", Signature: host.Signature()}}, turn.Parts...)
			}
			r := &chat.Request{Model: "m", Messages: []chat.Message{
				{Role: chat.User, IsString: true, Parts: []chat.Part{{Kind: chat.Text, Text: "go"}}}, turn,
				{Role: chat.ToolRole, At: 2, Parts: []chat.Part{{Kind: chat.Result, Result: &chat.ToolResult{CallID: "c1", Plain: true, Parts: []chat.Part{{Kind: chat.Text, Text: "x"}}}}}},
			}}
			out, err := Chat{}.EncodeRequest(nil, r, &chat.Traits{Provider: host.Host}, &chat.Loss{})
			if err != nil {
				t.Fatal(err)
			}
			body := string(out)
			if strings.Contains(body, `"`+host.Field+`":"hm"`) != reasoned {
				t.Errorf("%s, reasoned %v: %s", host.Host, reasoned, body)
			}
			if want := reasoned && host.Host == "dashscope"; strings.Contains(body, `"preserve_thinking":true`) != want {
				t.Errorf("%s, reasoned %v: %s", host.Host, reasoned, body)
			}
		}
	}
}
