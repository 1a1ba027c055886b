package dialect_test

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/responses"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// TestStreamedItemsHaveTheIDsOfWholeOnes: what is stored of a stream is encoded
// as one response, so each item must have the id under which the client got it.
func TestStreamedItemsHaveTheIDsOfWholeOnes(t *testing.T) {
	t.Parallel()
	paths, _ := filepath.Glob("openai/testdata/answers/*.txtar")
	more, _ := filepath.Glob("openai/testdata/responses-openai/stream-*.txtar")
	compared := 0
	for _, path := range append(paths, more...) {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			if f.Name == "upstream_response.sse" && sameItems(t, path, f.Data) {
				compared++
			}
		}
	}
	if compared < 10 {
		t.Errorf("%d streams compared", compared)
	}
}

// sameItems compares the items of a stream with those of the same complete response;
// false for a stream that fails.
func sameItems(t *testing.T, path string, in []byte) bool {
	t.Helper()
	o := &chat.Options{OwnID: true, ID: "gw-1", Model: "m", Origin: openai.Chat{}.Name()}
	client := responses.Responses{}
	var loss chat.Loss
	dec := chat.Verified(openai.Chat{}.NewStreamDecoder(&chat.Traits{}), client.Support(o), &loss)
	enc := client.NewStreamEncoder(o)
	var whole chat.Collector
	var out []byte
	var parser wire.SSEParser
	event := func(name string, data []byte) error {
		return dec.Event(name, data, func(d *chat.Delta) error {
			out = enc.Append(out, d)
			whole.Add(d)
			return nil
		})
	}
	if parser.Feed(in, event) != nil || parser.End(event) != nil || dec.End() != nil {
		return false
	}
	out = enc.Finish(out)
	last := out[strings.LastIndex(string(out), "data: ")+len("data: "):]
	var ended struct{ Response json.RawMessage }
	if err := json.Unmarshal(last, &ended); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	items := func(response []byte) (list string) {
		_, raw := client.Output(response)
		var of []struct{ ID, Type string }
		_ = json.Unmarshal(raw, &of)
		return fmt.Sprint(of)
	}
	if streamed, stored := items(ended.Response), items(client.EncodeResponse(nil, whole.Response(), o)); streamed != stored {
		t.Errorf("%s: streamed %s, stored %s", path, streamed, stored)
	}
	return true
}

// TestReferencesAreTheItemsTheyName: a request with references is translated as one that has the
// items themselves, and a reference to nothing is a 400 that says what to set.
func TestReferencesAreTheItemsTheyName(t *testing.T) {
	t.Parallel()
	client := responses.Responses{}
	answer := `{"id":"m1","type":"message","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"Look"},{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1}},{"type":"tool_use","id":"toolu_2","name":"f","input":{"a":2}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`
	r, err := anthropic.Messages{}.DecodeResponse([]byte(answer), &chat.Traits{})
	if err != nil {
		t.Fatal(err)
	}
	response := client.EncodeResponse(nil, r, &chat.Options{OwnID: true, ID: "gw-1", Origin: anthropic.Messages{}.Name()})
	id, output := client.Output(response)
	var items []json.RawMessage
	if err := json.Unmarshal(output, &items); err != nil || id != "gw-1" || len(items) != 4 {
		t.Fatalf("%q %v %s", id, err, output)
	}
	const head = `{"model":"claude","max_output_tokens":2000,"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}}}],"input":[{"role":"user","content":"go"},`
	const tail = `,{"type":"function_call_output","call_id":"toolu_1","output":"x"},{"type":"function_call_output","call_id":"toolu_2","output":"y"}]}`
	var inline, named []string
	for _, item := range items {
		var it struct{ ID string }
		_ = json.Unmarshal(item, &it)
		inline, named = append(inline, string(item)), append(named, fmt.Sprintf(`{"type":"item_reference","id":%q}`, it.ID))
	}
	found := 0
	find := func(of string) ([]byte, error) {
		if of != id {
			return nil, nil
		}
		found++
		return output, nil
	}
	encode := func(list []string) (string, error) {
		body := []byte(head + strings.Join(list, ",") + tail)
		whole, err := client.Inline(body, chat.Stored{Output: find})
		if err != nil {
			t.Fatal(err)
		}
		if whole == nil {
			whole = body
		}
		q, err := client.DecodeRequest(whole)
		if err != nil {
			t.Fatal(err)
		}
		out, err := chat.Translate(nil, client, anthropic.Messages{}, q, &chat.Traits{}, &chat.Loss{})
		return string(out), err
	}
	want, err := encode(inline)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := encode(named); err != nil || got != want || found != 1 || !strings.Contains(got, "c2ln") {
		t.Errorf("%v, %d reads\n got %s\nwant %s", err, found, got, want)
	}
	// A provider of the dialect gets the items, but no reasoning that another has signed.
	body := []byte(head + strings.Join(named, ",") + tail)
	own := head + strings.Join(inline[1:], ",") + tail
	whole, err := client.Inline(body, chat.Stored{Output: find})
	if got, lost := client.Unmark(whole); err != nil || string(got) != own || len(lost) != 1 || lost[0].Path != "input[1]" {
		t.Errorf("natively: %v %v\n got %s\nwant %s", err, lost, got, own)
	}
	for _, same := range []string{
		head + inline[0] + tail, `{"input":"x"}`, `{"input":[{"id":"fc_gw-1_2","role":"user","content":"x"}]}`, `{"input":[{"id":7,"type":"item_reference"}]}`,
		`{"input":[{"id":"fc_gw-1_2","type":"function_call","call_id":"c","name":"f","arguments":""}]}`, `[]`, `{"input":[{"type":"item_reference"`,
	} {
		if got, err := client.Inline([]byte(same), chat.Stored{Output: find}); err != nil || got != nil {
			t.Errorf("%s: %v %s", same, err, got)
		}
	}
	if got, err := client.Inline([]byte(`{"input":[{"id":"fc_gw-1_2"}]}`), chat.Stored{Output: find}); err != nil || string(got) != `{"input":[`+inline[2]+`]}` {
		t.Errorf("a reference without a type: %v %s", err, got)
	}
	// Many references to a large item do not make a request of any size.
	large := func(string) ([]byte, error) {
		return []byte(`[{"id":"msg_gw-1_0","type":"message","content":"` + strings.Repeat("x", 1<<18) + `"}]`), nil
	}
	if _, err := client.Inline([]byte(`{"input":[{"id":"msg_gw-1_0"}`+strings.Repeat(`,{"id":"msg_gw-1_0"}`, 100)+`]}`), chat.Stored{Output: large}); !fault.Is(err, fault.BodyTooLarge) {
		t.Errorf("%v", err)
	}
	for _, unknown := range []string{"fc_gw-2_0", "fc_gw-1_9", "msg_1", "x"} {
		if _, err := encode([]string{fmt.Sprintf(`{"type":"item_reference","id":%q}`, unknown)}); err == nil || !strings.Contains(err.Error(), "set store to false") {
			t.Errorf("%s: %v", unknown, err)
		}
	}
}

// TestUnmarkRemovesReasoningOfAnotherProvider forwards bodies unchanged but for reasoning that the
// gateway marked, in each format in which clients return it.
func TestUnmarkRemovesReasoningOfAnotherProvider(t *testing.T) {
	t.Parallel()
	marked := base64.StdEncoding.EncodeToString([]byte("gw1:openai.chat:s.deepseek"))
	const thinking = `{"type":"thinking","thinking":"t","signature":"gw1:openai.chat:deepseek"}`
	const call, result = `{"type":"tool_use","id":"c","name":"f","input":{}}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]}`
	for _, c := range []struct {
		dialect    chat.Unmarker
		body, want string // want is "" for a body that is unchanged
		lost       string
	}{
		{responses.Responses{}, `{"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gw1:a:b"} , {"role":"user","content":"x"}],"x": 1}`, `{"input":[ {"role":"user","content":"x"}],"x": 1}`, "input[0]"},
		{responses.Responses{}, `{"input":[{"type":"reasoning","id":"rs_01ABC_0","summary":[]}]}`, `{"input":[]}`, "input[0]"},
		{responses.Responses{}, `{"input":[{"type":"reasoning","id":"rs_68af","summary":[]},{"type":"reasoning","id":"rs_01ABC_0","summary":[],"encrypted_content":"gAAA"}]}`, "", ""},
		{responses.Responses{}, `{"input":"\"gw1: and \"rs_"}`, "", ""},
		{anthropic.Messages{}, `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[` + thinking + `, {"type":"text","text":"y"}]},{"role":"user","content":"z"}],"thinking":{"type":"enabled","budget_tokens":1024}}`,
			`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[ {"type":"text","text":"y"}]},{"role":"user","content":"z"}],"thinking":{"type":"enabled","budget_tokens":1024}}`, "messages[1].content[0]"},
		{anthropic.Messages{}, `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"redacted_thinking","data":"gw1:a:d.b"}]},{"role":"user","content":"z"}]}`,
			`{"messages":[{"role":"user","content":"x"},{"role":"user","content":"z"}]}`, "messages[1].content[0]"},
		// A turn that continues after its calls cannot think without the reasoning before them.
		{anthropic.Messages{}, `{"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[` + thinking + `,` + call + `]},` + result + `]}`,
			`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[` + call + `]},` + result + `]}`, "messages[1].content[0] thinking"},
		{anthropic.Messages{}, `{"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[` + thinking + `,` + call + `]},` + result + `]}`,
			`{"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[` + call + `]},` + result + `]}`, "messages[1].content[0]"},
		{anthropic.Messages{}, `{"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[` + thinking + `,` + call + `]},` + result + `,{"role":"assistant","content":"y"},{"role":"user","content":"z"}]}`,
			`{"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[` + call + `]},` + result + `,{"role":"assistant","content":"y"},{"role":"user","content":"z"}]}`, "messages[1].content[0]"},
		{anthropic.Messages{}, `{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"\"gw1:","signature":"EqQB"}]}]}`, "", ""},
		{gemini.Generate{}, `{"contents":[{"role":"model","parts":[{"text":"t","thought":true,"thoughtSignature":"` + marked + `"},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"` + marked + `"}]}]}`,
			`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]}]}`, "contents[0].parts[0] contents[0].parts[1]"},
		{gemini.Generate{}, `{"contents":[{"role":"model","parts":[{"text":"t","thought":true,"thoughtSignature":"AAAA"}]}]}`, "", ""},
		{converse.Converse{}, `{"messages":[{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"t","signature":"gw1:openai.chat:deepseek"}}},{"text":"y"}]}]}`,
			`{"messages":[{"role":"assistant","content":[{"text":"y"}]}]}`, "messages[0].content[0]"},
		{converse.Converse{}, `{"messages":[{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"\"gw1:","signature":"s"}}}]}]}`, "", ""},
	} {
		got, lost := c.dialect.Unmark([]byte(c.body))
		var paths []string
		for _, l := range lost {
			paths = append(paths, l.Path)
		}
		if want := cmp.Or(c.want, c.body); string(got) != want || strings.Join(paths, " ") != c.lost {
			t.Errorf("%T %s\n got %s %v\nwant %s %s", c.dialect, c.body, got, paths, want, c.lost)
		}
	}
}

// TestConversationsContinueWithAllTheirItems replaces previous_response_id by the stored items.
func TestConversationsContinueWithAllTheirItems(t *testing.T) {
	t.Parallel()
	client := responses.Responses{}
	stored := chat.Stored{
		Output: func(string) ([]byte, error) { return []byte(`[{"id":"msg_1_0","type":"message"}]`), nil },
		Conversation: func(id string, _ int) ([]byte, error) {
			switch id {
			case "1":
				return []byte(`[{"a":1},{"type":"item_reference","id":"msg_1_0"}]`), nil
			case "large":
				return make([]byte, 20<<20), nil
			}
			return nil, nil
		},
	}
	for body, want := range map[string]string{
		`{"previous_response_id":"resp_1","input":"x","n": 2}`:         `{"input":[{"a":1},{"id":"msg_1_0","type":"message"},{"role":"user","content":"x"}],"n": 2}`,
		`{"input":[{"b":2}] , "previous_response_id" : "resp_1" }`:     `{"input":[{"a":1},{"id":"msg_1_0","type":"message"},{"b":2}]  }`,
		`{"previous_response_id":"resp_1"}`:                            `{"input":[{"a":1},{"id":"msg_1_0","type":"message"}]}`,
		`{"n":2,"previous_response_id":"resp_1"}`:                      `{"input":[{"a":1},{"id":"msg_1_0","type":"message"}],"n":2}`,
		`{"previous_response_id":"resp_1","input":[ ]}`:                `{"input":[{"a":1},{"id":"msg_1_0","type":"message"}]}`,
		`{"previous_response_id":"resp_2","input":"x"}`:                "",
		`{"previous_response_id":null,"input":"x"}`:                    "",
		`{"metadata":{"previous_response_id":"resp_1"},"input":["x"]}`: "",
	} {
		if got, err := client.Inline([]byte(body), stored); err != nil || string(got) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", body, err, got, want)
		}
	}
	if _, err := client.Inline([]byte(`{"previous_response_id":"resp_large","input":"x"}`), stored); !fault.Is(err, fault.BodyTooLarge) {
		t.Error(err)
	}
}
