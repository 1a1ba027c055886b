package provider

import "testing"

// A provider whose only conversations are responses serves every client by them.
func TestConversationsByResponsesOnly(t *testing.T) {
	p := &Provider{ID: "only", Dialect: OpenAIChat, Routes: []Route{{Op: ResponsesCreate, Path: "/responses"}}}
	for op, client := range map[Operation]string{Chat: OpenAIChat, Completions: OpenAICompletions, Messages: AnthropicMessages, ResponsesCreate: OpenAIResponses} {
		if d, up, ok := p.UpstreamDialect(op, client); d != OpenAIResponses || up != ResponsesCreate || !ok {
			t.Errorf("%s: %q %q %t", op, d, up, ok)
		}
	}
	if _, _, ok := p.UpstreamDialect(Embeddings, OpenAI); ok {
		t.Error("embeddings are no conversation")
	}
}
