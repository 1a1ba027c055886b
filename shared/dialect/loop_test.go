package dialect_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/testkit/golden"
)

// loopTraits are what a model that signs its reasoning is known for.
var loopTraits = map[string]chat.Traits{
	"anthropic": {},
	"converse":  {Provider: "bedrock", Family: "anthropic", DefaultMaxTokens: 64000, NoEffort: true, MaxToolName: 64},
	"gemini":    {Provider: "google", Thinking: chat.ThinksAdaptively, SignedCalls: true, Efforts: "low medium high"},
	"openai":    {Provider: "openai"},
	"cohere":    {Provider: "cohere"},
	"deepseek":  {Provider: "deepseek"},
	"vllm":      {Provider: "vllm"},
}

// loopWires are the shapes of providers that speak that of another.
var loopWires = map[string]string{"deepseek": "openai", "vllm": "openai"}

func loopWire(provider string) string {
	if wire := loopWires[provider]; wire != "" {
		return wire
	}
	return provider
}

// loopStops are the providers' own words for a response that waits for results.
var loopStops = map[string]string{"anthropic": "tool_use", "converse": "tool_use", "gemini": "STOP", "openai": "tool_calls", "deepseek": "tool_calls", "vllm": "tool_calls", "cohere": "TOOL_CALL"}

// loopTurns are the providers' own shapes of a scripted turn in the history.
// The verbs are the number of the turn and the signature of the turn.
var loopTurns = map[string][]string{
	"anthropic": {`{"role":"assistant","content":[{"type":"thinking","thinking":"thought \"%[1]d\"","signature":"%[2]s"},{"type":"text","text":"text %[1]d"},{"type":"tool_use","id":"call_%[1]d_0","name":"now","input":{"turn":%[1]d}},{"type":"tool_use","id":"call_%[1]d_1","name":"now","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_%[1]d_0","content":"a"},{"type":"tool_result","tool_use_id":"call_%[1]d_1","content":"b"}]}`},
	"converse": {`{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"thought \"%[1]d\"","signature":"%[2]s"}}},{"text":"text %[1]d"},{"toolUse":{"toolUseId":"call_%[1]d_0","name":"now","input":{"turn":%[1]d}}},{"toolUse":{"toolUseId":"call_%[1]d_1","name":"now","input":{}}}]}`,
		`{"role":"user","content":[{"toolResult":{"toolUseId":"call_%[1]d_0","content":[{"text":"a"}]}},{"toolResult":{"toolUseId":"call_%[1]d_1","content":[{"text":"b"}]}}]}`},
	"gemini": {`{"text":"text %[1]d"},{"functionCall":{"id":"call_%[1]d_0","name":"now","args":{"turn":%[1]d}},"thoughtSignature":"%[2]s"},{"functionCall":{"id":"call_%[1]d_1","name":"now","args":{}}}]}`,
		`{"role":"user","parts":[{"functionResponse":{"id":"call_%[1]d_0","name":"now","response":{"output":"a"}}},{"functionResponse":{"id":"call_%[1]d_1","name":"now","response":{"output":"b"}}}]}`},
	"openai": {`"tool_calls":[{"id":"call_%[1]d_0","type":"function","function":{"name":"now","arguments":"{\"turn\":%[1]d}"}},{"id":"call_%[1]d_1","type":"function","function":{"name":"now","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"call_%[1]d_0","content":"a"}`},
	"deepseek": {`"reasoning_content":"thought \"%[1]d\"","content":"text %[1]d","tool_calls":[{"id":"call_%[1]d_0"`, `{"role":"tool","tool_call_id":"call_%[1]d_0","content":"a"}`},
	"vllm":     {`"reasoning":"thought \"%[1]d\"","content":"text %[1]d","tool_calls":[{"id":"call_%[1]d_0"`, `{"role":"tool","tool_call_id":"call_%[1]d_0","content":"a"}`},
	"cohere": {`"tool_calls":[{"id":"call_%[1]d_0","type":"function","function":{"name":"now","arguments":"{\"turn\":%[1]d}"}},{"id":"call_%[1]d_1","type":"function","function":{"name":"now","arguments":"{}"}}]`,
		`"tool_call_id":"call_%[1]d_0"`},
}

// loopClient is how a client asks, and what it makes of a response for the next
// turn.
type loopClient struct {
	dialect string
	strict  bool // of OpenAI clients: nothing but the shape itself comes back
	head    string
	list    string // the field that holds the conversation
	turn    func(t *testing.T, a *answered, stream bool) string
	results string
}

var loopClients = map[string]loopClient{
	"openai-lenient": {"openai", false, `"reasoning_effort":"low","tools":[{"type":"function","function":{"name":"now"}}]`, "messages", openAITurn,
		`{"role":"tool","tool_call_id":"call_%[1]d_0","content":"a"},{"role":"tool","tool_call_id":"call_%[1]d_1","content":"b"}`},
	"openai-strict": {"openai", true, `"reasoning_effort":"low","tools":[{"type":"function","function":{"name":"now"}}]`, "messages", openAITurn,
		`{"role":"tool","tool_call_id":"call_%[1]d_0","content":"a"},{"role":"tool","tool_call_id":"call_%[1]d_1","content":"b"}`},
	"anthropic": {"anthropic", true, `"max_tokens":8000,"thinking":{"type":"enabled","budget_tokens":2000},"tools":[{"name":"now","input_schema":{"type":"object"}}]`, "messages", messagesTurn,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_%[1]d_0","content":"a"},{"type":"tool_result","tool_use_id":"call_%[1]d_1","content":"b"}]}`},
	"responses": {"responses", true, `"reasoning":{"effort":"low"},"tools":[{"type":"function","name":"now"}]`, "input", itemsTurn,
		`{"type":"function_call_output","call_id":"call_%[1]d_0","output":"a"},{"type":"function_call_output","call_id":"call_%[1]d_1","output":"b"}`},
	"gemini": {"gemini", true, `"generationConfig":{"maxOutputTokens":8000,"thinkingConfig":{"thinkingBudget":2000}},"tools":[{"functionDeclarations":[{"name":"now"}]}]`, "contents", contentTurn,
		`{"role":"user","parts":[{"functionResponse":{"id":"call_%[1]d_0","name":"now","response":{"output":"a"}}},{"functionResponse":{"id":"call_%[1]d_1","name":"now","response":{"output":"b"}}}]}`},
}

// TestLoopOfEveryPair plays a loop of tool calls between every client and every provider,
// read completely and streamed. Each provider gets its own turns back as it wrote them,
// with signatures in their places. Nothing that was sent before changes, so that the
// provider's prompt cache is read.
func TestLoopOfEveryPair(t *testing.T) {
	for name, client := range loopClients {
		for provider, shape := range loopTurns {
			if client.dialect == loopWire(provider) {
				continue // its bytes are forwarded unchanged
			}
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s-%s/stream=%v", name, provider, stream), func(t *testing.T) {
					playLoop(t, client, provider, shape, stream)
				})
			}
		}
	}
}

func playLoop(t *testing.T, client loopClient, provider string, shape []string, stream bool) {
	memory := map[string][]chat.Part{}
	history := `{"role":"user","content":"go"}`
	if client.dialect == "gemini" {
		history = `{"role":"user","parts":[{"text":"go"}]}`
	}
	var before []json.RawMessage
	for turn := range 4 {
		body := fmt.Sprintf(`{"model":"m","stream":%v,%s,%q:[%s]}`, stream, client.head, client.list, history)
		shaped := golden.AllClients()[client.dialect]
		r, err := shaped.DecodeRequest([]byte(body))
		if err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		r.Model = "m"
		r.LoadReasoning = func(id string) []chat.Part { return memory[id] }
		traits := loopTraits[provider]
		loss := chat.Loss{}
		up, err := chat.Translate(nil, shaped, golden.Providers[loopWire(provider)], r, &traits, &loss)
		if err != nil {
			t.Fatal(err)
		}
		before = checkHistory(t, up, before, provider, shape, turn)
		if client.dialect == "gemini" && strings.Contains(loss.Header(), "reasoning") {
			t.Errorf("turn %d: what was restored is reported as lost: %s", turn, loss.Header())
		}

		s := &script{text: fmt.Sprintf("text %d", turn), calls: []string{fmt.Sprintf(`{"turn":%d}`, turn), `{}`}, stop: loopStops[provider]}
		if provider != "openai" && provider != "cohere" {
			// signed by the gateway for hosts that want it back but sign nothing
			s.thought, s.signature = fmt.Sprintf(`thought "%d"`, turn), signatureOf(turn)
		}
		o := &chat.Options{Strict: client.strict, ID: "gw-1", Model: "m", Created: 1, Request: r}
		whole, streamed := play(t, client.dialect, loopWire(provider), s, turn, traits, o)
		a := &whole
		if stream {
			a = &streamed
		}
		if a.failed != nil {
			t.Fatal(a.failed)
		}
		if client.dialect == "openai" && client.strict { // nothing is remembered for those who give it back
			for _, signed := range a.signed {
				memory[signed.ToolCallID] = signed.Parts
			}
		}
		history += "," + client.turn(t, a, stream) + "," + fmt.Sprintf(client.results, turn)
	}
}

func signatureOf(turn int) string { return fmt.Sprintf("c2lnbmF0dXJl%dA==", turn) }

// checkHistory requires that a provider's request contains the earlier turns, and that what
// was sent before is unchanged. It returns the conversation.
func checkHistory(t *testing.T, up []byte, before []json.RawMessage, provider string, shape []string, turns int) []json.RawMessage {
	t.Helper()
	var body struct{ Messages, Contents []json.RawMessage }
	if err := json.Unmarshal(up, &body); err != nil {
		t.Fatal(err)
	}
	list := append(body.Messages, body.Contents...)
	if len(list) < len(before) {
		t.Fatalf("the conversation became shorter: %s", up)
	}
	for i := range before {
		if !bytes.Equal(before[i], list[i]) {
			t.Errorf("what was sent before has changed:\n%s\n%s", before[i], list[i])
		}
	}
	for turn := range turns {
		for _, want := range shape {
			if strings.Contains(want, "%[2]") {
				want = fmt.Sprintf(want, turn, signatureOf(turn))
			} else {
				want = fmt.Sprintf(want, turn)
			}
			if !bytes.Contains(up, []byte(want)) {
				t.Errorf("turn %d did not go back to %s:\nwant %s\nin %s", turn, provider, want, up)
			}
		}
	}
	return list
}

// openAITurn is the message that a client of chat completions sends back.
func openAITurn(t *testing.T, a *answered, stream bool) string {
	t.Helper()
	if !stream {
		var c struct {
			Choices []struct{ Message json.RawMessage }
		}
		unmarshal(t, a.plain, &c)
		return string(c.Choices[0].Message)
	}
	content := ""
	var calls, blocks []map[string]any
	for _, e := range golden.Events(t, a.plain) {
		var c struct {
			Choices []struct {
				Delta struct {
					Content       string
					ToolCalls     []map[string]any `json:"tool_calls"`
					ContentBlocks []struct {
						Index int
						Delta map[string]string
					} `json:"content_blocks"`
				}
			}
		}
		if e.Data == "[DONE]" {
			continue
		}
		unmarshal(t, []byte(e.Data), &c)
		for _, ch := range c.Choices {
			content += ch.Delta.Content
			for _, call := range ch.Delta.ToolCalls {
				f, _ := call["function"].(map[string]any)
				if i := int(call["index"].(float64)); i == len(calls) {
					delete(call, "index")
					calls = append(calls, call)
				} else {
					own := calls[i]["function"].(map[string]any)
					own["arguments"] = own["arguments"].(string) + f["arguments"].(string)
				}
			}
			for _, b := range ch.Delta.ContentBlocks {
				for b.Index >= len(blocks) {
					blocks = append(blocks, map[string]any{})
				}
				addToBlock(blocks[b.Index], b.Delta)
			}
		}
	}
	message := map[string]any{"role": "assistant", "content": content, "tool_calls": calls}
	if blocks != nil {
		message["content_blocks"] = blocks
	}
	raw, _ := json.Marshal(message)
	return string(raw)
}

// addToBlock adds a piece to a block of content.
func addToBlock(block map[string]any, piece map[string]string) {
	for member, text := range piece {
		own, _ := block[member].(string)
		block[member] = own + text
		switch member {
		case "text":
			block["type"] = "text"
		case "data":
			block["type"] = "redacted_thinking"
		default:
			block["type"] = "thinking"
		}
	}
}

// messagesTurn is the message that a client of messages sends back.
func messagesTurn(t *testing.T, a *answered, stream bool) string {
	t.Helper()
	if !stream {
		var m struct{ Content json.RawMessage }
		unmarshal(t, a.plain, &m)
		return `{"role":"assistant","content":` + string(m.Content) + `}`
	}
	var blocks []map[string]any
	args := ""
	for _, e := range golden.Events(t, a.plain) {
		var ev struct {
			Type         string
			ContentBlock map[string]any `json:"content_block"`
			Delta        map[string]any
		}
		unmarshal(t, []byte(e.Data), &ev)
		switch ev.Type {
		case "content_block_start":
			blocks, args = append(blocks, ev.ContentBlock), ""
		case "content_block_delta":
			b := blocks[len(blocks)-1]
			for _, member := range []string{"text", "thinking", "signature"} {
				if piece, ok := ev.Delta[member].(string); ok {
					own, _ := b[member].(string)
					b[member] = own + piece
				}
			}
			if piece, ok := ev.Delta["partial_json"].(string); ok {
				args += piece
			}
		case "content_block_stop":
			if args != "" {
				blocks[len(blocks)-1]["input"] = json.RawMessage(args)
			}
		}
	}
	raw, err := json.Marshal(blocks)
	if err != nil {
		t.Fatal(err)
	}
	return `{"role":"assistant","content":` + string(raw) + `}`
}

// contentTurn is the content that a client of Gemini sends back: its parts unchanged.
func contentTurn(t *testing.T, a *answered, stream bool) string {
	t.Helper()
	var parts []json.RawMessage
	add := func(raw []byte) {
		var c struct {
			Candidates []struct {
				Content struct{ Parts []json.RawMessage }
			}
		}
		unmarshal(t, raw, &c)
		for _, candidate := range c.Candidates {
			parts = append(parts, candidate.Content.Parts...)
		}
	}
	if !stream {
		add(a.plain)
	} else {
		for _, e := range golden.Events(t, a.plain) {
			add([]byte(e.Data))
		}
	}
	return `{"role":"model","parts":[` + string(bytes.Join(toBytes(parts), []byte(","))) + `]}`
}

// itemsTurn are the items that a client of responses sends back.
func itemsTurn(t *testing.T, a *answered, stream bool) string {
	t.Helper()
	answer := a.plain
	if stream {
		all := golden.Events(t, a.plain)
		var last struct{ Response json.RawMessage }
		unmarshal(t, []byte(all[len(all)-1].Data), &last)
		answer = last.Response
	}
	var r struct{ Output []json.RawMessage }
	unmarshal(t, answer, &r)
	return string(bytes.Join(toBytes(r.Output), []byte(",")))
}

func toBytes(list []json.RawMessage) (out [][]byte) {
	for _, raw := range list {
		out = append(out, raw)
	}
	return out
}

func unmarshal(t *testing.T, raw []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(raw, to); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
}
