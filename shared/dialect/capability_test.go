package dialect_test

import (
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/testkit/golden"
)

// featureRequests are bodies of each client that ask for one thing; each has what a target must be
// known not to do for a rejection, and the field that the rejection names.
var featureRequests = map[string][]struct{ name, body, field string }{
	"openai": {
		{"tools", `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}]}`, "tools"},
		{"tools", `{"model":"m","messages":[{"role":"user","content":"x"}],"functions":[{"name":"f"}]}`, "functions"},
		{"images", `{"model":"m","messages":[{"role":"system","content":"x"},{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]}`, "messages[1].content[1]"},
		{"images", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}]}`, "messages[0].content[0]"},
		{"documents", `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}]}]}`, "messages[0].content[0]"},
		{"audio", `{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]}`, "messages[0].content[0]"},
		{"stream", `{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true}`, "stream"},
		{"several", `{"model":"m","messages":[{"role":"user","content":"x"}],"n":2}`, "n"},
		{"logprobs", `{"model":"m","messages":[{"role":"user","content":"x"}],"logprobs":true,"top_logprobs":2}`, "logprobs"},
		{"schema", `{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object"}}}}`, "response_format"},
		{"json", `{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_object"}}`, "response_format"},
		{"thinking", `{"model":"m","max_tokens":4000,"messages":[{"role":"user","content":"x"}],"thinking":{"type":"enabled","budget_tokens":1024}}`, "thinking"},
	},
	"completions": {
		{"stream", `{"model":"m","prompt":"x","stream":true}`, "stream"},
		{"several", `{"model":"m","prompt":"x","n":2}`, "n"},
		{"logprobs", `{"model":"m","prompt":"x","logprobs":2}`, "logprobs"},
	},
	"anthropic": {
		{"tools", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`, "tools"},
		{"images", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}]}]}`, "messages[0].content[0]"},
		{"images", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}]}]}`, "messages[0].content[1].content[1]"},
		{"documents", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}]}]}`, "messages[0].content[0]"},
		{"stream", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"stream":true}`, "stream"},
		{"schema", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}}`, "output_config.format"},
		{"thinking", `{"model":"m","max_tokens":4000,"messages":[{"role":"user","content":"x"}],"thinking":{"type":"enabled","budget_tokens":1024}}`, "thinking"},
	},
	"responses": {
		{"tools", `{"model":"m","input":"x","tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]}`, "tools"},
		{"images", `{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/a.png"}]}]}`, "input[0].content[0]"},
		{"documents", `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"x"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}]}]}`, "input[0].content[1]"},
		{"stream", `{"model":"m","input":"x","stream":true}`, "stream"},
		{"schema", `{"model":"m","input":"x","text":{"format":{"type":"json_schema","name":"a","schema":{"type":"object"}}}}`, "text.format"},
		{"json", `{"model":"m","input":"x","text":{"format":{"type":"json_object"}}}`, "text.format"},
	},
}

var limited = map[string]chat.Traits{
	"tools": {Limits: chat.Limits{NoTools: true}}, "images": {Limits: chat.Limits{NoImages: true}}, "documents": {Limits: chat.Limits{NoDocuments: true}},
	"audio": {Limits: chat.Limits{NoAudio: true}}, "stream": {Limits: chat.Limits{NoStream: true}}, "several": {Limits: chat.Limits{NoSeveral: true}},
	"logprobs": {Limits: chat.Limits{NoLogprobs: true}}, "json": {Limits: chat.Limits{NoJSON: true}}, "thinking": {Limits: chat.Limits{NoThinking: true}},
	"schema": {Schema: chat.SchemaNone},
}

// TestWhatATargetCannotDoIsRefused asks every provider's dialect for each thing that a
// target may be known not to do. For bodies that are forwarded it asks every client's own
// dialect.
func TestWhatATargetCannotDoIsRefused(t *testing.T) {
	for client, list := range featureRequests {
		for _, w := range list {
			traits := limited[w.name]
			check := func(where string, err error) {
				t.Helper()
				if err == nil {
					t.Errorf("%s of %s to %s is not refused", w.name, client, where)
					return
				}
				if f := fault.From(err); f.Status() != 400 || f.Field != w.field || f.Message == "" {
					t.Errorf("%s of %s to %s: %d %q %q", w.name, client, where, f.Status(), f.Field, f.Message)
				}
			}
			decoded := func() *chat.Request {
				r, err := golden.Clients[client].DecodeRequest([]byte(w.body))
				if err != nil {
					t.Fatalf("%s of %s: %v", w.name, client, err)
				}
				return r
			}
			var checked chat.Checked
			if err := golden.Clients[client].Check([]byte(w.body), &checked); err != nil {
				t.Errorf("%s of %s is out of bounds: %v", w.name, client, err)
			}
			if !traits.MayExceed([]byte(w.body), nil) || !traits.MayExceed([]byte(w.body), &checked) {
				t.Errorf("%s of %s is not looked at when it is passed on", w.name, client)
			}
			check("its own dialect", chat.CheckSupport(golden.Clients[client], decoded(), &traits, &chat.Loss{StrictResponse: true}))
			if err := chat.CheckSupport(golden.Clients[client], decoded(), &chat.Traits{}, &chat.Loss{StrictResponse: true}); err != nil {
				t.Errorf("%s of %s is refused without a limit: %v", w.name, client, err)
			}
			for name, d := range golden.Providers {
				if client == "anthropic" && w.name == "thinking" && name != client {
					continue // see TestThinkingOfMessagesIsLeftOut
				}
				traits.Provider = "p"
				_, err := chat.Translate(nil, golden.Clients[client], d, decoded(), &traits, &chat.Loss{StrictResponse: true})
				check(name, err)
			}
		}
	}
}

// TestLimitsLetEverythingElsePass: what is said but does not ask for what is limited
// continues.
func TestLimitsLetEverythingElsePass(t *testing.T) {
	every := chat.Traits{Schema: chat.SchemaNone, Limits: chat.Limits{
		NoTools: true, NoImages: true, NoDocuments: true, NoAudio: true, NoStream: true, NoLogprobs: true, NoSeveral: true, NoJSON: true, NoThinking: true,
	}}
	for client, bodies := range map[string][]string{
		"openai": {
			`{"model":"m","messages":[{"role":"user","content":"an image, \"tools\", audio and json"}],"n":1,"stream":false,"logprobs":false,"tools":[],"response_format":{"type":"text"},"thinking":{"type":"disabled"}}`,
			`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none","reasoning_effort":"high"}`,
		},
		"anthropic": {
			`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}]}],"thinking":{"type":"adaptive"}}`,
		},
		"responses": {`{"model":"m","input":"x","text":{"format":{"type":"text"}},"reasoning":{"effort":"low"}}`},
	} {
		for _, body := range bodies {
			r, err := golden.Clients[client].DecodeRequest([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			if err := chat.CheckSupport(golden.Clients[client], r, &every, &chat.Loss{StrictResponse: true}); err != nil {
				t.Errorf("%s %s: %v", client, body, err)
			}
		}
	}
	// Clients that do not rely on the exact shape are told what is lost.
	r, err := golden.Clients["openai"].DecodeRequest([]byte(featureRequests["openai"][8].body))
	if err != nil {
		t.Fatal(err)
	}
	var loss chat.Loss
	if err := chat.CheckSupport(golden.Clients["openai"], r, &every, &loss); err != nil || loss.Header() == "" {
		t.Errorf("%v %q", err, loss.Header())
	}
}

// TestThinkingOfMessagesIsLeftOut: Anthropic's clients ask every model for thinking. For
// a model of another shape that cannot think it is omitted, and reported. A later target
// that can think still gets it.
func TestThinkingOfMessagesIsLeftOut(t *testing.T) {
	client := golden.Clients["anthropic"]
	body := []byte(`{"model":"m","max_tokens":4000,"messages":[{"role":"user","content":"x"}],"thinking":{"type":"enabled","budget_tokens":1024,"display":"summarized"}}`)
	never := chat.Traits{Provider: "p", Thinking: chat.ThinksNever, Limits: chat.Limits{NoThinking: true}}
	for name, d := range golden.Providers {
		if d.Name() == client.Name() {
			continue
		}
		r, err := client.DecodeRequest(body)
		if err != nil {
			t.Fatal(err)
		}
		reasoning := r.Reasoning
		var loss chat.Loss
		out, err := chat.Translate(nil, client, d, r, &never, &loss)
		if f := fault.From(err); err != nil && f.Field != "thinking" && f.Status() == 400 {
			continue // wires that take no such conversation at all
		}
		if err != nil || strings.Contains(strings.ToLower(string(out)), "thinking") || !strings.Contains(loss.Header(), "thinking (this model does not think)") {
			t.Errorf("%s: %v %q\n%s", name, err, loss.Header(), out)
		}
		if r.Reasoning != reasoning {
			t.Errorf("%s: the next target is asked for %+v", name, r.Reasoning)
		}
		if _, err := chat.Translate(nil, client, d, r, &never, &chat.Loss{Strict: true}); err == nil || fault.From(err).Field != "thinking" {
			t.Errorf("%s: whoever wants nothing lost is told %v", name, err)
		}
	}
}
