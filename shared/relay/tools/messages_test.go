package tools

import (
	"fmt"
	"strings"
	"testing"
)

const (
	useAdd     = `{"id":"msg_1","type":"message","role":"assistant","model":"m","stop_reason":"tool_use","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"toolu_1","name":"add","input":{"a":1}}],"usage":{"input_tokens":10,"output_tokens":2}}`
	thenThree  = `{"id":"msg_2","type":"message","role":"assistant","model":"m","stop_reason":"end_turn","content":[{"type":"text","text":"three"}],"usage":{"input_tokens":20,"output_tokens":3}}`
	messagesOf = `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"two and one"}],"tools":[%s]%s}`
)

// TestMessages: a call is made, the model continues, and the client sees both.
func TestMessages(t *testing.T) {
	t.Parallel()
	d := adder()
	d.t, d.turns = t, append(d.turns, plain(200, useAdd), plain(200, thenThree))
	if err := d.run(Messages(nil), fmt.Sprintf(messagesOf, mathTool, `,"tool_choice":{"type":"any"}`)); err != nil {
		t.Fatal(err)
	}
	got := readJSON(t, d.body)
	same(t, "content", kinds(got["content"], "type"), "thinking", "mcp_tool_use", "mcp_tool_result", "text")
	if at(got, "content", 1, "id") != "mcptoolu_1" || at(got, "content", 1, "server_name") != "@gateway-mcp/math" || at(got, "content", 2, "tool_use_id") != "mcptoolu_1" ||
		at(got, "content", 2, "content", 0, "text") != `sum of {"a":1}` || at(got, "usage", "input_tokens") != 30.0 || got["stop_reason"] != "end_turn" || got["id"] != "msg_1" {
		t.Errorf("%s", d.body)
	}
	said := d.bodies[1]["messages"]
	same(t, "second turn", kinds(said, "role"), "user", "assistant", "user")
	same(t, "its message", kinds(at(said, 1, "content"), "type"), "thinking", "tool_use")
	same(t, "its result", kinds(at(said, 2, "content"), "type"), "tool_result")
	if at(d.bodies[0], "tool_choice", "type") != "any" || at(d.bodies[1], "tool_choice", "type") != "auto" {
		t.Errorf("%v %v", d.bodies[0]["tool_choice"], d.bodies[1]["tool_choice"])
	}
}

// TestMessagesGoOn: the client's history is converted to the form in which the model wrote and
// read it, even if there was also a call of the client's own.
func TestMessagesGoOn(t *testing.T) {
	t.Parallel()
	use := `{"type":"mcp_tool_use","id":"mcptoolu_%d","name":"look.up","server_name":"@gateway-mcp/math","input":{}}`
	got := `{"type":"mcp_tool_result","tool_use_id":"mcptoolu_%d","is_error":false,"content":[{"type":"text","text":"r"}]}`
	one, two, cut := fmt.Sprintf(use, 1), fmt.Sprintf(use, 2), fmt.Sprintf(use, 9)
	body := `{"model":"m","max_tokens":9,"tools":[` + mathTool + `],"messages":[{"role":"user","content":"x"},
		{"role":"assistant","content":[` + one + `,` + fmt.Sprintf(got, 1) + `,{"type":"text","text":"so"},` + two + `,{"type":"tool_use","id":"t3","name":"mine","input":{}},` + fmt.Sprintf(got, 2) + `,` + cut + `]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t3","content":"c"}]}]}`
	d := adder()
	d.t, d.turns = t, append(d.turns, plain(200, thenThree))
	if err := d.run(Messages(nil), body); err != nil {
		t.Fatal(err)
	}
	said := d.bodies[0]["messages"]
	same(t, "roles", kinds(said, "role"), "user", "assistant", "user", "assistant", "user")
	same(t, "first", kinds(at(said, 1, "content"), "name"), "look_up")
	same(t, "its result", kinds(at(said, 2, "content"), "tool_use_id"), "toolu_1")
	same(t, "second", kinds(at(said, 3, "content"), "type"), "text", "tool_use", "tool_use")
	same(t, "its results", kinds(at(said, 4, "content"), "tool_use_id"), "toolu_2", "t3")
}

// TestMessagesStopAndAreBounded: a call of the client's ends the run, and so do bounds.
func TestMessagesStopAndAreBounded(t *testing.T) {
	t.Parallel()
	d := adder()
	d.t, d.turns = t, append(d.turns, plain(200, strings.Replace(useAdd, `,"name":"add","input":{"a":1}}`, `,"name":"add","input":{}},{"type":"tool_use","id":"t2","name":"mine","input":{}}`, 1)))
	if err := d.run(Messages(nil), fmt.Sprintf(messagesOf, mathTool+`,{"name":"mine","input_schema":{}}`, "")); err != nil {
		t.Fatal(err)
	}
	got := readJSON(t, d.body)
	same(t, "content", kinds(got["content"], "type"), "thinking", "mcp_tool_use", "tool_use", "mcp_tool_result")
	if got["stop_reason"] != "tool_use" || len(d.bodies) != 1 {
		t.Errorf("%d turns: %s", len(d.bodies), d.body)
	}
	d = adder()
	d.t, d.turns = t, append(d.turns, plain(200, useAdd))
	if err := d.run(Messages(nil), fmt.Sprintf(messagesOf, mathTool, `,"max_tool_calls":1`)); err != nil {
		t.Fatal(err)
	}
	if got := readJSON(t, d.body); len(d.called) != 1 || at(d.bodies[1], "tool_choice", "type") != "none" || got["stop_reason"] != "pause_turn" || d.bodies[0]["max_tool_calls"] != nil {
		t.Errorf("%v %s", d.called, d.body)
	}
}

// TestMessagesStream: the events of all turns are those of one message.
func TestMessagesStream(t *testing.T) {
	t.Parallel()
	d := adder()
	d.t, d.turns = t, append(d.turns,
		stream(`{"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}`, `{"type":"ping"}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"add","input":{}}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":":1}"}}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":4}}`, `{"type":"message_stop"}`),
		stream(`{"type":"message_start","message":{"id":"msg_2","content":[],"usage":{"input_tokens":20,"output_tokens":1}}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"three"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`, `{"type":"message_stop"}`))
	if err := d.run(Messages(nil), fmt.Sprintf(messagesOf, mathTool, `,"stream":true`)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range d.events {
		kind := fmt.Sprint(e["type"])
		if e["index"] != nil {
			kind = strings.TrimPrefix(kind, "content_block_") + fmt.Sprint(":", e["index"])
		}
		got = append(got, kind)
	}
	same(t, "events", got, "message_start", "ping", "start:0", "delta:0", "delta:0", "stop:0", "start:1", "delta:1", "delta:1", "stop:1", "start:2", "stop:2", "start:3", "delta:3", "stop:3", "message_delta", "message_stop")
	end := d.events[len(d.events)-2]
	if at(d.events[6], "content_block", "type") != "mcp_tool_use" || at(d.events[10], "content_block", "type") != "mcp_tool_result" || at(end, "usage", "output_tokens") != 9.0 || at(end, "usage", "input_tokens") != 30.0 || at(end, "delta", "stop_reason") != "end_turn" {
		t.Errorf("%v", d.events)
	}
	said := d.bodies[1]["messages"]
	if at(said, 1, "content", 0, "thinking") != "hm" || at(said, 1, "content", 0, "signature") != "s" || at(said, 1, "content", 1, "input", "a") != 1.0 {
		t.Errorf("%v", said)
	}
	same(t, "called", d.called, `math add {"a":1}`)

	// Arguments that are not JSON are reported to the model, and no tool is called.
	d = adder()
	d.t, d.turns = t, append(d.turns,
		stream(`{"type":"message_start","message":{"id":"msg_1"}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"add","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a"}}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`),
		stream(`{"type":"message_start","message":{}}`, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`))
	if err := d.run(Messages(nil), fmt.Sprintf(messagesOf, mathTool, `,"stream":true`)); err != nil {
		t.Fatal(err)
	}
	if len(d.called) != 0 || at(d.bodies[1], "messages", 2, "content", 0, "is_error") != true || d.events[len(d.events)-1]["message"] != "busy" {
		t.Errorf("%v %v", d.called, d.events)
	}
}
