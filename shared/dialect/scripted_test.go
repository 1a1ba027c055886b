package dialect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/testkit/golden"
)

// script is what a provider answers, in words that every provider has.
type script struct {
	thought, signature string // reasoning, where the provider signs it
	text               string
	calls              []string // arguments of calls of "now", with ids call_0 ...
	stop               string   // in the provider's own word
	usage              string   // the provider's own object; empty if there is none is told
}

// callID is the id of a scripted call; turns of one conversation have their own.
func callID(turn, i int) string { return fmt.Sprintf("call_%d_%d", turn, i) }

// scripts write a scripted response as a provider would: whole, and as a stream
// of server-sent events (golden.translate frames them where they are binary).
var scripts = map[string]func(s *script, turn int) (plain, stream string){
	"anthropic": anthropicScript,
	"gemini":    geminiScript,
	"converse":  converseScript,
	"cohere":    cohereScript,
	"openai":    openAIScript,
}

func quoted(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

func sse(name, data string) string {
	if name == "" {
		return "data: " + data + "\n\n"
	}
	return "event: " + name + "\ndata: " + data + "\n\n"
}

func usageOr(s *script, word string) string {
	if s.usage == "" {
		return ""
	}
	return `,"` + word + `":` + s.usage
}

func anthropicScript(s *script, turn int) (string, string) {
	var blocks []string
	var b strings.Builder
	event := func(data string) {
		name, _, _ := strings.Cut(strings.TrimPrefix(data, `{"type":"`), `"`)
		b.WriteString(sse(name, data))
	}
	block := func(whole, start string, deltas ...string) {
		n := len(blocks)
		blocks = append(blocks, whole)
		event(fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, n, start))
		for _, d := range deltas {
			event(fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, n, d))
		}
		event(fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, n))
	}
	head := `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[`
	event(`{"type":"message_start","message":` + head + `],"stop_reason":null` + usageOr(s, "usage") + `}}`)
	if s.signature != "" {
		block(`{"type":"thinking","thinking":`+quoted(s.thought)+`,"signature":`+quoted(s.signature)+`}`, `{"type":"thinking","thinking":"","signature":""}`,
			`{"type":"thinking_delta","thinking":`+quoted(s.thought)+`}`, `{"type":"signature_delta","signature":`+quoted(s.signature)+`}`)
	}
	if s.text != "" {
		block(`{"type":"text","text":`+quoted(s.text)+`}`, `{"type":"text","text":""}`, `{"type":"text_delta","text":`+quoted(s.text)+`}`)
	}
	for i, args := range s.calls {
		start := fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"now","input":`, callID(turn, i))
		block(start+args+`}`, start+`{}}`, `{"type":"input_json_delta","partial_json":`+quoted(args)+`}`)
	}
	event(`{"type":"message_delta","delta":{"stop_reason":` + quoted(s.stop) + `,"stop_sequence":null}` + usageOr(s, "usage") + `}`)
	event(`{"type":"message_stop"}`)
	return head + strings.Join(blocks, ",") + `],"stop_reason":` + quoted(s.stop) + `,"stop_sequence":null` + usageOr(s, "usage") + `}`, b.String()
}

func geminiScript(s *script, turn int) (string, string) {
	var parts []string
	if s.signature != "" {
		parts = append(parts, `{"text":`+quoted(s.thought)+`,"thought":true}`)
	}
	if s.text != "" {
		parts = append(parts, `{"text":`+quoted(s.text)+`}`)
	}
	for i, args := range s.calls {
		part := fmt.Sprintf(`{"functionCall":{"id":%q,"name":"now","args":%s}`, callID(turn, i), args)
		if i == 0 && s.signature != "" {
			part += `,"thoughtSignature":` + quoted(s.signature)
		}
		parts = append(parts, part+"}")
	}
	whole := func(parts, end string) string {
		return `{"candidates":[{"index":0,"content":{"role":"model","parts":[` + parts + `]}` + end + `}]` + usageOr(s, "usageMetadata") + `,"modelVersion":"m","responseId":"r"}`
	}
	end := `,"finishReason":` + quoted(s.stop)
	var b strings.Builder
	for i, p := range parts {
		if i < len(parts)-1 {
			b.WriteString(sse("", whole(p, "")))
			continue
		}
		b.WriteString(sse("", whole(p, end)))
	}
	if len(parts) == 0 {
		b.WriteString(sse("", whole("", end)))
	}
	return whole(strings.Join(parts, ","), end), b.String()
}

func converseScript(s *script, turn int) (string, string) {
	var blocks []string
	b := sse("messageStart", `{"role":"assistant"}`)
	block := func(whole, start string, deltas ...string) {
		n := len(blocks)
		blocks = append(blocks, whole)
		if start != "" {
			b += sse("contentBlockStart", fmt.Sprintf(`{"contentBlockIndex":%d,"start":%s}`, n, start))
		}
		for _, d := range deltas {
			b += sse("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":%s}`, n, d))
		}
		b += sse("contentBlockStop", fmt.Sprintf(`{"contentBlockIndex":%d}`, n))
	}
	if s.signature != "" {
		block(`{"reasoningContent":{"reasoningText":{"text":`+quoted(s.thought)+`,"signature":`+quoted(s.signature)+`}}}`, "",
			`{"reasoningContent":{"text":`+quoted(s.thought)+`}}`, `{"reasoningContent":{"signature":`+quoted(s.signature)+`}}`)
	}
	if s.text != "" {
		block(`{"text":`+quoted(s.text)+`}`, "", `{"text":`+quoted(s.text)+`}`)
	}
	for i, args := range s.calls {
		start := fmt.Sprintf(`{"toolUse":{"toolUseId":%q,"name":"now"`, callID(turn, i))
		block(start+`,"input":`+args+`}}`, start+"}}", `{"toolUse":{"input":`+quoted(args)+`}}`)
	}
	b += sse("messageStop", `{"stopReason":`+quoted(s.stop)+`}`)
	b += sse("metadata", `{"metrics":{"latencyMs":1}`+usageOr(s, "usage")+`}`)
	return `{"output":{"message":{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}},"stopReason":` + quoted(s.stop) + usageOr(s, "usage") + `,"metrics":{"latencyMs":1}}`, b
}

func cohereScript(s *script, turn int) (string, string) {
	var content, calls []string
	event := func(data string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(data, `{"type":"`), `"`)
		return sse(name, data)
	}
	b := event(`{"type":"message-start","id":"c1","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}`)
	if s.text != "" {
		content = append(content, `{"type":"text","text":`+quoted(s.text)+`}`)
		b += event(`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`)
		b += event(`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":` + quoted(s.text) + `}}}}`)
		b += event(`{"type":"content-end","index":0}`)
	}
	for i, args := range s.calls {
		call := fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"now","arguments":`, callID(turn, i))
		calls = append(calls, call+quoted(args)+"}}")
		b += event(fmt.Sprintf(`{"type":"tool-call-start","index":%d,"delta":{"message":{"tool_calls":%s""}}}}}`, i, call))
		b += event(fmt.Sprintf(`{"type":"tool-call-delta","index":%d,"delta":{"message":{"tool_calls":{"function":{"arguments":%s}}}}}`, i, quoted(args)))
		b += event(fmt.Sprintf(`{"type":"tool-call-end","index":%d}`, i))
	}
	b += event(`{"type":"message-end","delta":{"finish_reason":` + quoted(s.stop) + usageOr(s, "usage") + `}}`)
	message := `{"role":"assistant","content":[` + strings.Join(content, ",") + `]`
	if calls != nil {
		message += `,"tool_calls":[` + strings.Join(calls, ",") + `]`
	}
	return `{"id":"c1","message":` + message + `},"finish_reason":` + quoted(s.stop) + usageOr(s, "usage") + `}`, b
}

func openAIScript(s *script, turn int) (string, string) {
	chunk := func(delta, end string) string {
		return sse("", `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":`+delta+`,"finish_reason":`+end+`}]}`)
	}
	b := chunk(`{"role":"assistant","content":""}`, "null")
	message := `{"role":"assistant","content":` + quoted(s.text)
	if s.thought != "" {
		message += `,"reasoning_content":` + quoted(s.thought)
		b += chunk(`{"reasoning_content":`+quoted(s.thought[:4])+`}`, "null") + chunk(`{"reasoning_content":`+quoted(s.thought[4:])+`}`, "null")
	}
	if s.text != "" {
		b += chunk(`{"content":`+quoted(s.text)+`}`, "null")
	}
	var calls []string
	for i, args := range s.calls {
		call := fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"now","arguments":`, callID(turn, i))
		calls = append(calls, call+quoted(args)+"}}")
		b += chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,%s%s}}]}`, i, call[1:], quoted(args)), "null")
	}
	if calls != nil {
		message += `,"tool_calls":[` + strings.Join(calls, ",") + `]`
	}
	b += chunk(`{}`, quoted(s.stop))
	if s.usage != "" {
		b += sse("", `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":`+s.usage+`}`)
	}
	return `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":` + message + `},"finish_reason":` + quoted(s.stop) + `}]` + usageOr(s, "usage") + `}`, b + sse("", "[DONE]")
}

// answered is what a client gets for a script, whole and streamed.
type answered struct {
	plain  []byte // nil when it is an error
	failed *fault.Fault
	meter  chat.Meter
	signed []chat.Signed
}

// play returns a client what a provider answers by a script, whole and as a stream that
// is held against the grammar of the client.
func play(t *testing.T, client, provider string, s *script, turn int, traits chat.Traits, o *chat.Options) (whole, streamed answered) {
	t.Helper()
	plain, stream := scripts[provider](s, turn)
	c, p := golden.AllClients()[client], golden.Providers[provider]
	if c == nil {
		c = golden.Clients[client]
	}
	o.Origin = p.Name()
	r, err := p.DecodeResponse([]byte(plain), &traits)
	if err != nil {
		whole.failed = fault.From(err)
	} else {
		whole.plain, whole.meter, whole.signed = c.EncodeResponse(nil, r, o), r.Meter(), r.Signed()
		if !json.Valid(whole.plain) {
			t.Errorf("not JSON: %s", whole.plain)
		}
	}
	streamed.plain, streamed.meter, streamed.signed = golden.Stream(t, c, p, &traits, o, []byte(stream), len(stream))
	streamed.failed = streamed.meter.Err
	if client != "gemini" { // whose streams have no grammar but that of their parts
		golden.CheckStream(t, c.Name(), streamed.plain, !o.Strict)
	}
	return whole, streamed
}
