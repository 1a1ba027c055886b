package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// everyScope are guardrails that together judge all texts of a request.
func everyScope() string {
	var all []string
	for _, scope := range []string{"all_messages", "system", "tool_arguments", "tool_results"} {
		all = append(all, `{"regexMatch":{"rule":"hunter2","not":true,"scope":"`+scope+`"},"deny":true}`)
	}
	return `"input_guardrails":[` + strings.Join(all, ",") + `]`
}

// TestEveryFieldOfSessionEventsIsJudged: nothing of a client's event reaches the model unread,
// also fields that the gateway does not know and events in binary messages.
func TestEveryFieldOfSessionEventsIsJudged(t *testing.T) {
	t.Parallel()
	r := start(t)
	google, mock := startGoogle(t)
	const tool = `"tools":[{"type":"function","name":"f","description":"HERE","parameters":{"type":"object"}}]`
	for _, c := range []struct {
		open  func() *realtimeClient
		first string
		event string
	}{
		{event: `{"type":"session.update","session":{"type":"realtime","instructions":"HERE"}}`},
		{event: `{"type":"session.update","session":{"type":"realtime",` + tool + `}}`},
		{event: `{"type":"session.update","session":{"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"a":{"type":"string","description":"HERE"}}}}]}}`},
		{event: `{"type":"session.update","session":{"tools":[{"type":"mcp","server_label":"x","server_url":"https://x.example","server_description":"HERE"}]}}`},
		{event: `{"type":"session.update","session":{"prompt":{"id":"pmpt_1","variables":{"a":"HERE"}}}}`},
		{event: `{"type":"session.update","session":{"audio":{"input":{"transcription":{"model":"whisper-1","prompt":"HERE"}}}}}`},
		{event: `{"type":"session.update","session":{"instructions":"x"},"response":{"instructions":"HERE"}}`},
		{event: `{"type":"transcription_session.update","session":{"input_audio_transcription":{"model":"whisper-1","prompt":"HERE"}}}`},
		{event: `{"type":"response.create","response":{"instructions":"HERE"}}`},
		{event: `{"type":"response.create","response":{` + tool + `}}`},
		{event: `{"type":"response.create","response":{"prompt":{"id":"pmpt_1","variables":{"a":"HERE"}}}}`},
		{event: `{"type":"response.create","response":{"input":[{"type":"function_call_output","call_id":"x","output":"HERE"}]}}`},
		{event: `{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"x","output":"HERE"}}`},
		{event: `{"type":"conversation.item.create","item":{"type":"function_call","call_id":"x","name":"f","arguments":"{\"a\":\"HERE\"}"}}`},
		{event: `{"type":"conversation.item.create","item":{"type":"mcp_list_tools","server_label":"l","tools":[{"name":"n","description":"HERE","input_schema":{}}]}}`},
		{event: `{"type":"conversation.item.create","item":{"type":"message","role":"system","content":[{"type":"input_text","text":"HERE"}]}}`},
		{event: `{"type":"conversation.item.create","items":[{"type":"message","role":"user","content":[{"type":"input_text","text":"HERE"}]}]}`},
		{event: `{"type":"an.event.of.tomorrow","note":"HERE"}`},
		{open: func() *realtimeClient { return google.guardedLive(bidiV1beta, "@google") }, first: `{"setup":{"model":"gemini-2.5-flash",` + textOnly + `,"tools":[{"functionDeclarations":[{"name":"f","description":"HERE"}]}]}}`},
		{open: func() *realtimeClient { return google.guardedLive(bidiV1beta, "@google") }, first: `{"setup":{"model":"gemini-2.5-flash",` + textOnly + `,"systemInstruction":{"parts":[{"text":"HERE"}]}}}`},
		{open: func() *realtimeClient { return google.guardedLive(bidiV1beta, "@google") }, first: `{"setup":{"model":"gemini-2.5-flash",` + textOnly + `}}`,
			event: `{"clientContent":{"turns":[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":"HERE"}}}]}],"turnComplete":true}}`},
		{open: func() *realtimeClient { return google.guardedLive(bidiV1beta, "@google") }, first: `{"setup":{"model":"gemini-2.5-flash",` + textOnly + `}}`,
			event: `{"clientContent":{"turns":[{"role":"user","parts":[{"executableCode":{"language":"PYTHON","code":"HERE"}}]}],"turnComplete":true}}`},
		{open: func() *realtimeClient { return google.guardedLive(bidiV1beta, "@google") }, first: `{"setup":{"model":"gemini-2.5-flash",` + textOnly + `}}`,
			event: `{"toolResponse":{"functionResponses":[{"id":"i","name":"f","response":{"rows":[{"n":"HERE"}]}}]}}`},
		{open: func() *realtimeClient { return r.guardedLive(liveSessions, "@mock") }, first: `{"type":"session.start","session":{"model":"gpt-live-1","delegation":{"responses":{"model":"gpt-4o",` + tool + `}}}}`},
	} {
		for _, kind := range []int{websocket.TextMessage, websocket.BinaryMessage} {
			for _, secret := range []string{"hunter2", `h\u0075nter2`} {
				judged := c.event
				if c.event == "" {
					judged = c.first
				}
				var s *realtimeClient
				if c.open == nil {
					s = r.guardedBy(everyScope())
				} else {
					s = c.open()
					s.write(kind, strings.ReplaceAll(c.first, "HERE", secret))
					if c.event != "" {
						s.turnsOf(1)
					}
				}
				if c.event != "" {
					s.write(kind, strings.ReplaceAll(c.event, "HERE", secret))
				}
				if denial := s.denial(); !strings.Contains(denial, "uardrail") && !strings.Contains(denial, "hooks_failed") {
					t.Errorf("%s (%d) is not denied: %s", judged, kind, denial)
				}
				_ = s.ws.Close()
			}
		}
	}
	google.mock = mock
	for _, g := range []*running{r, google} {
		if got := g.atProvider(); strings.Contains(got, "nter2") {
			t.Errorf("the provider has got %s", got)
		}
	}
}

// guardedLive opens a Live session whose guardrails judge everything.
func (r *running) guardedLive(path, provider string) *realtimeClient {
	return r.lively(path, "x-gateway-config", `{"provider":"`+provider+`",`+everyScope()+`}`)
}

func (s *realtimeClient) write(kind int, message string) {
	s.t.Helper()
	if err := s.ws.WriteMessage(kind, []byte(message)); err != nil {
		s.t.Fatal(err)
	}
}

// denial is the error event, or the end of the session, that comes next.
func (s *realtimeClient) denial() string {
	for {
		_ = s.ws.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, body, err := s.ws.ReadMessage()
		if err != nil {
			return err.Error()
		}
		if strings.Contains(string(body), `"type":"error"`) {
			return fmt.Sprint(string(body))
		}
	}
}

// TestFieldsInTwoSpellingsAreRejected: a provider reads one of the spellings, and the gateway
// must not check the other one.
func TestFieldsInTwoSpellingsAreRejected(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.speak("model=@mock/gpt-realtime")
	for _, event := range []string{
		`{"type":"session.update","session":{"input_audio_transcription":{"model":"whisper-1"},"audio":{"input":{"transcription":{"model":"gpt-4o-transcribe"}}}}}`,
		`{"type":"session.update","session":{"max_output_tokens":1,"max_response_output_tokens":"inf"}}`,
		`{"type":"response.create","response":{"max_output_tokens":1,"max_response_output_tokens":"inf"}}`,
	} {
		s.send(event)
		if denial := s.denial(); !strings.Contains(denial, "two spellings") {
			t.Errorf("%s: %s", event, denial)
		}
	}
	s.send(`{"type":"session.update","session":{"input_audio_transcription":null,"max_response_output_tokens":null,"max_output_tokens":7}}`)
	s.next("session.updated")
	s.leave()
	if got := r.atProvider(); strings.Contains(got, "inf") {
		t.Error(got)
	}
}
