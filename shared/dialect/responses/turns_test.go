package responses_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/responses"
	"gateway/shared/testkit/golden"
)

// TestItemsPrefixIsStableBetweenTurns: a list of items that continues is sent with the
// same bytes up to what is new, to either kind of provider.
func TestItemsPrefixIsStableBetweenTurns(t *testing.T) {
	head := `{"model":"m","max_output_tokens":2000,"instructions":"Be brief.","tools":[{"type":"function","name":"f.g","parameters":{"zeta":1,"type":"object","alpha":{"b":1,"a":2}}},{"type":"custom","name":"shell"}],"input":[`
	turns := []string{
		`{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}]}`,
		`{"type":"function_call","call_id":"call_1","name":"f.g","arguments":"{ \"x\" : 1 }"},{"type":"custom_tool_call","call_id":"call_2","name":"shell","input":"ls\n"},{"type":"function_call_output","call_id":"call_1","output":"1"},{"type":"custom_tool_call_output","call_id":"call_2","output":"2"}`,
		`{"role":"assistant","content":"So it is."},{"role":"user","content":"b"}`,
		`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"c","annotations":[]}]},{"role":"user","content":"d"}`,
	}
	for _, provider := range []chat.RequestWriter{anthropic.Messages{}, openai.Chat{}} {
		var before []byte
		for i := range turns {
			body := head + strings.Join(turns[:i+1], ",") + `]}`
			up := golden.Encode(t, responses.Responses{}, provider, body, chat.Traits{}, nil)
			up = up[bytes.Index(up, []byte(`"messages":`)):]
			prefix := before[:max(0, bytes.LastIndexByte(before, ']'))]
			if i > 0 && !bytes.HasPrefix(up, prefix) {
				t.Fatalf("%s, turn %d changed what was sent before:\n%s\n%s", provider.Name(), i, prefix, up)
			}
			if end := bytes.LastIndex(up, []byte(`}]`)); end > 0 { // what follows the list is told on each turn
				before = up[:end+2]
				if cut := bytes.Index(up, []byte(`],"tools"`)); cut > 0 {
					before = up[:cut+1]
				}
			}
		}
	}
}

// TestSignedReasoningIsReversible: whatever a provider signs comes back to it
// unchanged through a client that gives items back, whole and streamed.
func TestSignedReasoningIsReversible(t *testing.T) {
	for _, signature := range []string{"sig==", "a:b:c", "gw1", "é\"\\\n", strings.Repeat("x", 5000)} {
		for _, data := range []string{"", "hid:den", "\u2028"} {
			r := &chat.Response{ID: "msg_1", Model: "m", Choices: []chat.Choice{{Stop: chat.StopToolCalls, Parts: []chat.Part{
				{Kind: chat.Reasoned, Text: "thought \"1\"", Signature: signature, Origin: "anthropic.messages"},
				{Kind: chat.RedactedReasoned, Data: data, Origin: "anthropic.messages"},
				{Kind: chat.Call, Call: &chat.ToolCall{ID: "toolu_1", Name: "now", Arguments: "{}"}},
			}}}}
			o := &chat.Options{Origin: "anthropic.messages"}
			plain := responses.Responses{}.EncodeResponse(nil, r, o)
			enc := responses.Responses{}.NewStreamEncoder(o)
			var stream []byte
			if err := r.Replay(func(d *chat.Delta) error {
				stream = enc.Append(stream, d)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			stream = enc.Finish(stream)
			golden.CheckResponses(t, stream)
			all := golden.Events(t, stream)
			var last struct{ Response json.RawMessage }
			if err := json.Unmarshal([]byte(all[len(all)-1].Data), &last); err != nil {
				t.Fatal(err)
			}
			for _, answer := range [][]byte{plain, last.Response} {
				var a struct{ Output []json.RawMessage }
				if err := json.Unmarshal(answer, &a); err != nil {
					t.Fatal(err)
				}
				items := `{"role":"user","content":"go"}`
				for _, it := range a.Output {
					items += "," + string(it)
				}
				body := fmt.Sprintf(`{"model":"m","reasoning":{"effort":"low"},"input":[%s,{"type":"function_call_output","call_id":"toolu_1","output":"x"}]}`, items)
				up := golden.Encode(t, responses.Responses{}, anthropic.Messages{}, body, chat.Traits{}, nil)
				var sent struct {
					Messages []struct {
						Content json.RawMessage
					}
				}
				if err := json.Unmarshal(up, &sent); err != nil {
					t.Fatal(err)
				}
				var blocks []struct{ Type, Thinking, Signature, Data string }
				if err := json.Unmarshal(sent.Messages[1].Content, &blocks); err != nil {
					t.Fatal(err)
				}
				if b := blocks[0]; b.Type != "thinking" || b.Thinking != "thought \"1\"" || b.Signature != signature {
					t.Errorf("%q came back as %+v", signature, b)
				}
				if data != "" && (blocks[1].Type != "redacted_thinking" || blocks[1].Data != data) {
					t.Errorf("%q came back as %+v", data, blocks[1])
				}
			}
		}
	}
}

// TestHostileItemsCostNoMoreThanTheirSize is
// TestHostileBodiesCostNoMoreThanTheirSize for lists of items.
func TestHostileItemsCostNoMoreThanTheirSize(t *testing.T) {
	const n = 20_000
	list := func(item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	hi := `{"role":"user","content":"x"},`
	for name, input := range map[string]string{
		"items":     list(`{"role":"user","content":"x"}`),
		"assistant": hi + list(`{"role":"assistant","content":"x"}`),
		"reasoning": hi + list(`{"type":"reasoning","summary":[],"encrypted_content":"gw1:x:s.y"}`),
		"calls":     hi + list(`{"type":"function_call","call_id":"a","name":"f.g","arguments":"{}"}`),
		"outputs":   hi + list(`{"type":"function_call_output","call_id":"a","output":"b"}`),
		"foreign":   hi + list(`{"type":"what","id":"x"}`),
		"parts":     `{"role":"user","content":[` + list(`{"type":"input_text","text":"a","b":1}`) + `]}`,
		"members":   `{"role":"user","content":"x",` + list(`"k":1`) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(`{"model":"m","input":[` + input + `]}`)
			var checked chat.Checked
			if err := (responses.Responses{}).Check(body, &checked); err != nil {
				t.Fatal(err)
			}
			r, err := responses.Responses{}.DecodeRequest(body)
			if err != nil {
				t.Fatal(err)
			}
			for _, provider := range []chat.RequestWriter{anthropic.Messages{}, openai.Chat{}, responses.Responses{}} {
				var loss chat.Loss
				if _, err := chat.Translate(nil, responses.Responses{}, provider, r, &chat.Traits{}, &loss); err != nil {
					t.Fatal(err)
				}
				if len(loss.Header()) > 4096 {
					t.Errorf("a header of %d bytes", len(loss.Header()))
				}
			}
		})
	}
	chunk := `data: {"id":"c","model":"m","choices":[` + list(`{"index":0,"delta":{"content":"a","tool_calls":[{"index":0,"id":"i","function":{"name":"f","arguments":"a"}}]}}`) + `]}` + "\n\n"
	golden.Stream(t, responses.Responses{}, openai.Chat{}, &chat.Traits{}, &chat.Options{}, []byte(chunk), len(chunk))
}

// TestSignaturesAreReturnedToGemini: a host that signs its calls gets the signature
// back on the call, through a client that gives items back.
func TestSignaturesAreReturnedToGemini(t *testing.T) {
	answer := `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"now","args":{"a":1}},"thoughtSignature":"c2lnLTE="}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2},"modelVersion":"gemini-3-pro","responseId":"r1"}`
	traits := chat.Traits{SignedCalls: true}
	provider := golden.Providers["gemini"]
	r, err := provider.DecodeResponse([]byte(answer), &traits)
	if err != nil {
		t.Fatal(err)
	}
	out := responses.Responses{}.EncodeResponse(nil, r, &chat.Options{Origin: provider.Name()})
	var a struct{ Output []json.RawMessage }
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatal(err)
	}
	items, call := `{"role":"user","content":"go"}`, ""
	for _, raw := range a.Output {
		items += "," + string(raw)
		var it struct {
			CallID string `json:"call_id"`
		}
		if json.Unmarshal(raw, &it) == nil && it.CallID != "" {
			call = it.CallID
		}
	}
	body := fmt.Sprintf(`{"model":"gemini-3-pro","tools":[{"type":"function","name":"now"}],"input":[%s,{"type":"function_call_output","call_id":%q,"output":"x"}]}`, items, call)
	up := golden.Encode(t, responses.Responses{}, provider, body, traits, nil)
	if !bytes.Contains(up, []byte(`"thoughtSignature":"c2lnLTE="`)) {
		t.Errorf("the signature did not go back:\n%s\n%s", out, up)
	}
}
