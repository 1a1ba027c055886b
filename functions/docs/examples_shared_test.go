package docs

import "testing"

// TestDocumentsShareNoExamples requires that a change of one document's examples leaves those of
// the next as they are: processes with several gateways build several at the same time.
func TestDocumentsShareNoExamples(t *testing.T) {
	t.Parallel()
	made := func() map[string]any {
		doc := map[string]any{"paths": map[string]any{"/realtime/client_secrets": map[string]any{"post": map[string]any{
			"requestBody": map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": map[string]any{"type": "object"}}}},
		}}}}
		addExamples(doc)
		var at any = doc
		for _, name := range []string{"paths", "/realtime/client_secrets", "post", "requestBody", "content", "application/json", "example", "session"} {
			at = at.(map[string]any)[name]
		}
		return at.(map[string]any)
	}
	first := made()
	first["model"] = "changed"
	if got := made()["model"]; got != "gpt-realtime" {
		t.Errorf("the next document has the model %v", got)
	}
}
