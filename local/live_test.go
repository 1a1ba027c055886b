package main

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"gateway/shared/pricing"
	"gateway/shared/usage"
)

// lively opens a WebSocket on which nothing was said yet.
func (r *running) lively(path string, headers ...string) *realtimeClient {
	r.t.Helper()
	ws, resp, err := r.dialSocket(path, headers...)
	if err != nil {
		r.t.Fatalf("%v: %v", err, resp)
	}
	r.t.Cleanup(func() { _ = ws.Close() })
	return &realtimeClient{r.t, ws}
}

const liveSessions = "/live/sessions"

// live opens a Live session.
func (r *running) live(model string, headers ...string) *realtimeClient {
	r.t.Helper()
	s := r.lively(liveSessions, headers...)
	s.send(fmt.Sprintf(`{"type":"session.start","event_id":"start","session":{"model":%q,"instructions":"Be brief."}}`, model))
	if got := s.next("session.started"); got["session"].(map[string]any)["model"] != "gpt-live-1" {
		r.t.Errorf("%v", got)
	}
	return s
}

// sounds sends so much sound, in milliseconds.
func (s *realtimeClient) sounds(ms int) {
	s.t.Helper()
	s.send(`{"type":"session.input_audio.append","audio":"` + base64.StdEncoding.EncodeToString(make([]byte, 48*ms)) + `"}`)
}

// handshakes are those that the mock provider has got.
func (r *running) handshakes() (n int) {
	for _, g := range r.mock.Requests(1000) {
		if g.Method == "GET" && strings.HasSuffix(g.Path, liveSessions) {
			n++
		}
	}
	return n
}

func (s *realtimeClient) instructs(words string) {
	s.t.Helper()
	s.send(fmt.Sprintf(`{"type":"session.instructions.append","content":%q}`, words))
}

// costOf adds up what records cost, by their models.
func costOf(records []usage.Record) (sum int64, models map[string]int) {
	models = map[string]int{}
	for _, rec := range records {
		sum += int64(rec.Cost)
		models[rec.Model]++
	}
	return sum, models
}

// Time is reported as a sum so far; the last report is recorded. A response made within a
// session is recorded once, by its own id and at the price of its own model.
func TestALiveSessionIsBookedOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":10}`)
	s := r.live("@mock/gpt-live-1", "X-Gateway-Api-Key", key, "X-Gateway-Trace-Id", "trace-of-a-session")
	for _, ms := range []int{4000, 4000, 3500} {
		s.sounds(ms)
		s.next("session.usage.updated")
	}
	s.instructs("twice delegate decide")
	s.next("decision.event")
	s.send(`{"type":"session.close"}`)
	if got := s.next("session.closed"); got["usage"].(map[string]any)["seconds"] != 11.5 {
		t.Errorf("%v", got)
	}
	if closed := s.ended(); closed.Code != websocket.CloseNormalClosure {
		t.Errorf("%v", closed)
	}
	turns, sessions := r.turns(4)
	cost, models := costOf(turns)
	bill := billed(r)
	if fmt.Sprint(models) != "map[gpt-4o-mini:2 gpt-live-1:1]" || cost != bill.nanoDollars || cost < 10_000_000 {
		t.Errorf("%v for %d, the bill is %d", models, cost, bill.nanoDollars)
	}
	for _, rec := range turns {
		if !rec.Priced || rec.Usage.Estimated || rec.TraceID != "trace-of-a-session" || rec.ProviderSlug != "mock" {
			t.Errorf("%+v", rec)
		}
		if rec.Model == "gpt-live-1" && (rec.Usage.N(pricing.Seconds) != 12 || rec.FinishReason != "close_requested") {
			t.Errorf("%+v", rec)
		}
	}
	if len(sessions) != 1 || sessions[0].Cost != 0 || sessions[0].RequestBytes == 0 || sessions[0].RequestModel != "gpt-live-1" {
		t.Errorf("%+v", sessions)
	}
	eventually(t, func() error { return usageIs(r, key, bill.nanoDollars) })
}

// A session whose end is not told is recorded as far as it was, and says so.
func TestALiveSessionThatBreaksIsEstimated(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.live("@mock/gpt-live-1")
	s.sounds(3000)
	s.next("session.usage.updated")
	s.instructs("drop")
	if closed := s.ended(); closed.Code != websocket.CloseInternalServerErr {
		t.Errorf("%v", closed)
	}
	turns, _ := r.turns(2)
	if len(turns) != 1 || !turns[0].Usage.Estimated || turns[0].Usage.N(pricing.Seconds) != 3 || int64(turns[0].Cost) != billed(r).nanoDollars {
		t.Errorf("%+v, the bill is %d", turns, billed(r).nanoDollars)
	}
}

// So is a response within it whose end is not told: by what it read and what it made.
func TestAResponseOfALiveSessionThatBreaksIsEstimated(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.live("@mock/gpt-live-1")
	s.instructs(strings.Repeat("many words to read ", 100))
	s.instructs("begin drop")
	s.ended()
	turns, _ := r.turns(3)
	for _, rec := range turns {
		if rec.Model != "gpt-4o-mini" {
			continue
		}
		if u := rec.Usage; !u.Estimated || u.N(pricing.Input) < 400 || u.N(pricing.Input) > 1000 || u.OutputTokens() == 0 || rec.Cost == 0 {
			t.Errorf("%+v for %d", u, rec.Cost)
		}
		return
	}
	t.Errorf("no record of it: %+v", turns)
}

// A client that is gone has its session closed at the provider, which then tells how long
// it was.
func TestAClientLeavesALiveSession(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.live("@mock/gpt-live-1")
	s.instructs("silent")
	s.next("session.instructions.appended")
	s.sounds(5000)
	s.instructs("x")
	s.next("session.instructions.appended")
	_ = s.ws.NetConn().Close()
	turns, sessions := r.turns(2)
	if len(turns) != 1 || turns[0].Usage.Estimated || turns[0].Usage.N(pricing.Seconds) != 5 || int64(turns[0].Cost) != billed(r).nanoDollars {
		t.Errorf("%+v, the bill is %d", turns, billed(r).nanoDollars)
	}
	if len(sessions) != 1 || sessions[0].FinishReason != "lost" {
		t.Errorf("%+v", sessions)
	}
}

// Keys and budgets end sessions that say nothing.
func TestALiveSessionEndsWithItsKey(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey("")
	s := r.live("@mock/gpt-live-1", "X-Gateway-Api-Key", key)
	s.sounds(1000)
	s.next("session.usage.updated")
	r.deleteKey("a key of the tests")
	if closed := s.ended(); closed.Code != websocket.ClosePolicyViolation || !strings.Contains(closed.Text, "API key") {
		t.Errorf("%v", closed)
	}
	turns, _ := r.turns(2)
	if len(turns) != 1 || turns[0].Usage.N(pricing.Seconds) != 1 || turns[0].Usage.Estimated {
		t.Errorf("%+v", turns)
	}
	poor := r.newKey(`"usage_limits":{"type":"cost","credit_limit":1}`)
	s = r.live("@mock/gpt-live-1", "X-Gateway-Api-Key", poor)
	r.spend(poor)
	if closed := s.ended(); closed.Code != websocket.ClosePolicyViolation {
		t.Errorf("%v", closed)
	}
	poor = r.newKey(`"usage_limits":{"type":"cost","credit_limit":1}`)
	s = r.live("@mock/gpt-live-1", "X-Gateway-Api-Key", poor)
	s.instructs("lasts=600") // 50 cents, and a minute more is reserved for
	s.next("session.usage.updated")
	s.instructs("lasts=600")
	if closed := s.ended(); closed.Code != websocket.ClosePolicyViolation {
		t.Errorf("%v", closed)
	}
	eventually(t, func() error { return usageIs(r, poor, 1_000_000_000) })
	// It is not opened again, and nothing reaches the provider.
	before := r.handshakes()
	again := r.lively(liveSessions, "X-Gateway-Api-Key", poor)
	again.send(`{"type":"session.start","session":{"model":"@mock/gpt-live-1"}}`)
	if closed := again.ended(); closed.Code != websocket.ClosePolicyViolation || r.handshakes() != before {
		t.Errorf("%v, %d handshakes before, %d now", closed, before, r.handshakes())
	}
}

// What a session has cost is taken from its provider's budget, too, when that ends it.
func TestALiveSessionOutgrowsTheBudgetOfItsProvider(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":"poor","slug":"poor","provider":"openai","key":"mock-own","custom_host":%q,"workspace_id":%q,"usage_limits":{"type":"cost","credit_limit":1}}`,
		r.mockBase(), r.workspace()))
	s := r.live("@poor/gpt-live-1")
	s.instructs("lasts=600") // 50 cents, and a minute more is reserved for
	s.next("session.usage.updated")
	s.instructs("lasts=600")
	if closed := s.ended(); closed.Code != websocket.ClosePolicyViolation {
		t.Errorf("%v", closed)
	}
	if turns, _ := r.turns(2); len(turns) != 1 || turns[0].Cost != 1_000_000_000 {
		t.Errorf("%+v", turns)
	}
	again := r.lively(liveSessions)
	again.send(`{"type":"session.start","session":{"model":"@poor/gpt-live-1"}}`)
	if closed := again.ended(); closed.Code != websocket.ClosePolicyViolation {
		t.Errorf("a session of a budget that is used up: %v", closed)
	}
}

// Each session is a request of its key's rates.
func TestRatesRefuseLiveSessions(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"rate_limits":[{"type":"requests","unit":"rpd","value":2}]`)
	for range 2 {
		r.live("@mock/gpt-live-1", "X-Gateway-Api-Key", key)
	}
	s := r.lively(liveSessions, "X-Gateway-Api-Key", key)
	s.send(`{"type":"session.start","session":{"model":"@mock/gpt-live-1"}}`)
	if e, err := s.read(); err != nil || e["error"].(map[string]any)["code"] != "rate_limit_exceeded" {
		t.Errorf("%v %v", e, err)
	}
	if closed := s.ended(); closed.Code != websocket.CloseTryAgainLater {
		t.Errorf("%v", closed)
	}
}

// Until the first message is good nothing reaches a provider.
func TestFirstMessagesAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.save("google", `"ai_provider_id":"google","key":"mock-google","configurations":{"custom_host":"`+strings.TrimSuffix(r.base, "/v1")+`"}`)
	for _, c := range []struct{ path, first, message string }{
		{liveSessions, `{"type":"session.update","session":{"model":"@mock/gpt-live-1"}}`, "session.start"},
		{liveSessions, `{"type":"session.start"}`, "object with the model"},
		{liveSessions, `{"type":"session.start","session":{}}`, "model of the session"},
		{liveSessions, `{"type":"session.start","session":[]}`, "object"},
		{liveSessions, `{"type":"session.start","session":{"model":7}}`, "string"},
		{liveSessions, `{"type":"session.start","session":{"model":"a","model":"b"}}`, "model"},
		{liveSessions, `{"type":"session.start","session":{"Model":"@mock/gpt-live-1"}}`, "Model"},
		{liveSessions, `{"type":"session.start","session":{"model":"@mock/` + strings.Repeat("x", 5000) + `"}}`, "bytes"},
		{liveSessions, `{"type":"session.start","session":{"model":"@nobody/gpt-live-1"}}`, "nobody"},
		{liveSessions, `{"type":"session.start","session":{"model":"gpt-live-1"}}`, "x-gateway-provider"},
		{liveSessions, `{"type":"session.start","session":{"model":"@mock-anthropic/claude-sonnet-4-5"}}`, "not supported"},
		{liveSessions, strings.Repeat(`{"a":`, 10_000), ""},
		{liveSessions, `[]`, "object"},
		{liveSessions, ``, ""},
		{bidiV1beta, `{"clientContent":{"turnComplete":true}}`, "first message"},
		{bidiV1beta, `{"setup":{}}`, "setup.model"},
		{bidiV1beta, `{"setup":{"model":"models/"}}`, "name a model"},
		{bidiV1beta, `{"setup":{"model":"@google/x","generationConfig":{"maxOutputTokens":"many"}}}`, "maxOutputTokens"},
		{bidiV1beta, `{"setup":{"model":"@mock/gpt-live-1"}}`, "not supported"},
		{bidiV1beta, `{"setup":null}`, "setup"},
	} {
		before := len(r.mock.Requests(1000))
		s := r.lively(c.path)
		s.send(c.first)
		reported := ""
		for {
			_ = s.ws.SetReadDeadline(time.Now().Add(time.Minute))
			_, body, err := s.ws.ReadMessage()
			if err != nil {
				closed, ok := err.(*websocket.CloseError)
				if !ok || closed.Code != websocket.ClosePolicyViolation {
					t.Errorf("%s: %v", c.first, err)
				} else {
					reported += closed.Text
				}
				break
			}
			reported += string(body)
		}
		if !strings.Contains(reported, c.message) || len(r.mock.Requests(1000)) != before {
			t.Errorf("%.100s: %s", c.first, reported)
		}
	}
	for _, c := range []struct {
		path   string
		key    string
		status int
	}{
		{liveSessions, "wrong", 401}, {liveSessions, adminKey, 403}, {bidiV1beta, "wrong", 401}, {liveSessions + "?model=gpt-live-1", workspaceKey, 400}, {bidiV1beta + "?x=1", workspaceKey, 400},
	} {
		if _, resp, err := r.dialSocket(c.path, "X-Gateway-Api-Key", c.key); err == nil || resp == nil || resp.StatusCode != c.status {
			t.Errorf("%s: %v %v", c.path, resp, err)
		}
	}
	if _, resp, err := r.dialSocket(bidiV1beta+"?key="+workspaceKey, "X-Gateway-Api-Key", ""); err == nil || resp == nil || resp.StatusCode == 101 {
		t.Errorf("a key in the address opens a session: %v", resp)
	}
}

// A client that says nothing is sent away, whoever would be asked.
func TestMissingFirstMessages(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.g.relay.SessionTimes.Open = time.Millisecond
	for _, path := range []string{liveSessions, bidiV1beta} {
		if closed := r.lively(path).ended(); closed.Code != websocket.ClosePolicyViolation || !strings.Contains(closed.Text, "must arrive within 1ms") {
			t.Errorf("%s: %v", path, closed)
		}
	}
	for _, rec := range r.records(2) {
		if rec.ErrorCode != "request_timeout" || rec.Cost != 0 || rec.FinishReason != "ended_by_policy" {
			t.Errorf("%+v", rec)
		}
	}
}

// Second sockets of a session, and sessions that continue from a kept one, are rejected, with
// the reason.
func TestOtherSocketsOfLiveSessions(t *testing.T) {
	t.Parallel()
	r := start(t)
	before := len(r.mock.Requests(1000))
	for path, problem := range map[string]string{"/attach": "use that connection", "/fork": "names its model", "/content": "open a WebSocket"} {
		_, resp, err := r.dialSocket(liveSessions+"/live_1"+path, "X-Gateway-Provider", "@mock")
		if err == nil || resp == nil || resp.StatusCode != 403 {
			t.Errorf("%s: %v %v", path, resp, err)
			continue
		}
		buf := make([]byte, 1000)
		if n, _ := resp.Body.Read(buf); !strings.Contains(string(buf[:n]), problem) {
			t.Errorf("%s: %s", path, buf[:n])
		}
	}
	if len(r.mock.Requests(1000)) != before {
		t.Error("something was passed on")
	}
}

// What is written is judged before it is sent, what is spoken once it is written down.
func TestLiveSessionsAreJudged(t *testing.T) {
	t.Parallel()
	r := start(t)
	guards := func(g string) []string { return []string{"x-gateway-config", `{"provider":"@mock",` + g + `}`} }
	s := r.live("gpt-live-1", guards(`"input_guardrails":[`+noHunter+`}]`)...)
	s.send(`{"type":"session.instructions.append","event_id":"e1","content":"my hunter2"}`)
	if _, e := s.until("error"); !strings.Contains(fmt.Sprint(e), "hooks_failed") || e["client_event_id"] != "e1" {
		t.Errorf("%v", e)
	}
	s.instructs("all is well heard=my_hunter%32")
	s.next("session.input_transcript.delta")
	s.sounds(100)
	if closed := s.ended(); closed.Code != websocket.ClosePolicyViolation {
		t.Errorf("%v", closed)
	}
	eventually(t, func() error { // it is told when the client has gone
		if got := r.atProvider(); strings.Contains(got, "my hunter2") || !strings.Contains(got, "all is well") || !strings.Contains(got, "session.close") {
			return fmt.Errorf("%.2000s", got)
		}
		return nil
	})
	held := r.lively(liveSessions, guards(`"output_guardrails":[`+noHunter+`,"stream":"hold"}]`)...)
	held.send(`{"type":"session.start","session":{"model":"gpt-live-1"}}`)
	if closed := held.ended(); closed.Code != websocket.ClosePolicyViolation || !strings.Contains(closed.Text, "does not support") {
		t.Errorf("%v", closed)
	}
}

// The model of a delegation is held to the saved provider's list, as every other.
func TestLiveMessagesThatAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.live("@mock/gpt-live-1")
	for _, bad := range []string{
		`{"type":"session.start","session":{"model":"gpt-live-1"}}`, `{"type":"session.update","session":{"model":"other"}}`, `{"type":"session.update","session":{"delegation":[]}}`,
		`{"type":"session.update","session":{"delegation":{"responses":{"model":7}}}}`, `{"type":"session.update","session":{"triggers":{}}}`,
		`{"type":"a","type":"b"}`, `{}`, `[]`, `{"type":`, `{"type":"session.close","event_id":7}`,
	} {
		s.send(bad)
		if e, err := s.read(); err != nil || e["type"] != "error" {
			t.Errorf("%s: %v %v", bad, e, err)
		}
	}
	s.sounds(1000)
	s.next("session.usage.updated")
	if err := s.ws.WriteMessage(websocket.TextMessage, []byte{0xff}); err != nil {
		t.Fatal(err)
	}
	if closed := s.ended(); closed.Code != websocket.CloseInvalidFramePayloadData {
		t.Errorf("%v", closed)
	}
}

// A session ends when the process does, and is recorded.
func TestLiveSessionsDrain(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.live("@mock/gpt-live-1")
	waits := r.lively(liveSessions)
	stopped := make(chan struct{})
	go func() { defer close(stopped); r.stop() }()
	for _, s := range []*realtimeClient{s, waits} {
		if closed := s.ended(); closed.Code != websocket.CloseGoingAway || !strings.Contains(closed.Text, "restarting") {
			t.Errorf("%v", closed)
		}
	}
	<-stopped
}
