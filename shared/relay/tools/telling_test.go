package tools

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gateway/shared/relay/approval"
	"gateway/shared/relay/routes"
)

// responsesWithin and messagesWithin are runs with other bounds.
func responsesWithin(b Limits) *routes.ToolRun {
	return of(nil, b, true, func(d *routes.ToolLoop) shape { return &responses{loop: d} })
}

func messagesWithin(b Limits) *routes.ToolRun {
	return of(nil, b, false, func(*routes.ToolLoop) shape { return new(messages) })
}

// TestStreamsSayThatTheyLive: while a tool works, or the model reasons, the client gets
// keep-alives; without a stream it gets none.
func TestStreamsSayThatTheyLive(t *testing.T) {
	t.Parallel()
	quick := Limits{KeepAlive: time.Millisecond}
	for name, c := range map[string]struct {
		of         *routes.ToolRun
		body       string
		use, ended []string
	}{
		"responses": {responsesWithin(quick), requestOf, []string{`{"type":"response.created","response":{}}`, `{"type":"response.completed","response":` + askAdd + `}`}, []string{`{"type":"response.completed","response":` + sayThree + `}`}},
		"messages": {messagesWithin(quick), messagesOf, []string{`{"type":"message_start","message":{"id":"msg_1"}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"add","input":{}}}`,
			`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`}, []string{`{"type":"message_start","message":{"id":"msg_2"}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`}},
	} {
		d := adder()
		d.t, d.sign = t, make(chan struct{})
		d.call = func(string, string) string {
			<-d.sign
			<-d.sign
			return result("three")
		}
		d.turns = append(d.turns, stream(c.use...), stream(c.ended...))
		ended := make(chan struct{})
		done := make(chan error, 1)
		go func() { // ends with the run
			done <- d.run(c.of, fmt.Sprintf(c.body, mathTool, `,"stream":true`))
			close(ended)
		}()
		for over := false; !over; {
			select {
			case <-d.sign: // sent before or after the call
			case <-ended:
				over = true
			}
		}
		if err := <-done; err != nil || !d.ended || d.fault != nil || strings.HasPrefix(d.first, ":") || len(d.called) != 1 {
			t.Errorf("%s: %v, %v, first %q, called %v", name, err, d.fault, d.first, d.called)
		}
	}
	d := adder()
	d.t, d.sign, d.turns = t, make(chan struct{}), append(d.turns, plain(200, askAdd), plain(200, sayThree))
	d.call = func(string, string) string {
		time.Sleep(5 * time.Millisecond) // a keep-alive would find no reader, and the run would not end
		return result("three")
	}
	if err := d.run(responsesWithin(quick), fmt.Sprintf(requestOf, mathTool, "")); err != nil || d.first != "" || d.body == "" {
		t.Errorf("%v, %q, %s", err, d.first, d.body)
	}
}

// TestASignBeginsAStream: calls that the client has approved come before the first turn.
func TestASignBeginsAStream(t *testing.T) {
	t.Parallel()
	d := adder()
	d.approvals = newApprovals(t)
	id, err := d.approvals.Create(t.Context(), &approval.Call{ID: "c1", Server: "@gateway-mcp/math", Tool: "add", Arguments: "{}"})
	if err != nil {
		t.Fatal(err)
	}
	approved := `{"model":"m","stream":true,"tools":[` + mathTool + `],"input":[{"role":"user","content":"x"},{"type":"mcp_approval_request","id":"` + id + `","server_label":"@gateway-mcp/math","name":"add","arguments":"{}"},
		{"type":"mcp_approval_response","approval_request_id":"` + id + `","approve":true}]}`
	d.t, d.sign = t, make(chan struct{}, 1_000_000)
	d.call = func(string, string) string { <-d.sign; return result("three") }
	d.turns = append(d.turns, plain(500, `{"error":{"message":"down"}}`))
	if err := d.run(responsesWithin(Limits{KeepAlive: time.Millisecond}), approved); err != nil || d.first != aSign || !d.ended || len(d.events) == 0 || d.events[len(d.events)-1]["type"] != "error" {
		t.Errorf("%v, first %q, %v", err, d.first, d.events)
	}
}

// TestTimeEndsARun: calls end with the time of the run, the model gets an error and may call no
// further tools.
func TestTimeEndsARun(t *testing.T) {
	t.Parallel()
	short := Limits{Time: time.Minute} // of a clock that advances while everything waits
	for name, c := range map[string]struct {
		of                *routes.ToolRun
		body, use, answer string
	}{
		"responses": {responsesWithin(short), requestOf, askAdd, sayThree},
		"messages":  {messagesWithin(short), messagesOf, useAdd, thenThree},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, begun := adder(), time.Now()
			d.t, d.hangs, d.turns = t, true, append(d.turns, plain(200, c.use), plain(200, c.answer))
			if err := d.run(c.of, fmt.Sprintf(c.body, mathTool, "")); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took != short.Time || len(d.bodies) != 2 || !strings.Contains(fmt.Sprint(d.bodies[1]["tool_choice"]), "none") || !strings.Contains(d.body, "the tool run ended") || !strings.Contains(d.body, "three") {
				t.Errorf("%s: %d turns in %s, %s", name, len(d.bodies), took, d.body)
			}
		})
	}
}
