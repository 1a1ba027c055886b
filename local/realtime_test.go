package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"gateway/shared/pricing"
	"gateway/shared/usage"
)

// realtimeClient is a client's side of a realtime session.
type realtimeClient struct {
	t  *testing.T
	ws *websocket.Conn
}

// dialRealtime opens a session; headers come as name, value pairs, and protocol:NAME
// offers a subprotocol.
func (r *running) dialRealtime(query string, headers ...string) (*websocket.Conn, *http.Response, error) {
	return r.dialSocket("/realtime?"+query, headers...)
}

// dialSocket opens a WebSocket; headers are as dialRealtime takes them.
func (r *running) dialSocket(path string, headers ...string) (*websocket.Conn, *http.Response, error) {
	h, d := http.Header{"X-Gateway-Api-Key": {workspaceKey}}, websocket.Dialer{HandshakeTimeout: time.Minute}
	for i := 0; i+1 < len(headers); i += 2 {
		switch {
		case headers[i] == "protocol":
			d.Subprotocols = append(d.Subprotocols, headers[i+1])
		case headers[i+1] == "":
			h.Del(headers[i])
		default:
			h.Set(headers[i], headers[i+1])
		}
	}
	return d.Dial("ws"+strings.TrimPrefix(r.base, "http")+path, h)
}

// tryRealtime has one response made in a session of its own. body names the model.
func (r *running) tryRealtime(body string, headers ...string) (reply, error) {
	var of struct{ Model string }
	_ = json.Unmarshal([]byte(body), &of) // one that is broken names none
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "X-Gateway-Api-Key" && headers[i+1] == "" {
			headers[i+1] = " " // none
		}
	}
	ws, resp, err := r.dialRealtime("model="+url.QueryEscape(of.Model), headers...)
	if err != nil {
		if resp == nil {
			return reply{}, err
		}
		raw, err := io.ReadAll(resp.Body)
		return reply{resp.StatusCode, resp.Header, string(raw)}, err
	}
	defer ws.Close()
	s := &realtimeClient{r.t, ws}
	s.addText("Hello")
	s.send(`{"type":"response.create"}`)
	for {
		e, err := s.read()
		if err != nil {
			return reply{}, err
		}
		switch text := fmt.Sprint(e); e["type"] {
		case "error":
			return reply{http.StatusInternalServerError, resp.Header, text}, nil
		case "response.done":
			s.leave()
			return reply{http.StatusOK, resp.Header, text}, nil
		}
	}
}

func (r *running) speak(query string, headers ...string) *realtimeClient {
	r.t.Helper()
	ws, resp, err := r.dialRealtime(query, headers...)
	if err != nil {
		if resp != nil {
			b := make([]byte, 1000)
			n, _ := resp.Body.Read(b)
			r.t.Fatalf("%v: %d %s", err, resp.StatusCode, b[:n])
		}
		r.t.Fatal(err)
	}
	s := &realtimeClient{r.t, ws}
	r.t.Cleanup(func() { _ = ws.Close() })
	s.next("session.created")
	return s
}

func (s *realtimeClient) send(event string) {
	s.t.Helper()
	if err := s.ws.WriteMessage(websocket.TextMessage, []byte(event)); err != nil {
		s.t.Fatal(err)
	}
}

// read gives the next event, or why there is none.
func (s *realtimeClient) read() (map[string]any, error) {
	_ = s.ws.SetReadDeadline(time.Now().Add(time.Minute))
	_, body, err := s.ws.ReadMessage()
	if err != nil {
		return nil, err
	}
	var e map[string]any
	return e, json.Unmarshal(body, &e)
}

// next reads up to an event of a type.
func (s *realtimeClient) next(kind string) map[string]any {
	s.t.Helper()
	for {
		e, err := s.read()
		if err != nil {
			s.t.Fatalf("before %s: %v", kind, err)
		}
		if e["type"] == kind {
			return e
		}
		if e["type"] == "error" {
			s.t.Fatalf("before %s: %v", kind, e)
		}
	}
}

// ended reads to the end of the session.
func (s *realtimeClient) ended() *websocket.CloseError {
	s.t.Helper()
	for {
		_, err := s.read()
		if closed := (*websocket.CloseError)(nil); errors.As(err, &closed) {
			return closed
		}
		if err != nil {
			s.t.Fatalf("the session ended with %v", err)
		}
	}
}

// addText adds a text to the conversation.
func (s *realtimeClient) addText(text string) {
	s.t.Helper()
	s.send(fmt.Sprintf(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, text))
}

// turn has a response made.
func (s *realtimeClient) turn(text string) map[string]any {
	s.t.Helper()
	s.addText(text)
	s.send(`{"type":"response.create"}`)
	return s.next("response.done")
}

// leave closes the session as clients do.
func (s *realtimeClient) leave() {
	_ = s.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "done"), time.Now().Add(time.Minute))
	s.ended()
}

// turns are the records of realtime sessions: of responses and transcripts, and of the
// sessions themselves.
func (r *running) turns(n int) (turns, sessions []usage.Record) {
	r.t.Helper()
	for _, rec := range r.records(n) {
		if rec.Endpoint != "realtime" {
			continue
		}
		if rec.ClientStatus == http.StatusSwitchingProtocols {
			sessions = append(sessions, rec)
		} else {
			turns = append(turns, rec)
		}
	}
	return turns, sessions
}

func TestEachResponseOfASessionIsOneRecord(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.speak("model=@mock/gpt-realtime", "X-Gateway-Trace-Id", "trace-of-a-session", "X-Gateway-Metadata", `{"of":"realtime"}`)
	for i := range 3 {
		if got := s.turn(fmt.Sprintf("words and number %d", i)); got["response"].(map[string]any)["status"] != "completed" {
			t.Fatalf("%v", got)
		}
	}
	s.leave()
	turns, sessions := r.turns(4)
	if len(turns) != 3 || len(sessions) != 1 {
		t.Fatalf("%d responses, %d sessions", len(turns), len(sessions))
	}
	var cost pricing.NanoDollars
	for _, rec := range turns {
		if rec.ClientStatus != 200 || !rec.Priced || rec.Usage.Estimated || rec.Model != "gpt-realtime" || rec.Provider != "openai" || rec.ProviderSlug != "mock" || rec.FinishReason != "completed" || rec.TraceID != "trace-of-a-session" || rec.Metadata["of"] != "realtime" || rec.KeyID == "" || rec.Usage.N(pricing.Output) != 3 {
			t.Errorf("%+v", rec)
		}
		cost += rec.Cost
	}
	if bill := billed(r); int64(cost) != bill.nanoDollars || cost == 0 {
		t.Errorf("booked %d, the bill is %d", cost, bill.nanoDollars)
	}
	if one := sessions[0]; one.Cost != 0 || one.FinishReason != "closed_by_client" || one.RequestBytes == 0 || one.ResponseBytes == 0 {
		t.Errorf("the session: %+v", one)
	}
}

// What a provider tells twice is recorded once, and a transcript at its own model's price.
func TestUsageOfASessionIsBookedOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":10}`)
	s := r.speak("model=@mock/gpt-realtime", "X-Gateway-Api-Key", key)
	s.send(`{"type":"session.update","session":{"type":"realtime","instructions":"twice automatic","output_modalities":["audio"],"audio":{"input":{"transcription":{"model":"whisper-1"}}}}}`)
	s.next("session.updated")
	s.send(`{"type":"input_audio_buffer.append","audio":"` + strings.Repeat("AAAA", 40_000) + `"}`)
	s.send(`{"type":"input_audio_buffer.commit"}`)
	s.next("response.done")
	s.next("response.done")
	s.leave()
	turns, _ := r.turns(3)
	var cost pricing.NanoDollars
	models := []string{}
	for _, rec := range turns {
		cost += rec.Cost
		models = append(models, rec.Model)
		if !rec.Priced || rec.Usage.Estimated {
			t.Errorf("%+v", rec)
		}
	}
	slices.Sort(models)
	bill := billed(r)
	if fmt.Sprint(models) != "[gpt-realtime whisper-1]" || int64(cost) != bill.nanoDollars || cost == 0 {
		t.Errorf("%v for %d, the bill is %d", models, cost, bill.nanoDollars)
	}
	eventually(t, func() error { return usageIs(r, key, bill.nanoDollars) })
}

func TestABudgetEndsASession(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":1}`)
	s := r.speak("model=@mock/gpt-realtime", "X-Gateway-Api-Key", key)
	s.addText("words")
	for range 2 {
		s.send(`{"type":"response.create","event_id":"mine","response":{"max_output_tokens":100}}`)
		s.next("response.done")
	}
	before := billed(r).nanoDollars
	s.send(`{"type":"response.create","event_id":"mine","response":{"max_output_tokens":200000}}`)
	event, err := s.read()
	if err != nil || event["type"] != "error" || event["error"].(map[string]any)["code"] != "budget_exhausted" || event["error"].(map[string]any)["event_id"] != "mine" {
		t.Errorf("%v %v", event, err)
	}
	if closed := s.ended(); closed.Code != websocket.ClosePolicyViolation || !strings.Contains(closed.Text, "budget") {
		t.Errorf("%v", closed)
	}
	if after := billed(r).nanoDollars; after != before {
		t.Errorf("the provider was asked all the same: %d, %d", before, after)
	}
	eventually(t, func() error { return usageIs(r, key, before) })
	if _, sessions := r.turns(4); len(sessions) != 1 || sessions[0].FinishReason != "ended_by_policy" || sessions[0].ErrorCode != "budget_exhausted" {
		t.Errorf("%+v", sessions)
	}
}

// A session that says nothing ends as soon as its key or its budget does.
func TestAnIdleSessionEndsWithItsKey(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey("")
	s := r.speak("model=@mock/gpt-realtime", "X-Gateway-Api-Key", key)
	r.deleteKey("a key of the tests")
	if closed := s.ended(); closed.Code != websocket.ClosePolicyViolation || !strings.Contains(closed.Text, "API key") {
		t.Errorf("%v", closed)
	}

	poor := r.newKey(`"usage_limits":{"type":"cost","credit_limit":1}`)
	s = r.speak("model=@mock/gpt-realtime", "X-Gateway-Api-Key", poor)
	r.spend(poor)
	if closed := s.ended(); closed.Code != websocket.ClosePolicyViolation {
		t.Errorf("%v", closed)
	}
}

// Sessions that wait hold neither a handler nor what its server has for a request.
func TestNoHandlerWaitsForASession(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.speak("model=@mock/gpt-realtime").turn("words")
	r.live("@mock/gpt-live-1").sounds(1000)
	s := r.talk()
	s.create("@mock/gpt-4o-mini", "Hello", "")
	s.completes()
	stacks := make([]byte, 16<<20)
	all := string(stacks[:runtime.Stack(stacks, true)])
	for _, kind := range []string{"session.(*Session).Run", "realtime.(*LiveSession).Run", "realtime.(*Dialogue).Run"} {
		found := false
		for _, stack := range strings.Split(all, "\n\n") {
			if !strings.Contains(stack, "relay/"+kind+"(") {
				continue
			}
			if found = true; strings.Contains(stack, "ServeHTTP") {
				t.Errorf("%s", stack)
			}
		}
		if !found {
			t.Errorf("nothing runs %s", kind)
		}
	}
}

// A client that leaves in the middle pays for what was made until the provider stopped.
func TestAClientLeavesInTheMiddle(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.speak("model=@mock/gpt-realtime")
	s.addText("pause chunks=7")
	s.send(`{"type":"response.create"}`)
	for range 7 {
		s.next("response.output_text.delta")
	}
	_ = s.ws.NetConn().Close()
	turns, sessions := r.turns(2)
	if len(turns) != 1 || turns[0].FinishReason != "cancelled" || int64(turns[0].Cost) != billed(r).nanoDollars || turns[0].Cost == 0 || turns[0].Usage.Estimated {
		t.Errorf("%+v, the bill is %d", turns, billed(r).nanoDollars)
	}
	if len(sessions) != 1 || sessions[0].FinishReason != "lost" {
		t.Errorf("%+v", sessions)
	}
}

// TestSessionsRepeatTheModelTheyWereOpenedBy: an update with the model is accepted under every
// name by which a session can be opened.
func TestSessionsRepeatTheModelTheyWereOpenedBy(t *testing.T) {
	t.Parallel()
	r := start(t)
	onMock := []string{"X-Gateway-Provider", "@mock"}
	byConfig := []string{"X-Gateway-Config", `{"provider":"@mock","override_params":{"model":"gpt-realtime"}}`}
	for _, c := range []struct {
		query   string
		headers []string
		names   []string
	}{
		{"model=@mock/gpt-realtime", nil, []string{"@mock/gpt-realtime", "gpt-realtime"}},
		{"model=%40mock%2Fgpt-realtime", nil, []string{"@mock/gpt-realtime"}},
		{"model=gpt-realtime", onMock, []string{"gpt-realtime", "@mock/gpt-realtime"}},
		{"model=voice", byConfig, []string{"voice", "gpt-realtime"}},
	} {
		for _, name := range c.names {
			s := r.speak(c.query, c.headers...)
			s.send(fmt.Sprintf(`{"type":"session.update","session":{"type":"realtime","model":%q,"instructions":"Be brief."}}`, name))
			for {
				e, err := s.read()
				if err != nil || e["type"] == "error" {
					t.Errorf("%s as %s: %v %v", c.query, name, e, err)
					break
				}
				if e["type"] == "session.updated" {
					if is := e["session"].(map[string]any); is["instructions"] != "Be brief." || is["model"] != "gpt-realtime" {
						t.Errorf("%s as %s: %v", c.query, name, is)
					}
					break
				}
			}
		}
	}
	s := r.speak("model=@mock/gpt-realtime")
	s.send(`{"type":"session.update","session":{"type":"realtime","model":"@mock/gpt-realtime-mini"}}`)
	s.next("error")
}

func TestCloseCodesGoBothWays(t *testing.T) {
	t.Parallel()
	r := start(t)
	for text, want := range map[string]int{"close=4001": 4001, "close=1000": 1000, "drop": 1011} {
		s := r.speak("model=@mock/gpt-realtime")
		s.addText(text)
		s.send(`{"type":"response.create"}`)
		closed := s.ended()
		if closed.Code != want || want == 4001 && closed.Text != "as it was asked" {
			t.Errorf("%s: %v", text, closed)
		}
	}
	s := r.speak("model=@mock/gpt-realtime")
	if err := s.ws.WriteControl(websocket.PingMessage, []byte("x"), time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	ponged := make(chan string, 1)
	s.ws.SetPongHandler(func(text string) error { ponged <- text; return nil })
	s.turn("words")
	if got := <-ponged; got != "x" {
		t.Errorf("pong %q", got)
	}
}

// Keys come as browsers can send them; nothing of them continues.
func TestKeysInSubprotocols(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.speak("model=@mock/gpt-realtime", "X-Gateway-Api-Key", "", "protocol", "realtime", "protocol", "openai-insecure-api-key."+workspaceKey, "protocol", "openai-beta.realtime-v1")
	if got := s.ws.Subprotocol(); got != "realtime" {
		t.Errorf("protocol %q", got)
	}
	s.addText("words")
	s.send(`{"type":"response.create"}`)
	s.next("response.text.delta") // of the beta
	s.next("response.done")
	for _, got := range r.mock.Requests(64) {
		if text := fmt.Sprint(got.Headers); strings.Contains(text, workspaceKey) || strings.Contains(text, "insecure") {
			t.Errorf("the provider was told the key: %s", text)
		}
	}
	_, resp, err := r.dialRealtime("model=@mock/gpt-realtime", "X-Gateway-Api-Key", "", "protocol", "realtime", "protocol", "openai-insecure-api-key.wrong")
	if err == nil || resp == nil || resp.StatusCode != 401 {
		t.Errorf("%v %v", resp, err)
	}
}

// Responses are rejected one by one by rates, and the session continues.
func TestRatesRefuseResponses(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"rate_limits":[{"type":"requests","unit":"rpd","value":2}]`)
	s := r.speak("model=@mock/gpt-realtime", "X-Gateway-Api-Key", key) // counts as its first response
	s.turn("words")
	s.turn("words")
	s.send(`{"type":"response.create","event_id":"third"}`)
	event, err := s.read()
	if err != nil || event["type"] != "error" || event["error"].(map[string]any)["code"] != "rate_limit_exceeded" {
		t.Fatalf("%v %v", event, err)
	}
	s.addText("more")
	s.next("conversation.item.added")
	if _, resp, err := r.dialRealtime("model=@mock/gpt-realtime", "X-Gateway-Api-Key", key); err == nil || resp.StatusCode != 429 {
		t.Errorf("%v %v", resp, err)
	}
}

func TestHandshakesAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range []struct {
		query   string
		headers []string
		status  int
		message string
	}{
		{"model=@mock/gpt-realtime", []string{"X-Gateway-Api-Key", "wrong"}, 401, "API key"},
		{"model=@mock/gpt-realtime", []string{"X-Gateway-Api-Key", adminKey}, 403, "organization key"},
		{"", nil, 400, "x-gateway-provider"},
		{"", []string{"X-Gateway-Provider", "@mock"}, 400, "model"},
		{"model=", nil, 400, "model"},
		{"model=@nobody/gpt-realtime", nil, 400, "nobody"},
		{"model=@mock/gpt-realtime&model=x", nil, 400, "2 times"},
		{"model=@mock/gpt-realtime&api-key=x", nil, 400, "must not be in the URL"},
		{"model=@mock/gpt-realtime&intent=transcription", nil, 400, "exactly one"},
		{"intent=other", []string{"X-Gateway-Provider", "@mock"}, 400, "transcription"},
		{"call_id=x", []string{"X-Gateway-Provider", "@mock"}, 400, "calls"},
		{"model=@mock/nothing", nil, 404, "does not exist"},
		{"model=@mock-anthropic/claude-sonnet-4-5", nil, 400, "not supported"},
		{"model=%zz", nil, 400, "percent-encoding"},
	} {
		_, resp, err := r.dialRealtime(c.query, c.headers...)
		if err == nil || resp == nil {
			t.Errorf("%s: %v %v", c.query, resp, err)
			continue
		}
		b := make([]byte, 1000)
		n, _ := resp.Body.Read(b)
		if resp.StatusCode != c.status || !strings.Contains(string(b[:n]), c.message) {
			t.Errorf("%s: %d %s", c.query, resp.StatusCode, b[:n])
		}
	}
	if got := r.call("GET", "/realtime?model=@mock/gpt-realtime", ""); got.status != 400 || !strings.Contains(got.body, "WebSockets only") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A session in which a response is under way ends when that is done; others at once.
func TestSessionsDrain(t *testing.T) {
	t.Parallel()
	r := start(t)
	idle := r.speak("model=@mock/gpt-realtime")
	busy := r.speak("model=@mock/gpt-realtime")
	busy.addText("pause")
	busy.send(`{"type":"response.create"}`)
	busy.next("response.output_text.delta")
	stopped := make(chan struct{})
	go func() { defer close(stopped); r.stop() }()
	if closed := idle.ended(); closed.Code != websocket.CloseGoingAway || !strings.Contains(closed.Text, "restarting") {
		t.Errorf("%v", closed)
	}
	busy.send(`{"type":"response.cancel"}`)
	busy.next("response.done")
	if closed := busy.ended(); closed.Code != websocket.CloseGoingAway {
		t.Errorf("%v", closed)
	}
	<-stopped
}

// A session that a side closed is no error in records and analytics, a response that was cut by the
// end of its session is one.
func TestSessionsThatEndAreNoErrors(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, text := range []string{"close=4001", "close=1001", "close=1008"} {
		s := r.speak("model=@mock/gpt-realtime")
		s.turn("words")
		s.addText(text)
		s.send(`{"type":"response.create"}`)
		s.ended()
	}
	turns, sessions := r.turns(9)
	if len(turns) != 6 || len(sessions) != 3 {
		t.Fatalf("%d turns, %d sessions", len(turns), len(sessions))
	}
	for _, rec := range sessions {
		if rec.FinishReason != "closed_by_provider" || !rec.Success() || rec.ErrorCode != "" {
			t.Errorf("session: %s %d %q", rec.FinishReason, rec.ClientStatus, rec.ErrorCode)
		}
	}
	for _, rec := range turns {
		cut := rec.FinishReason == "connection_lost"
		if rec.Success() == cut || cut != (rec.ErrorCode == "invalid_provider_response") || !cut && rec.FinishReason != "completed" || rec.Cost == 0 {
			t.Errorf("turn: %s %d %q, cost %d", rec.FinishReason, rec.ClientStatus, rec.ErrorCode, rec.Cost)
		}
	}
	eventually(t, func() error {
		if got := r.get("/analytics/graphs/errors?"+lastHour(), workspaceKey); member(got, "summary/total") != 3.0 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}
