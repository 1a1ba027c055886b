package content

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/wire"
)

func TestTextsOfRequests(t *testing.T) {
	t.Parallel()
	const chat = `{"model":"m","messages":[{"role":"system","content":"be kind"},{"role":"user","content":"first"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{\"a\":1}"}}],"reasoning_content":"hm"},
		{"role":"tool","tool_call_id":"c","content":"gave \"it\" back"},
		{"content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"https://x"}},{"text":"here","type":"text"}],"role":"user"}]}`
	const messages = `{"system":[{"type":"text","text":"be kind"}],"messages":[{"role":"user","content":"first"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c","name":"f","input":{"a":1}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"gave"}]},{"type":"tool_result","content":"back"},{"type":"text","text":"look"}]}]}`
	const responses = `{"instructions":"be kind","input":[{"role":"user","content":"first"},{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},
		{"type":"function_call","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"gave"},
		{"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"https://x"}]}]}`
	for _, c := range []struct {
		name, kind, body string
		scope            Scope
		want             []string
	}{
		{"last of chat", "chatComplete", chat, "", []string{"look", "", "here"}},
		{"all of chat", "chatComplete", chat, AllMessages, []string{"be kind", "first", `gave "it" back`, "look", "", "here"}},
		{"system of chat", "chatComplete", chat, System, []string{"be kind"}},
		{"arguments of chat", "chatComplete", chat, ToolArguments, []string{`{"a":1}`}},
		{"results of chat", "chatComplete", chat, ToolResults, []string{`gave "it" back`}},
		{"reasoning of chat", "chatComplete", chat, Reasoning, []string{"hm"}},
		{"tool last", "chatComplete", `{"messages":[{"role":"tool","content":"r"}]}`, "", []string{"r"}},
		{"empty", "chatComplete", `{"messages":[]}`, "", nil},
		{"no JSON", "chatComplete", `{"messages":[{"content":"x"}`, "", nil},
		{"last of messages", "messages", messages, LastMessage, []string{"gave", "back", "look"}},
		{"system of messages", "messages", messages, System, []string{"be kind"}},
		{"arguments of messages", "messages", messages, ToolArguments, []string{`{"a":1}`}},
		{"results of messages", "messages", messages, ToolResults, []string{"gave", "back"}},
		{"reasoning of messages", "messages", messages, Reasoning, []string{"hm"}},
		{"last of responses", "createModelResponse", responses, "", []string{"look", ""}},
		{"text of responses", "createModelResponse", `{"input":"x"}`, "", []string{"x"}},
		{"system of responses", "createModelResponse", responses, System, []string{"be kind"}},
		{"arguments of responses", "createModelResponse", responses, ToolArguments, []string{"{}"}},
		{"results of responses", "createModelResponse", responses, ToolResults, []string{"gave"}},
		{"reasoning of responses", "createModelResponse", responses, Reasoning, []string{"hm"}},
		{"prompt", "complete", `{"prompt":"x"}`, "", []string{"x"}},
		{"prompts", "complete", `{"prompt":["x","y"]}`, "", []string{"x", "y"}},
		{"inputs", "embed", `{"input":["x",[1,2]]}`, "", []string{"x", ""}},
		{"tokens", "embed", `{"input":[1,2]}`, "", []string{"", ""}},
	} {
		got := InRequest(c.kind, []byte(c.body), c.scope)
		if d := cmp.Diff(c.want, got.Texts); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

func TestTextsOfResponses(t *testing.T) {
	t.Parallel()
	const chat = `{"choices":[{"index":0,"message":{"role":"assistant","content":"one"}},{"index":1,"message":{"content":"two","tool_calls":[{"function":{"arguments":"{}"}}]}}]}`
	const messages = `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","name":"f","input":{"a":1}},{"type":"text","text":"b"}]}`
	const responses = `{"output":[{"type":"reasoning","summary":[{"text":"hm","type":"summary_text"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},{"type":"function_call","arguments":"{}"}]}`
	for _, c := range []struct {
		name, kind, body string
		scope            Scope
		want             []string
		calls            bool
	}{
		{"choices", "chatComplete", chat, "", []string{"one", "two"}, true},
		{"all messages of choices", "chatComplete", chat, AllMessages, []string{"one", "two"}, true},
		{"tools only", "chatComplete", `{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"arguments":"{}"}}]}}]}`, "", nil, true},
		{"completion", "complete", `{"choices":[{"text":"x"}]}`, "", []string{"x"}, false},
		{"messages", "messages", messages, "", []string{"a", "b"}, true},
		{"arguments", "messages", messages, ToolArguments, []string{`{"a":1}`}, true},
		{"responses", "createModelResponse", responses, "", []string{"a"}, true},
		{"reasoning", "createModelResponse", responses, Reasoning, []string{"hm"}, true},
	} {
		got := InResponse(c.kind, []byte(c.body), c.scope)
		if d := cmp.Diff(c.want, got.Texts); d != "" || got.ToolCalls != c.calls {
			t.Errorf("%s: calls %t %s", c.name, got.ToolCalls, d)
		}
	}
}

// TestChoicesAreTheTextsOfEachAlternative covers every name that a format gives to them.
func TestChoicesAreTheTextsOfEachAlternative(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body string
		want []Choice
	}{
		{`{"choices":[{"message":{"content":"one"}}]}`, nil},
		{`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, nil},
		{`{"choices":[{"message":{"content":"a"}},{"message":{"content":null,"tool_calls":[{"function":{"arguments":"{}"}}]}},{"text":"c"}]}`, []Choice{{0, 1, false}, {1, 1, true}, {1, 2, false}}},
		{`{"candidates":[{"content":{"parts":[{"text":"a"},{"text":"b"}]}},{"content":{"parts":[{"text":"c"}]}}],"promptFeedback":{"blockReasonMessage":"d"}}`, []Choice{{0, 3, false}, {3, 4, false}}},
		{`{"generations":[{"text":"a"},{"text":"b"}]}`, []Choice{{0, 1, false}, {1, 2, false}}},
		{`{"response":{"candidates":[{"content":{"parts":[{"text":"a"}]}},{"content":{"parts":[{"text":"b"}]}}]}}`, []Choice{{0, 1, false}, {1, 2, false}}},
	} {
		if d := cmp.Diff(c.want, InResponse("chatComplete", []byte(c.body), "").Choices); d != "" {
			t.Errorf("%s: %s", c.body, d)
		}
	}
}

func TestWithChangesOnlyTheTexts(t *testing.T) {
	t.Parallel()
	body := []byte(`{ "messages" : [{"role":"user","content":[{"type":"text","text":"a \u00e4 b"}, {"type":"image"},{"text":"c","x":1}]}] , "n":1.0}`)
	f := InRequest("chatComplete", body, "")
	now := "A \"ä\""
	got := f.ReplaceTexts(body, []*string{&now, nil, nil})
	if want := strings.Replace(string(body), `"a \u00e4 b"`, `"A \"ä\""`, 1); string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	args := []byte(`{"content":[{"type":"tool_use","input":{"a":"secret"}}]}`)
	f = InResponse("messages", args, ToolArguments)
	for now, want := range map[string]string{`{"a":"x"}`: `{"content":[{"type":"tool_use","input":{"a":"x"}}]}`, `gone`: `{"content":[{"type":"tool_use","input":{"text":"gone"}}]}`} {
		if got := f.ReplaceTexts(args, []*string{&now}); string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// FuzzTexts: once all texts were replaced the body is still read, and no other text is left
// in it. A replaced identifier may not be found again, since it looks like one now.
func FuzzTexts(f *testing.F) {
	f.Add("chatComplete", `{"messages":[{"role":"user","content":"x"}]}`, "all_messages", "new")
	f.Add("messages", `{"system":"s","messages":[{"content":[{"type":"tool_result","content":"y"}]}]}`, "tool_results", `"`)
	f.Add("createModelResponse", `{"input":[{"type":"function_call","arguments":"{}"}]}`, "tool_arguments", "")
	f.Add("agent", `{"parts":[{"data":{"a":"\u0041"}},{"file":{"bytes":"aGVsbG8gd29ybGQ="}}],"url":"data:;base64,aGVsbG8="}`, "all_messages", "new")
	f.Fuzz(func(t *testing.T, kind, body, scope, now string) {
		now = strings.ToValidUTF8(now, "")
		for _, find := range []func(string, []byte, Scope) Found{InRequest, InResponse} {
			found := find(kind, []byte(body), Scope(scope))
			texts := make([]*string, len(found.Texts))
			for i := range texts {
				texts[i] = &now
			}
			changed := found.ReplaceTexts([]byte(body), texts)
			if isJSON([]byte(body)) && !isJSON(changed) {
				t.Fatalf("%q became %q", body, changed)
			}
			object := `{"text":` + string(wire.AppendJSONString(nil, now)) + `}`
			again := find(kind, changed, Scope(scope))
			for _, left := range again.Texts {
				if left != "" && left != now && left != readable([]byte(now)) && left != readable([]byte(object)) {
					t.Fatalf("%q became %q: %q is left", body, changed, left)
				}
			}
		}
	})
}

// TestMetadataOfToolResultsIsText: clients of MCP servers show _meta of results; that of requests
// and of model responses is bookkeeping.
func TestMetadataOfToolResultsIsText(t *testing.T) {
	t.Parallel()
	const body = `{"content":[{"type":"text","text":"a","_meta":{"note":"below"}}],"_meta":{"note":"the marker"}}`
	for kind, want := range map[string]bool{ToolCall: true, AgentCall: false, "chatComplete": false} {
		found := InResponse(kind, []byte(body), LastMessage)
		if got := slices.Contains(found.Texts, "the marker"); got != want {
			t.Errorf("%s: %q", kind, found.Texts)
		}
	}
	if found := InRequest(ToolCall, []byte(`{"name":"t","_meta":{"note":"the marker"}}`), AllMessages); slices.Contains(found.Texts, "the marker") {
		t.Errorf("request: %q", found.Texts)
	}
}
