package dialect_test

import (
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/testkit/golden"
)

// TestWordsThatAreNotKnownPass sends values of enumerated fields that no table has: no
// check rejects them, and a translation takes the closest value and says so.
func TestWordsThatAreNotKnownPass(t *testing.T) {
	const tools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]`
	for client, bodies := range map[string][]string{
		"openai": {
			`{"model":"m",` + tools + `,"tool_choice":"WORD","messages":[{"role":"user","content":"Hi"}]}`,
			`{"model":"m",` + tools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"WORD","tools":[{"type":"function","function":{"name":"f"}}]}},"messages":[{"role":"user","content":"Hi"}]}`,
			`{"model":"m","response_format":{"type":"WORD"},"messages":[{"role":"user","content":"Hi"}]}`,
		},
		"responses": {
			`{"model":"m","tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}}}],"tool_choice":"WORD","input":"Hi"}`,
			`{"model":"m","text":{"format":{"type":"WORD"}},"input":"Hi"}`,
		},
		"anthropic": {
			`{"model":"m","max_tokens":9,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"WORD"},"messages":[{"role":"user","content":"Hi"}]}`,
			`{"model":"m","max_tokens":9,"output_config":{"format":{"type":"WORD"}},"messages":[{"role":"user","content":"Hi"}]}`,
		},
		"gemini": {`{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"WORD"}}}`},
		"cohere": {`{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}],"tool_choice":"WORD","messages":[{"role":"user","content":"Hi"}]}`},
	} {
		d := golden.AllClients()[client]
		for _, body := range bodies {
			body := []byte(strings.Replace(body, "WORD", "of_tomorrow", 1))
			if err := d.Check(body, new(chat.Checked)); err != nil {
				t.Errorf("%s: %s: %v", client, body, err)
				continue
			}
			for name, provider := range golden.Providers {
				if provider.Name() == d.Name() || name == "completions" {
					continue
				}
				r, err := d.DecodeRequest(body)
				if err != nil {
					t.Errorf("%s: %s: %v", client, body, err)
					break
				}
				r.Model = "m"
				loss := chat.Loss{}
				if _, err := chat.Translate(nil, d, provider, r, &chat.Traits{Schema: chat.SchemaNative}, &loss); err != nil {
					if !strings.Contains(err.Error(), "only completes texts") {
						t.Errorf("%s to %s: %v", client, name, err)
					}
				} else if !strings.Contains(loss.Header(), "not known; treated as") {
					t.Errorf("%s to %s: %s: lost %q", client, name, body, loss.Header())
				}
			}
		}
	}
}

// TestValidatedCallsAtGoogle: the one new word that a wire knows goes there as it is.
func TestValidatedCallsAtGoogle(t *testing.T) {
	d := golden.Clients["openai"]
	r, err := d.DecodeRequest([]byte(`{"model":"m","tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"validated","messages":[{"role":"user","content":"Hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	loss := chat.Loss{}
	sent, err := chat.Translate(nil, d, golden.Providers["gemini"], r, &chat.Traits{}, &loss)
	if err != nil || !strings.Contains(string(sent), `"mode":"VALIDATED"`) || !loss.Empty() {
		t.Errorf("%s, lost %q (%v)", sent, loss.Header(), err)
	}
}
