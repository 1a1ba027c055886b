package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"gateway/shared/pricing"
)

const bidiV1beta = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"

// content reads up to the end of n turns of a Live session of Gemini.
func (s *realtimeClient) turnsOf(n int) (all string) {
	s.t.Helper()
	for n > 0 {
		_ = s.ws.SetReadDeadline(time.Now().Add(time.Minute))
		_, body, err := s.ws.ReadMessage()
		if err != nil {
			s.t.Fatalf("%v after %s", err, all)
		}
		all += string(body) + "\n"
		var m struct {
			Setup   json.RawMessage `json:"setupComplete"`
			Content struct {
				Complete bool `json:"turnComplete"`
			} `json:"serverContent"`
			Tool json.RawMessage `json:"toolCall"`
		}
		if json.Unmarshal(body, &m) != nil {
			s.t.Fatalf("%s", body)
		}
		if m.Content.Complete || m.Tool != nil || m.Setup != nil {
			n--
		}
	}
	return all
}

func bidiTurn(words string) string {
	return fmt.Sprintf(`{"clientContent":{"turns":[{"role":"user","parts":[{"text":%q}]}],"turnComplete":true}}`, words)
}

const textOnly = `"generationConfig":{"responseModalities":["TEXT"]}`

// Each turn is one record, whatever else reports its usage again, grown, late or in parts.
func TestEachTurnOfALiveSessionOfGeminiIsOneRecord(t *testing.T) {
	t.Parallel()
	r, mock := startGoogle(t)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":10}`)
	s := r.lively(bidiV1beta+"?key=placeholder", "X-Gateway-Api-Key", key)
	s.send(`{"setup":{"model":"models/@google/gemini-2.5-flash",` + textOnly + `}}`)
	s.turnsOf(1)
	for _, words := range []string{"one", "two grows", "three again", "four late", "five chunks=7"} {
		s.send(bidiTurn(words))
		s.turnsOf(1)
	}
	s.send(bidiTurn("six tool"))
	s.turnsOf(1)
	s.send(`{"toolResponse":{"functionResponses":[{"id":"call_1","name":"look","response":{}}]}}`)
	s.turnsOf(1)
	s.send(`{"realtimeInput":{"text":"and seven"}}`)
	s.turnsOf(1)
	s.leave()
	turns, sessions := r.turns(9)
	cost, _ := costOf(turns)
	bill := mock.Bill().Total
	if len(turns) != 8 || cost != bill.NanoDollars || cost == 0 || len(sessions) != 1 || sessions[0].FinishReason != "closed_by_client" {
		t.Errorf("%d turns for %d, the bill is %d; %+v", len(turns), cost, bill.NanoDollars, sessions)
	}
	for _, rec := range turns {
		if !rec.Priced || rec.Usage.Estimated || rec.Model != "gemini-2.5-flash" || rec.Provider != "google" || rec.ClientStatus != 200 {
			t.Errorf("%+v", rec)
		}
	}
	for _, got := range mock.Requests(100) {
		if strings.Contains(got.Query+fmt.Sprint(got.Headers), key) || strings.Contains(got.Query, "placeholder") {
			t.Errorf("the provider was told the key: %s %v", got.Query, got.Headers)
		}
	}
	eventually(t, func() error { return usageIs(r, key, bill.NanoDollars) })
}

// A turn that is never over, and one whose usage is never told, are recorded by what came.
func TestTurnsOfGeminiThatBreakAreEstimated(t *testing.T) {
	t.Parallel()
	r, mock := startGoogle(t)
	open := func() *realtimeClient {
		s := r.lively(bidiV1beta)
		s.send(`{"setup":{"model":"@google/gemini-2.5-flash",` + textOnly + `}}`)
		s.turnsOf(1)
		return s
	}
	s := open()
	s.send(bidiTurn("words drop chunks=9"))
	s.ended()
	s = open()
	s.send(bidiTurn("words no-usage chunks=9"))
	s.turnsOf(1)
	s.leave()
	turns, sessions := r.turns(4)
	if len(turns) != 2 || len(sessions) != 2 {
		t.Fatalf("%+v %+v", turns, sessions)
	}
	for _, rec := range turns {
		if out := rec.Usage.N(pricing.Output); !rec.Usage.Estimated || out < 9 || rec.Cost == 0 {
			t.Errorf("%+v", rec)
		}
	}
	if cost, _ := costOf(turns); cost < mock.Bill().Total.NanoDollars {
		t.Errorf("%d, the bill is %d", cost, mock.Bill().Total.NanoDollars)
	}
}

// Responses are held until they are judged, where guardrails ask for that.
func TestLiveSessionsOfGeminiAreJudged(t *testing.T) {
	t.Parallel()
	r, _ := startGoogle(t)
	open := func(g, setup string) *realtimeClient {
		s := r.lively(bidiV1beta, "x-gateway-config", `{"provider":"@google",`+g+`}`)
		s.send(`{"setup":{"model":"gemini-2.5-flash",` + setup + `}}`)
		return s
	}
	s := open(`"output_guardrails":[`+noHunter+`,"stream":"hold"}]`, textOnly)
	s.turnsOf(1)
	s.send(bidiTurn("say=all_is_well"))
	if got := s.turnsOf(1); !strings.Contains(got, "modelTurn") {
		t.Error(got)
	}
	s.send(bidiTurn("say=my_hunter2_is_here"))
	_ = s.ws.SetReadDeadline(time.Now().Add(time.Minute))
	if _, body, err := s.ws.ReadMessage(); err == nil || !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
		t.Errorf("%s %v", body, err)
	}
	s = open(`"input_guardrails":[`+noHunter+`}]`, textOnly)
	s.turnsOf(1)
	s.send(bidiTurn("my hunter2"))
	if closed := s.ended(); closed.Code != websocket.ClosePolicyViolation {
		t.Errorf("%v", closed)
	}
	s = open(`"input_guardrails":[`+noHunter+`}]`, textOnly)
	s.turnsOf(1)
	s.send(`{"realtimeInput":{"audio":{"data":"AAAA","mimeType":"audio/pcm"}}}`)
	if closed := s.ended(); !strings.Contains(closed.Text, "inputAudioTranscription") {
		t.Errorf("%v", closed)
	}
	s = open(`"output_guardrails":[`+noHunter+`}]`, `"generationConfig":{"responseModalities":["AUDIO"]}`)
	if closed := s.ended(); !strings.Contains(closed.Text, "outputAudioTranscription") {
		t.Errorf("%v", closed)
	}
}

// A handle resumes a session with all that was said in it: under a credential that several
// workspaces use it is that of the workspace whose session it was, and no handle is known that
// was not told through the gateway.
func TestASessionOfGeminiIsResumedByItsOwnWorkspace(t *testing.T) {
	t.Parallel()
	r := start(t)
	n := neighbours{running: r}
	mock, host, _ := googleMock(t)
	r.admin("POST", "/integrations", `{"name":"Google","slug":"google","ai_provider_id":"google","key":"mock-google","configurations":{"custom_host":"`+host+`"}}`)
	r.admin("PUT", "/integrations/google/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	for i, key := range []*string{&n.mine, &n.theirs} {
		ws := r.admin("POST", "/workspaces", fmt.Sprintf(`{"name":"Neighbour %d"}`, i))
		*key = r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"]}`, ws["id"]))["key"].(string)
	}
	begin := func(key, member, resumption string) *realtimeClient {
		t.Helper()
		s := r.lively(bidiV1beta, "X-Gateway-Api-Key", key)
		s.send(`{"setup":{"model":"models/@google/gemini-2.5-flash",` + textOnly + `,"` + member + `":` + resumption + `}}`)
		return s
	}
	// resumes reports whether a session begins, and gives the handle that it is told.
	resumes := func(key, member, resumption string) (handle string, ok bool) {
		t.Helper()
		s := begin(key, member, resumption)
		defer s.leave()
		for {
			_ = s.ws.SetReadDeadline(time.Now().Add(time.Minute))
			_, body, err := s.ws.ReadMessage()
			if err != nil {
				return "", false
			}
			var m struct {
				Update *struct {
					Handle string `json:"newHandle"`
				} `json:"sessionResumptionUpdate"`
			}
			if json.Unmarshal(body, &m) == nil && m.Update != nil {
				return m.Update.Handle, true
			}
		}
	}
	received := func() (n int) {
		for _, got := range mock.Requests(1000) {
			if got.Method == "EVENT" {
				n++
			}
		}
		return n
	}
	resumption := func(handle string) string { return fmt.Sprintf(`{"handle":%q}`, handle) }
	for _, key := range []string{n.mine, n.theirs} { // both use the credential
		if _, ok := resumes(key, "sessionResumption", `{}`); !ok {
			t.Fatal("no session")
		}
	}
	handle, ok := resumes(n.theirs, "sessionResumption", resumption(""))
	if !ok || handle == "" {
		t.Fatal("no handle")
	}
	if _, ok := resumes(n.theirs, "sessionResumption", resumption(handle)); !ok {
		t.Error("it cannot be resumed by its own workspace")
	}
	for name, c := range map[string]struct{ member, handle string }{
		"another's": {"sessionResumption", handle}, "spelled otherwise": {"session_resumption", handle}, "escaped": {`session\u0052esumption`, handle}, "nobody's": {"sessionResumption", "made-up"},
	} {
		before := received()
		if _, ok := resumes(n.mine, c.member, resumption(c.handle)); ok || received() != before {
			t.Errorf("%s: it was resumed", name)
		}
	}
}
