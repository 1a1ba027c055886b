package golden

import (
	"encoding/json"
	"strings"
	"testing"

	"gateway/shared/wire"
)

// Event is one server-sent event.
type Event struct {
	Name string
	Data string
}

// Events cuts a stream into its events.
func Events(t *testing.T, stream []byte) []Event {
	t.Helper()
	var p wire.SSEParser
	var out []Event
	take := func(name string, data []byte) error {
		out = append(out, Event{name, string(data)})
		return nil
	}
	if err := p.Feed(stream, take); err != nil {
		t.Fatal(err)
	}
	if err := p.End(take); err != nil {
		t.Fatal(err)
	}
	return out
}

// CheckStream checks a stream that a client gets against the grammar of its dialect.
// lenient streams may have extension fields.
func CheckStream(t *testing.T, dialect string, stream []byte, lenient bool) {
	t.Helper()
	switch dialect {
	case "anthropic.messages":
		checkAnthropic(t, stream)
	case "openai.responses":
		CheckResponses(t, stream)
	default:
		checkOpenAI(t, stream, lenient)
	}
}

type openAIChunk struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Error   any    `json:"error"`
	Usage   any    `json:"usage"`
	Choices []struct {
		Index int     `json:"index"`
		Text  *string `json:"text"`
		Delta *struct {
			Role      string `json:"role"`
			ToolCalls []struct {
				Index    *int    `json:"index"`
				ID       *string `json:"id"`
				Type     string  `json:"type"`
				Function struct {
					Name      *string `json:"name"`
					Arguments string  `json:"arguments"`
				} `json:"function"`
				Custom struct {
					Name  *string `json:"name"`
					Input string  `json:"input"`
				} `json:"custom"`
			} `json:"tool_calls"`
			ContentBlocks any `json:"content_blocks"`
		} `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
}

type toolCall struct {
	id, name, args string
	custom         bool
}

// checkOpenAI: one envelope for all chunks; the role first; distinct index means
// distinct id; the name once; the arguments of each call parse; [DONE] last
// unless the stream ends with an error.
func checkOpenAI(t *testing.T, stream []byte, lenient bool) {
	t.Helper()
	var first *openAIChunk
	calls := map[[2]int]*toolCall{}
	roles := map[int]bool{}
	finished := map[int]bool{}
	failed, done := false, false
	for _, e := range Events(t, stream) {
		if done || failed {
			t.Fatalf("%q after the end", e.Data)
		}
		if e.Data == "[DONE]" {
			done = true
			continue
		}
		var c openAIChunk
		if err := json.Unmarshal([]byte(e.Data), &c); err != nil {
			t.Fatalf("%v: %s", err, e.Data)
		}
		if c.Error != nil {
			failed = true
			continue
		}
		if first == nil {
			first = &c
		}
		if c.ID != first.ID || c.Model != first.Model || c.Object != first.Object || c.Created != first.Created {
			t.Errorf("another envelope: %s", e.Data)
		}
		for _, ch := range c.Choices {
			if ch.FinishReason != nil {
				finished[ch.Index] = true
			}
			if ch.Delta == nil {
				if ch.Text == nil {
					t.Errorf("neither delta nor text: %s", e.Data)
				}
				continue
			}
			if !roles[ch.Index] && ch.Delta.Role != "assistant" {
				t.Errorf("no role first: %s", e.Data)
			}
			roles[ch.Index] = true
			if ch.Delta.ContentBlocks != nil && !lenient {
				t.Errorf("an extension member in a strict stream: %s", e.Data)
			}
			for _, tc := range ch.Delta.ToolCalls {
				if tc.Index == nil {
					t.Fatalf("a tool call without index: %s", e.Data)
				}
				key := [2]int{ch.Index, *tc.Index}
				known := calls[key]
				custom := tc.Custom.Name != nil || known != nil && known.custom
				if custom { // its input is free text
					tc.Function.Name, tc.Function.Arguments = tc.Custom.Name, ""
				}
				if known == nil {
					if tc.ID == nil || *tc.ID == "" || tc.Function.Name == nil || *tc.Function.Name == "" || tc.Type != "function" && !custom || custom && tc.Type != "custom" {
						t.Errorf("a call begins without id, type or name: %s", e.Data)
						continue
					}
					if *tc.Index != countCalls(calls, ch.Index) {
						t.Errorf("call indexes have a gap: %s", e.Data)
					}
					for _, other := range calls {
						if other.id == *tc.ID {
							t.Errorf("two calls have the id %s", other.id)
						}
					}
					calls[key] = &toolCall{id: *tc.ID, name: *tc.Function.Name, args: tc.Function.Arguments, custom: custom}
					continue
				}
				if tc.ID != nil && *tc.ID != known.id {
					t.Errorf("one index, two ids: %s", e.Data)
				}
				if tc.Function.Name != nil && *tc.Function.Name != "" {
					t.Errorf("the name comes twice: %s", e.Data)
				}
				known.args += tc.Function.Arguments
			}
		}
	}
	if failed {
		return
	}
	if !done {
		t.Error("no [DONE]")
	}
	for i := range roles {
		if !finished[i] {
			t.Errorf("choice %d has no finish_reason", i)
		}
	}
	for _, c := range calls {
		if !c.custom && !json.Valid([]byte(c.args)) {
			t.Errorf("the arguments of %s do not parse: %q", c.name, c.args)
		}
	}
}

func countCalls(calls map[[2]int]*toolCall, choice int) int {
	n := 0
	for key := range calls {
		if key[0] == choice {
			n++
		}
	}
	return n
}

type anthropicEvent struct {
	Type         string          `json:"type"`
	Index        *int            `json:"index"`
	Message      json.RawMessage `json:"message"` // an object, of an error its text
	ContentBlock *struct {
		Type string `json:"type"`
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"content_block"`
	Delta *struct {
		Type        string `json:"type"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage any `json:"usage"`
	Error any `json:"error"`
}

// deltasOf are the kinds of delta that a block may have.
var deltasOf = map[string]string{
	"text": "text_delta citations_delta", "thinking": "thinking_delta signature_delta", "tool_use": "input_json_delta",
	"server_tool_use": "input_json_delta", "redacted_thinking": "",
}

// checkAnthropic: message_start first; blocks start and stop without overlap,
// numbered from 0 without gaps; deltas fit their block; then message_delta and
// message_stop, or an error.
func checkAnthropic(t *testing.T, stream []byte) {
	t.Helper()
	state := "before"
	next, open := 0, ""
	args := ""
	ids := map[string]bool{}
	for _, e := range Events(t, stream) {
		var ev anthropicEvent
		if err := json.Unmarshal([]byte(e.Data), &ev); err != nil {
			t.Fatalf("%v: %s", err, e.Data)
		}
		if ev.Type != e.Name {
			t.Errorf("event %q has type %q", e.Name, ev.Type)
		}
		if ev.Type == "ping" {
			continue
		}
		if ev.Type == "error" {
			if text := ""; ev.Error == nil || ev.Message != nil && json.Unmarshal(ev.Message, &text) != nil || state == "stopped" {
				t.Errorf("a bad error event: %s", e.Data)
			}
			state = "failed"
			continue
		}
		switch state + " " + ev.Type {
		case "before message_start":
			state = "message"
			var m struct {
				ID, Model, Role string
				Content         []any
				Usage           any
			}
			if json.Unmarshal(ev.Message, &m) != nil || m.ID == "" || m.Model == "" || m.Role != "assistant" || m.Content == nil || m.Usage == nil {
				t.Errorf("a bad message_start: %s", e.Data)
			}
		case "message content_block_start":
			state = "block"
			if ev.Index == nil || *ev.Index != next || ev.ContentBlock == nil {
				t.Fatalf("block %d expected: %s", next, e.Data)
			}
			open, args = ev.ContentBlock.Type, ""
			if open == "tool_use" {
				if ev.ContentBlock.ID == "" || ids[ev.ContentBlock.ID] || ev.ContentBlock.Name == "" {
					t.Errorf("a call without its own id and name: %s", e.Data)
				}
				ids[ev.ContentBlock.ID] = true
			}
		case "block content_block_delta":
			kinds, known := deltasOf[open]
			if ev.Index == nil || *ev.Index != next || ev.Delta == nil || known && !strings.Contains(kinds, ev.Delta.Type) {
				t.Errorf("a delta that does not fit block %d (%s): %s", next, open, e.Data)
			}
			args += ev.Delta.PartialJSON
		case "block content_block_stop":
			state = "message"
			if ev.Index == nil || *ev.Index != next {
				t.Errorf("stop of another block than %d: %s", next, e.Data)
			}
			if open == "tool_use" && args != "" && !json.Valid([]byte(args)) {
				t.Errorf("arguments do not parse: %q", args)
			}
			next++
		case "message message_delta":
			state = "ending"
			if ev.Delta == nil || ev.Delta.StopReason == "" || ev.Usage == nil {
				t.Errorf("a bad message_delta: %s", e.Data)
			}
		case "ending message_stop":
			state = "stopped"
		default:
			t.Fatalf("%s while %s: %s", ev.Type, state, e.Data)
		}
	}
	if state != "stopped" && state != "failed" {
		t.Errorf("the stream ends %s", state)
	}
}
