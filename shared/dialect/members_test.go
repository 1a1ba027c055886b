package dialect_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/testkit/golden"
)

// baseRequest is a request of two turns with a tool, to which a field is added.
func baseRequest(provider string) *chat.Request {
	r := &chat.Request{
		Dialect: "test", Model: "command-r", MaxTokens: chat.Some[int64](5000), MaxTokensField: "max_tokens",
		Messages: []chat.Message{{Role: chat.User, IsString: true, Parts: []chat.Part{{Kind: chat.Text, Text: "hi"}}}},
	}
	switch provider {
	case "palmtext", "generate", "ai21", "triton", "workersai": // which take nothing else
		r.Completion = &chat.Completion{Prompts: 1}
	}
	return r
}

// setters sets one field of a request to what cannot be taken for its absence.
var setters = map[string]func(r *chat.Request){
	"Model": func(r *chat.Request) { r.Model = "command-r-plus" },
	"Messages": func(r *chat.Request) {
		if r.Completion != nil { // each message is a prompt
			r.Completion.Prompts, r.Messages = 2, append(r.Messages, r.Messages[0])
			return
		}
		r.Messages = append(r.Messages, chat.Message{Role: chat.Assistant, At: 1, IsString: true, Parts: []chat.Part{{Kind: chat.Text, Text: "ho"}}},
			chat.Message{Role: chat.User, At: 2, IsString: true, Parts: []chat.Part{{Kind: chat.Text, Text: "and"}}})
	},
	"Tools": func(r *chat.Request) { r.Tools = tools() },
	"ToolChoice": func(r *chat.Request) {
		r.Tools, r.ToolChoice = tools(), chat.ToolChoice{Mode: chat.ToolsNamed, Name: "f"}
	},
	"Parallel":         func(r *chat.Request) { r.Tools, r.Parallel = tools(), chat.Some(false) },
	"Format":           func(r *chat.Request) { r.Format = chat.Format{Kind: chat.FormatJSON, Set: true} },
	"Reasoning":        func(r *chat.Request) { r.Reasoning.Effort = "high" },
	"MaxTokens":        func(r *chat.Request) { r.MaxTokens = chat.Some[int64](6000) },
	"Temperature":      func(r *chat.Request) { r.Temperature = chat.Some(0.5) },
	"TopP":             func(r *chat.Request) { r.TopP = chat.Some(0.5) },
	"TopK":             func(r *chat.Request) { r.TopK = chat.Some[int64](7) },
	"FrequencyPenalty": func(r *chat.Request) { r.FrequencyPenalty = chat.Some(0.5) },
	"PresencePenalty":  func(r *chat.Request) { r.PresencePenalty = chat.Some(0.5) },
	"Seed":             func(r *chat.Request) { r.Seed = chat.Some[int64](7) },
	"LogitBias":        func(r *chat.Request) { r.LogitBias = json.RawMessage(`{"7":1}`) },
	"Stop":             func(r *chat.Request) { r.Stop = []string{"END"} },
	"N":                func(r *chat.Request) { r.N = chat.Some[int64](2) },
	"Logprobs":         func(r *chat.Request) { r.Logprobs = chat.Some(true) },
	"TopLogprobs":      func(r *chat.Request) { r.Logprobs, r.TopLogprobs = chat.Some(true), chat.Some[int64](2) },
	"User":             func(r *chat.Request) { r.User = "u-1" },
	"ServiceTier":      func(r *chat.Request) { r.ServiceTier = "flex" },
	"Completion":       func(r *chat.Request) { r.Completion = &chat.Completion{Prompts: 1, Suffix: "the end"} },
	"Extra":            func(r *chat.Request) { r.Extra = []chat.Field{{Name: "extra", Raw: json.RawMessage(`"x"`)}} },
	"Assumed":          func(r *chat.Request) { r.Assume("response_format.type", "text") },
	"UnknownFields":    func(r *chat.Request) { r.UnknownFields = []string{"messages[0].mood"} },
}

// byAddress are the fields that are in the address of the call for some providers, or that
// do not concern the model.
var byAddress = map[string]bool{"Model": true, "Stream": true, "IncludeUsage": true}

func tools() []chat.Tool {
	return []chat.Tool{{Name: "f", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)}}
}

// TestNoMemberIsDroppedInSilence goes through the fields of a request. Each is named in
// chat.Members. Each field alone changes every provider's body, or the report names it,
// or the request is rejected because of it.
func TestNoMemberIsDroppedInSilence(t *testing.T) {
	t.Parallel()
	paths := map[string]string{}
	for _, m := range chat.Members {
		paths[m.Field] = m.Path
	}
	walked := reflect.TypeFor[chat.Request]()
	if walked.NumField() != len(chat.Members) {
		t.Errorf("%d members, %d of them in chat.Members", walked.NumField(), len(chat.Members))
	}
	for i := range walked.NumField() {
		name := walked.Field(i).Name
		path, known := paths[name]
		if !known {
			t.Errorf("%s is not in chat.Members", name)
			continue
		}
		set := setters[name]
		if set == nil {
			if path != "" && !byAddress[name] {
				t.Errorf("%s is not tried", name)
			}
			continue
		}
		if byAddress[name] {
			continue
		}
		for provider, d := range golden.Providers {
			if provider == "completions" {
				continue // its texts are sent as the client wrote them, never translated
			}
			traits := chat.Traits{Provider: "p", Family: "cohere"}
			plain, err := d.EncodeRequest(nil, baseRequest(provider), &traits, &chat.Loss{})
			if err != nil {
				t.Fatalf("%s: %v", provider, err)
			}
			r := baseRequest(provider)
			set(r)
			if without := baseRequest(provider); len(r.Tools) > 0 && name != "Tools" { // only the choice counts
				without.Tools = tools()
				if out, err := d.EncodeRequest(nil, without, &traits, &chat.Loss{}); err == nil {
					plain = out
				}
			}
			var loss chat.Loss
			out, err := d.EncodeRequest(nil, r, &traits, &loss)
			if f := fault.From(err); err != nil {
				if f.Status() != 400 || f.Field == "" {
					t.Errorf("%s to %s: %v", name, provider, err)
				}
				continue
			}
			if bytes.Equal(plain, out) && !reported(&loss, path) {
				t.Errorf("%s is dropped for %s in silence: %q\n%s", name, provider, loss.Header(), out)
			}
		}
	}
}

// reported reports whether path or a part of it is in the report.
func reported(loss *chat.Loss, path string) bool {
	for _, e := range loss.Entries {
		if rest, ok := strings.CutPrefix(e.Path, path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}
