package mockprovider

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// respond sends a body to POST /v1/responses.
func respond(t *testing.T, s *Server, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/responses", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer mock-key")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestResponsesStreamsKeepTheirGrammar(t *testing.T) {
	tools := `,"tools":[{"type":"function","name":"look_up","parameters":{"type":"object","properties":{"q":{"type":"string"}}}},{"type":"custom","name":"shell"}]`
	for name, c := range map[string]struct{ body, finish string }{
		"words":      {`{"model":"gpt-4o","input":"Hello","stream":true}`, "completed"},
		"tools":      {`{"model":"gpt-4o","input":"go\nmock: parallel","stream":true` + tools + `}`, "completed"},
		"reasoning":  {`{"model":"gpt-5","input":"Hello","stream":true,"reasoning":{"effort":"low","summary":"auto"},"include":["reasoning.encrypted_content"]}`, "completed"},
		"cut":        {`{"model":"gpt-4o","input":"x\nmock: chunks=50","max_output_tokens":16,"stream":true}`, "max_output_tokens"},
		"refusal":    {`{"model":"gpt-4o","input":"x\nmock: refuse","stream":true}`, "completed"},
		"filtered":   {`{"model":"gpt-4o","input":"x\nmock: finish=content_filter","stream":true}`, "content_filter"},
		"log probs":  {`{"model":"gpt-4o","input":"x","stream":true,"include":["message.output_text.logprobs"]}`, "completed"},
		"whole JSON": {`{"model":"gpt-4o","input":"x","stream":true,"text":{"format":{"type":"json_schema","name":"a","schema":{"type":"object","properties":{"n":{"type":"integer"}}}}}}`, "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{})
			status, out := respond(t, s, c.body)
			got, err := ReadResponsesStream([]byte(out))
			if status != 200 || err != nil || got.Finish != c.finish {
				t.Fatalf("%d %v, finish %q\n%s", status, err, got.Finish, out)
			}
			row := s.Bill().Rows[0]
			if row.Open || got.Completion != row.Output+row.Reasoning || got.Prompt != row.prompt() {
				t.Errorf("told %d and %d, billed %+v", got.Prompt, got.Completion, row.Usage)
			}
			plain := strings.Replace(c.body, `"stream":true`, `"stream":false`, 1)
			status, out = respond(t, s, plain)
			var whole struct {
				Object string
				Usage  struct {
					Output int64 `json:"output_tokens"`
				}
			}
			if err := json.Unmarshal([]byte(out), &whole); status != 200 || err != nil || whole.Object != "response" || whole.Usage.Output != got.Completion {
				t.Errorf("plain: %d %v %s", status, err, out)
			}
		})
	}
}

func TestBrokenResponsesStreamsAreFound(t *testing.T) {
	_, good := respond(t, New(Options{}), `{"model":"gpt-4o","input":"Hello","stream":true}`)
	if _, err := ReadResponsesStream([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, broken := range map[string]string{
		"an event is left out":      strings.Replace(good, good[strings.Index(good, "event: response.content_part.added"):strings.Index(good, "event: response.output_text.delta")], "", 1),
		"a number stands twice":     strings.Replace(good, `"sequence_number":3`, `"sequence_number":2`, 1),
		"another text at the end":   strings.Replace(good, `"response.output_text.done","sequence_number"`, `"response.output_text.done","text":"no","sequence_number"`, 1),
		"no end":                    good[:strings.LastIndex(good, "event: response.completed")],
		"an item under another id":  strings.Replace(good, `"item_id":"msg_`, `"item_id":"x_`, 1),
		"the name is of another":    strings.Replace(good, "event: response.in_progress", "event: response.created", 1),
		"something behind the last": good + "event: response.in_progress\ndata: {\"type\":\"response.in_progress\"}\n\n",
	} {
		if _, err := ReadResponsesStream([]byte(broken)); err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

func TestResponsesRefusals(t *testing.T) {
	for _, c := range []struct {
		body   string
		status int
		param  string
	}{
		{`{"model":"gpt-4o"}`, 400, "input"},
		{`{"model":"gpt-4o","input":[]}`, 400, "input"},
		{`{"model":"gpt-4o","messages":[]}`, 400, "input"},
		{`{"model":"gpt-4o","input":"x","max_tokens":5}`, 400, "max_tokens"},
		{`{"model":"gpt-4o","input":"x","max_output_tokens":5}`, 400, "max_output_tokens"},
		{`{"model":"gpt-4o","input":"x","nonsense":1}`, 400, "nonsense"},
		{`{"model":"gpt-4o","input":"x","stream":true,"stream_options":{"include_usage":true}}`, 400, "stream_options.include_usage"},
		{`{"model":"gpt-4o","input":"x","reasoning":{"effort":"low"}}`, 400, "reasoning.effort"},
		{`{"model":"gpt-5","input":"x","temperature":1}`, 400, "temperature"},
		{`{"model":"gpt-4o","input":"x","previous_response_id":"resp_1"}`, 400, "previous_response_id"},
		{`{"model":"gpt-4o","input":"x","conversation":"c"}`, 404, ""},
		{`{"model":"gpt-4o","input":[{"type":"item_reference","id":"msg_1"}]}`, 404, "input"},
		{`{"model":"gpt-4o","input":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`, 400, "input[0].content[0].type"},
		{`{"model":"gpt-4o","input":[{"role":"assistant","content":[{"type":"input_text","text":"x"}]}]}`, 400, "input[0].content[0].type"},
		{`{"model":"gpt-4o","input":[{"role":"robot","content":"x"}]}`, 400, "input[0].role"},
		{`{"model":"gpt-4o","input":[{"role":"user","content":"x","name":"ada"}]}`, 400, "input[0].name"},
		{`{"model":"gpt-4o","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`, 400, "input"},
		{`{"model":"gpt-4o","input":[{"type":"function_call_output","call_id":"c","output":"x"}]}`, 400, "input"},
		{`{"model":"gpt-5","input":[{"type":"reasoning","summary":[],"encrypted_content":"forged"},{"role":"user","content":"x"}]}`, 400, ""},
		{`{"model":"gpt-5","input":[{"type":"reasoning","id":"rs_1","summary":[]},{"role":"user","content":"x"}]}`, 404, "input"},
		{`{"model":"gpt-4o","input":"x","tools":[{"type":"function","function":{"name":"f"}}]}`, 400, "tools[0].name"},
		{`{"model":"gpt-4o","input":"x","tools":[{"type":"function","name":"f"}]}`, 400, "tools[0].parameters"},
		{`{"model":"gpt-4o","input":"x","include":["all"]}`, 400, "include"},
		{`{"model":"gpt-4o","input":"x","text":{"format":{"type":"xml"}}}`, 400, "text.format.type"},
		{`{"model":"does-not-exist","input":"x"}`, 404, ""},
	} {
		s := New(Options{})
		status, out := respond(t, s, c.body)
		var e struct {
			Error struct {
				Message, Type string
				Param         *string
			}
		}
		param := ""
		if err := json.Unmarshal([]byte(out), &e); err == nil && e.Error.Param != nil {
			param = *e.Error.Param
		}
		if status != c.status || param != c.param || e.Error.Message == "" || e.Error.Type == "" {
			t.Errorf("%s: %d %s", c.body, status, out)
		}
		if u := s.Bill().Total.Usage; u != (Usage{}) {
			t.Errorf("%s was charged: %+v", c.body, u)
		}
	}
}
