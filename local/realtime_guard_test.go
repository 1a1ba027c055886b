package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// guardedBy opens a session whose config has guardrails.
func (r *running) guardedBy(guardrails string, headers ...string) *realtimeClient {
	r.t.Helper()
	return r.speak("model=gpt-realtime", append([]string{"x-gateway-config", `{"provider":"@mock",` + guardrails + `}`}, headers...)...)
}

// until reads up to an event of a type; the result is all that came, also errors.
func (s *realtimeClient) until(kind string) (all string, last map[string]any) {
	s.t.Helper()
	for {
		_ = s.ws.SetReadDeadline(time.Now().Add(time.Minute))
		_, body, err := s.ws.ReadMessage()
		if err != nil {
			s.t.Fatalf("before %s: %v, after %s", kind, err, all)
		}
		all += string(body) + "\n"
		var e map[string]any
		if err := json.Unmarshal(body, &e); err != nil {
			s.t.Fatal(err)
		}
		if e["type"] == kind {
			return all, e
		}
	}
}

// atProvider are the events that the mock provider has got.
func (r *running) atProvider() (out string) {
	for _, g := range r.mock.Requests(1000) {
		if g.Method == "EVENT" {
			out += string(g.Body) + "\n"
		}
	}
	return out
}

const noHunter = `{"regexMatch":{"rule":"hunter2","not":true},"deny":true`

// TestClientEventsAreJudged: items, instructions of sessions and of responses, and what
// was heard.
func TestClientEventsAreJudged(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.guardedBy(`"input_guardrails":[` + noHunter + `}]`)
	for _, event := range []string{
		`{"type":"conversation.item.create","event_id":"e1","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"my hunter2"}]}}`,
		`{"type":"response.create","event_id":"e1","response":{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"my hunter2"}]}]}}`,
	} {
		s.send(event)
		if _, e := s.until("error"); !strings.Contains(fmt.Sprint(e), "hooks_failed") || !strings.Contains(fmt.Sprint(e), "event_id:e1") || !strings.Contains(fmt.Sprint(e["hook_results"]), "verdict:false") {
			t.Errorf("%s: %v", event, e)
		}
	}
	s.send(`{"type":"input_audio_buffer.append","audio":"AAAA"}`)
	if _, e := s.until("error"); !strings.Contains(fmt.Sprint(e), "audio.input.transcription") {
		t.Error(e)
	}
	s.send(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_audio","audio":"AAAA"}]}}`)
	if _, e := s.until("error"); !strings.Contains(fmt.Sprint(e), "audio within an item") {
		t.Error(e)
	}
	s.addText("all is well")
	s.send(`{"type":"response.create"}`)
	s.until("response.done")
	s.leave()
	if got := r.atProvider(); strings.Contains(got, "hunter2") || strings.Contains(got, "AAAA") || !strings.Contains(got, "all is well") {
		t.Error(got)
	}
	system := r.guardedBy(`"input_guardrails":[{"regexMatch":{"rule":"hunter2","not":true,"scope":"system"},"deny":true}]`)
	for _, event := range []string{`{"type":"session.update","session":{"type":"realtime","instructions":"hunter2"}}`, `{"type":"response.create","response":{"instructions":"hunter2"}}`} {
		system.send(event)
		if _, e := system.until("error"); !strings.Contains(fmt.Sprint(e), "hooks_failed") {
			t.Errorf("%s: %v", event, e)
		}
	}
	system.leave()
	records := r.byTime(3) // of two sessions and a response
	verdicts := ""
	for i := range records {
		for _, g := range records[i].Guards {
			verdicts += fmt.Sprint(g.Phase, " ", g.Verdict, " ", g.Denied, "; ")
		}
	}
	if strings.Count(verdicts, "false true") != 4 || !strings.Contains(verdicts, "true false") {
		t.Error(verdicts)
	}
}

// TestClientEventsAreChanged: what guardrails took out of it is what is sent.
func TestClientEventsAreChanged(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.guardedBy(`"input_guardrails":[{"regexReplace":{"rule":"/hunter2/g","redactText":"***"}},{"regexReplace":{"rule":"/hunter2/g","redactText":"***","scope":"system"}}]`)
	s.send(`{"type":"session.update","session":{"type":"realtime","instructions":"no hunter2","voice":"alloy"}}`)
	s.until("session.updated")
	s.send(`{"type":"conversation.item.create","event_id":"mine","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"my hunter2"}]}}`)
	s.send(`{"type":"response.create","response":{"instructions":"tell hunter2","metadata":{"a":"b"}}}`)
	s.until("response.done")
	s.leave()
	got := r.atProvider()
	for _, want := range []string{`"no ***"`, `"voice":"alloy"`, `"my ***"`, `"event_id":"mine"`, `"tell ***"`, `"metadata":{"a":"b"}`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if strings.Contains(got, "hunter2") {
		t.Error(got)
	}
	for _, rec := range r.byTime(2) {
		if strings.Contains(fmt.Sprint(rec), "hunter2") {
			t.Errorf("the log has it: %+v", rec)
		}
	}
}

// TestInputAudioIsJudged: by its transcript. The response to what is denied is ended.
func TestInputAudioIsJudged(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range []struct{ hook, has, hasNot, upstream string }{
		{`{"regexMatch":{"rule":"heard","not":true},"deny":true}`, `hooks_failed`, `"transcript":"`, `conversation.item.delete`},
		{`{"regexReplace":{"rule":"heard","redactText":"***"}}`, `words that were ***`, `heard"`, `input_audio_buffer.commit`},
		{`{"regexMatch":{"rule":"heard"},"deny":true}`, `words that were heard`, `hooks_failed`, `input_audio_buffer.commit`},
	} {
		s := r.guardedBy(`"input_guardrails":[` + c.hook + `]`)
		s.send(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"transcription":{"model":"whisper-1"}}}}}`)
		s.send(`{"type":"input_audio_buffer.append","audio":"AAAA"}`) // before the session is known to have it
		s.send(`{"type":"input_audio_buffer.commit"}`)
		s.until("input_audio_buffer.committed")
		s.send(`{"type":"response.create"}`)
		all, _ := s.until("response.done")
		if !strings.Contains(all, c.has) || strings.Contains(all, c.hasNot) || strings.Contains(all, "transcription.delta") || strings.Contains(all, "transcription.segment") {
			t.Errorf("%s: %s", c.hook, all)
		}
		for line := range strings.SplitSeq(all, "\n") {
			if strings.Contains(line, "transcription.completed") || strings.Contains(line, "hook_results") { // the verdict
				break
			} else if strings.Contains(line, "were heard") {
				t.Errorf("%s: told before the verdict: %s", c.hook, all)
			}
		}
		s.leave()
		if got := r.atProvider(); !strings.Contains(got, c.upstream) {
			t.Errorf("%s: %s", c.hook, got)
		}
	}
	records := r.byTime(9) // a session, a transcript and a response each
	var spent int64
	for i := range records {
		spent += int64(records[i].Cost)
		if i < 3 && strings.Contains(fmt.Sprint(records[i]), "words that were heard") {
			t.Errorf("the log has it: %+v", records[i])
		}
	}
	if spent == 0 {
		t.Error("nothing was booked")
	}
}

// TestResponseEventsAreJudged: in texts and in transcripts, of both spellings.
func TestResponseEventsAreJudged(t *testing.T) {
	t.Parallel()
	r := start(t)
	n := 0
	for _, beta := range []string{"", "realtime=v1"} {
		for _, sound := range []bool{false, true} {
			for _, c := range []struct {
				name, hook, has, hasNot string
				denied                  bool
			}{
				{"held", noHunter + `,"stream":"hold"}`, `"status":"failed"`, "hunter2", true},
				{"window", noHunter + `,"stream":"window"}`, `"status":"failed"`, "hunter2", true},
				{"passes", `{"regexMatch":{"rule":"hunter3","not":true},"deny":true,"stream":"hold"}`, "hunter2", "hooks_failed", false},
				{"by default", noHunter + `}`, `"status":"failed"`, "hunter2", true},
				{"after", noHunter + `,"stream":"after"}`, `"type":"hook_results"`, "hooks_failed", false},
				{"changed", `{"regexReplace":{"rule":"/hunter2/g","redactText":"***"},"stream":"hold"}`, "***", "hunter2", sound},
			} {
				if c.name == "changed" && sound {
					c.has = "hooks_failed" // sound cannot be changed
				}
				s := r.guardedBy(`"output_guardrails":[`+c.hook+`]`, "OpenAI-Beta", beta, "x-gateway-strict-open-ai-compliance", "false")
				if sound {
					s.send(`{"type":"session.update","session":{"type":"realtime","output_modalities":["audio"]}}`)
					s.until("session.updated")
				}
				s.addText("say=my_word_is_hunter2_and_more chunks=7")
				s.until(map[bool]string{false: "conversation.item.added", true: "conversation.item.created"}[beta != ""]) // with what the client said
				s.send(`{"type":"response.create"}`)
				all, done := s.until("response.done")
				if c.name == "after" {
					more, _ := s.until("hook_results")
					all += more
				}
				s.leave()
				n += 2
				if !strings.Contains(all, c.has) || strings.Contains(all, c.hasNot) {
					t.Errorf("%s, sound %v, beta %q: %s", c.name, sound, beta, all)
				}
				if denied := strings.Contains(all, `"hook_results"`) && strings.Contains(all, `"type":"error"`); denied != c.denied || denied && strings.Contains(all, "audio.delta") {
					t.Errorf("%s, sound %v, beta %q: %s", c.name, sound, beta, all)
				}
				if usage, _ := done["response"].(map[string]any)["usage"].(map[string]any); usage["output_tokens"] == nil {
					t.Errorf("%s: no usage: %v", c.name, done)
				}
			}
		}
	}
	var spent int64
	for _, rec := range r.byTime(n) {
		spent += int64(rec.Cost)
		if failed := len(rec.Guards) > 0 && rec.Guards[0].Denied; failed && (rec.ClientStatus != 446 && rec.ClientStatus != 246 || rec.Cost == 0) {
			t.Errorf("%d, %d: %+v", rec.ClientStatus, rec.Cost, rec.Guards)
		}
	}
	if bill := r.mock.Bill().Total.NanoDollars; spent == 0 || spent != bill {
		t.Errorf("%d are booked of %d", spent, bill)
	}
}

// TestGuardrailsOfASessionAreReloaded: when a guardrail is added, changed or removed while
// the session runs, this holds for everything that is said from then on.
func TestGuardrailsOfASessionAreReloaded(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.speak("model=@mock/gpt-realtime")
	denied := func(text string) bool {
		s.send(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"` + text + `"}]}}`)
		for {
			switch e, err := s.read(); {
			case err != nil:
				t.Fatal(err)
			case e["type"] == "error":
				return true
			case e["type"] == "conversation.item.added":
				return false
			}
		}
	}
	becomes := func(text string, want bool) {
		t.Helper()
		eventually(t, func() error {
			if denied(text) != want {
				return fmt.Errorf("%s is not what it should become: denied %v", text, want)
			}
			return nil
		})
	}
	if denied("hunter2") {
		t.Fatal("nothing judges it")
	}
	check := func(rule string) string {
		return `[{"id":"default.regexMatch","parameters":{"rule":"` + rule + `","not":true}}]`
	}
	defaults := func(input, output string) {
		t.Helper()
		r.admin("PUT", "/admin/workspaces/"+r.workspace(), `{"defaults":{"input_guardrails":[`+input+`],"output_guardrails":[`+output+`]}}`)
	}
	made := r.admin("POST", "/guardrails", `{"name":"words","workspace_id":"`+r.workspace()+`","checks":`+check("hunter2")+`,"actions":{"deny":true,"stream":"hold"}}`)
	id := fmt.Sprintf("%q", made["id"])
	defaults(id, "")
	becomes("hunter2", true)
	r.admin("PUT", "/guardrails/"+made["slug"].(string), `{"checks":`+check("hunter3")+`}`)
	becomes("hunter2", false)
	becomes("hunter3", true)
	defaults("", id)
	becomes("say=it_is_hunter3", false)
	s.send(`{"type":"response.create"}`)
	if all, _ := s.until("response.done"); strings.Contains(all, "hunter3") || !strings.Contains(all, "hooks_failed") {
		t.Error(all)
	}
	defaults("", "")
	eventually(t, func() error {
		s.send(`{"type":"response.create"}`)
		if all, _ := s.until("response.done"); !strings.Contains(all, "hunter3") {
			return fmt.Errorf("it is still judged: %s", all)
		}
		return nil
	})
	s.leave()
}

// realtimeCells are the rows of what guardrails judge in sessions: what is written, what
// was heard, and what responses say.
func realtimeCells(r *running) (out string) {
	cell := func(content, side, how string, all string) {
		outcome := "shown: nothing to see"
		switch {
		case strings.Contains(all, `"type":"error"`) && strings.Contains(all, "hooks_failed"):
			outcome = "denied"
		case strings.Contains(all, `[{"verdict":false,"id"`):
			outcome = "told after its end"
		}
		text := content != "image" && content != "empty"
		if text == strings.HasPrefix(outcome, "shown") {
			r.t.Errorf("realtime, %s, %s, %s: %s", content, side, how, all)
		}
		out += fmt.Sprintf("%-25s %-15s %-7s %-13s %s\n", "realtime", content, side, how, outcome)
	}
	message := func(content string) string {
		return `{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[` + content + `]}}`
	}
	for _, c := range []struct{ content, scope, event, then string }{
		{"text", "last_message", message(`{"type":"input_text","text":"hunter2"}`), "error"},
		{"several parts", "last_message", message(`{"type":"input_text","text":"a"},{"type":"input_text","text":"hunter2"}`), "error"},
		{"instructions", "system", `{"type":"session.update","session":{"type":"realtime","instructions":"hunter2"}}`, "error"},
		{"instructions of it", "system", `{"type":"response.create","response":{"instructions":"hunter2"}}`, "error"},
		{"tool results", "tool_results", `{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"c","output":"hunter2"}}`, "error"},
		{"image", "last_message", message(`{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}`), "conversation.item.added"},
		{"empty", "last_message", message(`{"type":"input_text","text":""}`), "conversation.item.added"},
	} {
		s := r.guardedBy(`"input_guardrails":[{"regexMatch":{"rule":"hunter2","not":true,"scope":"` + c.scope + `"},"deny":true}]`)
		s.send(c.event)
		all, _ := s.until(c.then)
		cell(c.content, "before", "event", all)
		s.leave()
	}
	transcript := r.guardedBy(`"input_guardrails":[{"regexMatch":{"rule":"heard","not":true},"deny":true}]`)
	transcript.send(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"transcription":{"model":"whisper-1"}}}}}`)
	transcript.send(`{"type":"input_audio_buffer.append","audio":"AAAA"}`)
	transcript.send(`{"type":"input_audio_buffer.commit"}`)
	all, _ := transcript.until("error")
	cell("transcript", "before", "event", all)
	transcript.leave()
	for _, content := range []string{"text", "transcript", "empty"} {
		for _, how := range []string{"after", "hold", "window"} {
			s := r.guardedBy(`"output_guardrails":[`+noHunter+`,"stream":"`+how+`"}]`, "x-gateway-strict-open-ai-compliance", "false")
			if content == "transcript" {
				s.send(`{"type":"session.update","session":{"type":"realtime","output_modalities":["audio"]}}`)
			}
			if content == "empty" {
				s.addText("say=nothing")
			} else {
				s.addText("say=my_hunter2")
			}
			s.send(`{"type":"response.create"}`)
			all, _ := s.until("response.done")
			if !strings.Contains(all, "hook_results") {
				more, _ := s.until("hook_results")
				all += more
			}
			cell(content, "behind", how, all)
			s.leave()
		}
	}
	return out
}
