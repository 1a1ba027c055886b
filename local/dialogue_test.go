package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// talk opens a WebSocket for responses.
func (r *running) talk(headers ...string) *realtimeClient {
	r.t.Helper()
	ws, resp, err := r.dialSocket("/responses", headers...)
	if err != nil {
		r.t.Fatal(resp, err)
	}
	r.t.Cleanup(func() { _ = ws.Close() })
	return &realtimeClient{r.t, ws}
}

// create asks for a response; fields are further members.
func (s *realtimeClient) create(model, input, fields string) {
	s.t.Helper()
	s.send(fmt.Sprintf(`{"type":"response.create","model":%q,"input":%q,"max_output_tokens":50%s}`, model, input, fields))
}

// completes reads a response to its end, and gives it with the types of its events.
func (s *realtimeClient) completes() (response map[string]any, kinds []string) {
	s.t.Helper()
	for {
		e, err := s.read()
		if err != nil {
			s.t.Fatal(err)
		}
		kind, _ := e["type"].(string)
		kinds = append(kinds, kind)
		switch kind {
		case "response.completed", "response.incomplete", "response.failed":
			return e["response"].(map[string]any), kinds
		case "error":
			s.t.Fatalf("after %v: %v", kinds, e)
		}
	}
}

// refusal reads an error.
func (s *realtimeClient) refusal() (status int, code string) {
	s.t.Helper()
	e, err := s.read()
	if err != nil || e["type"] != "error" {
		s.t.Fatal(e, err)
	}
	n, _ := e["status"].(float64)
	code, _ = e["error"].(map[string]any)["code"].(string)
	return int(n), code
}

// tryDialogue has one response made on a connection of its own.
func (r *running) tryDialogue(body string, headers ...string) (reply, error) {
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "X-Gateway-Api-Key" && headers[i+1] == "" {
			headers[i+1] = " " // none
		}
	}
	ws, resp, err := r.dialSocket("/responses", headers...)
	if err != nil {
		if resp == nil {
			return reply{}, err
		}
		raw, err := io.ReadAll(resp.Body)
		return reply{resp.StatusCode, resp.Header, string(raw)}, err
	}
	defer ws.Close()
	s := &realtimeClient{r.t, ws}
	s.send(`{"type":"response.create",` + strings.TrimPrefix(body, "{"))
	for {
		e, err := s.read()
		if err != nil {
			return reply{}, err
		}
		encoded, _ := json.Marshal(e)
		switch e["type"] {
		case "error":
			resp.Header.Set("Retry-After", "1") // events have none
			status, _ := e["status"].(float64)
			return reply{int(status), resp.Header, string(encoded)}, nil
		case "response.completed", "response.incomplete":
			s.leave()
			return reply{http.StatusOK, resp.Header, string(encoded)}, nil
		}
	}
}

// Each response of a connection is a request of its own, whoever makes it.
func TestResponsesOverAWebSocket(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.talk("X-Gateway-Trace-Id", "one-connection", "X-Gateway-Metadata", `{"of":"talk"}`)
	for i, model := range []string{"@mock/gpt-4o-mini", "@mock-anthropic/claude-sonnet-4-5", "@mock/gpt-4o-mini"} {
		s.create(model, fmt.Sprint("Hello ", i), "")
		got, kinds := s.completes()
		if got["status"] != "completed" || kinds[0] != "response.created" || len(kinds) < 6 {
			t.Errorf("%s: %v %v", model, got, kinds)
		}
	}
	s.leave()
	sessions, cost := 0, int64(0)
	for _, rec := range r.records(4) {
		if rec.TraceID != "one-connection" || rec.Metadata["of"] != "talk" {
			t.Errorf("%+v", rec)
		}
		if rec.ClientStatus == http.StatusSwitchingProtocols {
			if sessions++; rec.FinishReason != "closed_by_client" || rec.Cost != 0 || rec.Endpoint != "responsesSocket" {
				t.Errorf("%+v", rec)
			}
			continue
		}
		if rec.ClientStatus != 200 || !rec.Priced || rec.Cost == 0 || !rec.Stream || rec.Endpoint != "createModelResponse" {
			t.Errorf("%+v", rec)
		}
		cost += int64(rec.Cost)
	}
	if sessions != 1 || cost != billed(r).nanoDollars {
		t.Errorf("%d connections; %d booked, the bill is %d", sessions, cost, billed(r).nanoDollars)
	}
}

// What was said with store false is known to the connection alone.
func TestAConnectionRemembers(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.talk()
	const model = "@mock/gpt-4o-mini"
	s.create(model, "the first words", `,"store":false`)
	first, _ := s.completes()
	s.create(model, "the second words", fmt.Sprintf(`,"store":false,"previous_response_id":%q`, first["id"]))
	second, _ := s.completes()
	s.send(fmt.Sprintf(`{"type":"response.create","model":%q,"input":[{"type":"message","role":"user","content":"prepared words"}],"generate":false}`, model))
	prepared, kinds := s.completes()
	if len(kinds) != 2 || prepared["usage"] != nil {
		t.Errorf("%v %v", prepared, kinds)
	}
	s.create(model, "the third words", fmt.Sprintf(`,"previous_response_id":%q`, prepared["id"]))
	third, _ := s.completes()
	s.create(model, "the fourth words", fmt.Sprintf(`,"previous_response_id":%q`, third["id"])) // the provider has it
	fourth, _ := s.completes()
	for i, pair := range [][2]any{{first["previous_response_id"], nil}, {second["previous_response_id"], first["id"]}, {prepared["previous_response_id"], nil}, {third["previous_response_id"], prepared["id"]}, {fourth["previous_response_id"], third["id"]}} {
		if pair[0] != pair[1] {
			t.Errorf("response %d continues %v, want %v", i, pair[0], pair[1])
		}
	}
	s.leave()
	var sent []string
	for _, got := range r.mock.Requests(64) {
		if got.Path == "/v1/responses" {
			sent = append(sent, string(got.Body))
		}
	}
	if len(sent) != 4 || billed(r).requests != 4 {
		t.Fatalf("%d requests: %v", len(sent), sent)
	}
	has := func(i int, words ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(sent[i], w) {
				t.Errorf("request %d lacks %q: %s", i, w, sent[i])
			}
		}
	}
	has(1, "the first words", "the second words", "assistant")
	has(2, "prepared words", "the third words")
	has(3, "previous_response_id", "the fourth words")
	for i, body := range sent {
		if i < 3 && strings.Contains(body, "previous_response_id") || strings.Contains(body, `"generate"`) || strings.Contains(body, `"stream_id"`) {
			t.Errorf("request %d: %s", i, body)
		}
	}
	other := r.talk()
	other.create(model, "x", fmt.Sprintf(`,"previous_response_id":%q`, prepared["id"]))
	if status, code := other.refusal(); status != 404 || code == "" {
		t.Errorf("another connection: %d %s", status, code)
	}
	other.create(model, "x", fmt.Sprintf(`,"previous_response_id":%q`, second["id"]))
	if status, _ := other.refusal(); status < 400 || status >= 500 {
		t.Errorf("another connection: %d", status)
	}
}

// Lanes are apart; each is told of by its name.
func TestLanesOfAConnection(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.talk()
	for i := range 8 {
		s.create("@mock/gpt-4o-mini", fmt.Sprint("Hello\nmock: chunks=", 5+i), fmt.Sprintf(`,"stream_id":"lane-%d"`, i%3))
	}
	ends := map[string]int{}
	for n := 0; n < 8; {
		e, err := s.read()
		if err != nil {
			t.Fatal(err)
		}
		lane, _ := e["stream_id"].(string)
		if e["type"] == "error" || lane == "" {
			t.Fatalf("%v", e)
		}
		if e["type"] == "response.completed" {
			ends[lane]++
			n++
		}
	}
	if fmt.Sprint(ends) != "map[lane-0:3 lane-1:3 lane-2:2]" {
		t.Errorf("%v", ends)
	}
	s.leave()
}

// What is wrong is reported as an event, and the connection continues.
func TestErrorsOfAConnectionAreEvents(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"rate_limits":[{"type":"requests","unit":"rpd","value":2}]`)
	s := r.talk("X-Gateway-Api-Key", key)
	for event, status := range map[string]int{
		`[]`: 400, `{}`: 400, `{"type":"session.update"}`: 400, `{"type":7}`: 400, `{"type":"response.create","type":"response.create"}`: 400,
		`{"type":"response.create","background":true,"model":"@mock/gpt-4o-mini","input":"x"}`: 400, `{"type":"response.create","response":{}}`: 400,
		`{"type":"response.create","stream_id":"` + strings.Repeat("x", 300) + `"}`: 400, `{"type":"response.create","store":"no"}`: 400,
		`{"type":"response.create","model":"@mock/gpt-4o-mini","input":7,"store":false}`: 400,
	} {
		s.send(event)
		if got, code := s.refusal(); got != status || code == "" {
			t.Errorf("%.60s: %d %s", event, got, code)
		}
	}
	s.send(`{"type":"response.steer","previous_response_id":"resp_1","input":"y"}`)
	if e, err := s.read(); err != nil || e["type"] != "response.steer.failed" || member(e, "error/code") != "steering_not_supported" || member(e, "steer/input") != "y" {
		t.Errorf("%v %v", e, err)
	}
	for range 2 {
		s.create("@mock/gpt-4o-mini", "Hello", "")
		s.completes()
	}
	s.create("@mock/gpt-4o-mini", "Hello", `,"stream_id":"a"`)
	e, err := s.read()
	if err != nil || e["status"] != 429.0 || e["stream_id"] != "a" || member(e, "error/code") != "rate_limit_exceeded" {
		t.Errorf("%v %v", e, err)
	}
	r.deleteKey("a key of the tests")
	if closed := s.ended(); closed.Code != websocket.ClosePolicyViolation || !strings.Contains(closed.Text, "API key") {
		t.Errorf("%v", closed)
	}
	other := r.talk()
	for _, fault := range []string{"status=429", "status=500", "cut"} {
		other.create("@mock/gpt-4o-mini", "x\nmock: chunks=20 "+fault, "")
		for {
			e, err := other.read()
			if err != nil {
				t.Fatalf("%s: %v", fault, err)
			}
			if e["type"] == "error" || e["type"] == "response.failed" {
				break
			}
			if e["type"] == "response.completed" {
				t.Fatalf("%s: %v", fault, e)
			}
		}
	}
	_ = other.ws.WriteMessage(websocket.TextMessage, []byte{0xff})
	if closed := other.ended(); closed.Code != websocket.CloseInvalidFramePayloadData {
		t.Errorf("%v", closed)
	}
	third := r.talk()
	_ = third.ws.WriteMessage(websocket.BinaryMessage, []byte("{}"))
	if closed := third.ended(); closed.Code != websocket.CloseUnsupportedData {
		t.Errorf("%v", closed)
	}
}

// A budget that is used up ends the connection; nothing is called beyond it.
func TestABudgetEndsAConnection(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":1}`)
	s := r.talk("X-Gateway-Api-Key", key)
	r.spend(key)
	if closed := s.ended(); closed.Code != websocket.ClosePolicyViolation || !strings.Contains(closed.Text, "budget") {
		t.Errorf("%v", closed)
	}
}

// Connections end at a deploy: idle ones at once, others after what they are at.
func TestConnectionsDrain(t *testing.T) {
	t.Parallel()
	r := start(t)
	idle, busy := r.talk(), r.talk()
	busy.create("@mock/gpt-4o-mini", "Hello\nmock: chunks=200", "")
	if e, err := busy.read(); err != nil || e["type"] != "response.created" {
		t.Fatal(e, err)
	}
	r.g.relay.Drain()
	if closed := idle.ended(); closed.Code != websocket.CloseGoingAway {
		t.Errorf("%v", closed)
	}
	busy.completes()
	if closed := busy.ended(); closed.Code != websocket.CloseGoingAway {
		t.Errorf("%v", closed)
	}
	if _, resp, err := r.dialSocket("/responses"); err == nil || resp == nil || resp.StatusCode != 503 {
		t.Errorf("%v %v", resp, err)
	}
}
