package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// secretOf makes a client secret.
func (r *running) secretOf(body string, headers ...string) string {
	r.t.Helper()
	got := r.call("POST", "/realtime/client_secrets", body, headers...)
	value, _ := member(got.json(r.t), "value").(string)
	if got.status != 200 || !strings.HasPrefix(value, "ek_") || got.header.Get("Cache-Control") != "no-store" {
		r.t.Fatalf("%d %v %s", got.status, got.header, got.body)
	}
	return value
}

// inBrowser opens a session as a browser does, which can send no headers.
func (r *running) inBrowser(query, secret string, more ...string) (*websocket.Conn, *http.Response, error) {
	return r.dialRealtime(query, append([]string{"X-Gateway-Api-Key", "", "Origin", "https://app.example", "protocol", "realtime", "protocol", "openai-insecure-api-key." + secret}, more...)...)
}

// A browser gets one of the gateway's own secrets. It opens sessions with the settings of
// its maker, neither the log nor the provider ever shows it, and the sessions end with the
// maker's key.
func TestClientSecretsOpenSessions(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey("")
	secret := r.secretOf(`{"expires_after":{"anchor":"created_at","seconds":60},"session":{"type":"realtime","model":"@mock/gpt-realtime","instructions":"three more words"}}`, "X-Gateway-Api-Key", key, "X-Gateway-Metadata", `{"app":"shop"}`)
	for range 2 { // one opens many
		ws, _, err := r.inBrowser("model=gpt-realtime", secret)
		if err != nil || ws.Subprotocol() != "realtime" {
			t.Fatal(err)
		}
		s := &realtimeClient{t, ws}
		s.next("session.created")
		if is := s.next("session.updated")["session"].(map[string]any); is["instructions"] != "three more words" {
			t.Errorf("%v", is)
		}
		s.turn("words")
		s.leave()
	}
	turns, sessions := r.turns(5)
	if len(sessions) != 2 || len(turns) != 2 {
		t.Fatalf("%d responses, %d sessions", len(turns), len(sessions))
	}
	for _, rec := range append(turns, sessions...) {
		if rec.Metadata["app"] != "shop" || rec.KeyID != turns[0].KeyID {
			t.Errorf("%+v", rec)
		}
		if log := fmt.Sprint(r.get("/logs/"+rec.ID, workspaceKey)); strings.Contains(log, secret) {
			t.Errorf("the log shows the secret: %s", log)
		}
	}
	for _, got := range r.mock.Requests(64) {
		if text := fmt.Sprint(got.Headers) + string(got.Body); strings.Contains(text, "ek_") || strings.Contains(text, "app.example") && got.Method == "EVENT" && strings.Contains(text, key) {
			t.Errorf("the provider was told the secret: %s", text)
		}
	}
	ws, _, err := r.inBrowser("", secret)
	if err != nil {
		t.Fatal(err)
	}
	s := &realtimeClient{t, ws}
	s.next("session.updated")
	r.deleteKey("a key of the tests")
	if closed := s.ended(); closed.Code != websocket.ClosePolicyViolation || !strings.Contains(closed.Text, "API key") {
		t.Errorf("%v", closed)
	}
	if _, resp, err := r.inBrowser("", secret); err == nil || resp == nil || resp.StatusCode != 401 {
		t.Errorf("it outlives its key: %v %v", resp, err)
	}
}

// deleteKey deletes a key by its name.
func (r *running) deleteKey(name string) {
	r.t.Helper()
	r.admin("DELETE", "/api-keys/"+r.keyID(name), "")
}

// spend uses up the budget of a key by other requests.
func (r *running) spend(key string) {
	r.t.Helper()
	last := 200
	for last == 200 {
		last = r.call("POST", "/chat/completions", chatBody("@mock-anthropic/claude-sonnet-4-5", "mock: chunks=10000", `,"max_tokens":10000`), "X-Gateway-Api-Key", key).status
	}
	if last != 412 {
		r.t.Errorf("the last answer was %d", last)
	}
}

// What a secret does not open.
func TestClientSecretsOpenNothingElse(t *testing.T) {
	t.Parallel()
	r := start(t)
	secret := r.secretOf(`{"session":{"model":"@mock/gpt-realtime"}}`)
	transcriber := r.secretOf(`{"session":{"type":"transcription","audio":{"input":{"transcription":{"model":"whisper-1"}}}}}`, onMock...)
	for _, c := range []struct {
		query, secret string
		headers       []string
		status        int
	}{
		{"model=gpt-realtime-mini", secret, nil, 403},
		{"model=@mock-anthropic/gpt-realtime", secret, nil, 403},
		{"intent=transcription", secret, nil, 400},
		{"model=gpt-realtime", transcriber, nil, 400},
		{"", secret + "x", nil, 401},
		{"", "ek_", nil, 401},
		{"", secret, []string{"X-Gateway-Provider", "@mock-anthropic"}, 403},
		{"", secret, []string{"X-Gateway-Config", `{"provider":"openai"}`}, 403},
		{"", secret, []string{"X-Gateway-Custom-Host", "https://x.example"}, 403},
	} {
		_, resp, err := r.inBrowser(c.query, c.secret, c.headers...)
		if err == nil || resp == nil || resp.StatusCode != c.status {
			t.Errorf("%+v: %v %v", c, resp, err)
		}
	}
	for _, path := range []string{"/chat/completions", "/realtime/client_secrets", "/realtime/sessions", "/proxy/chat/completions"} {
		got := r.call("POST", path, chatBody("@mock/gpt-4o-mini", "Hello", ""), "X-Gateway-Api-Key", "", "Authorization", "Bearer "+secret)
		if got.status != 401 || strings.Contains(got.body, secret) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := r.call("GET", "/configs", "", "X-Gateway-Api-Key", secret); got.status != 401 {
		t.Errorf("the administration: %d %s", got.status, got.body)
	}
	ws, _, err := r.inBrowser("intent=transcription", transcriber)
	if err != nil {
		t.Fatal(err)
	}
	s := &realtimeClient{t, ws}
	s.next("session.updated")
	s.send(`{"type":"input_audio_buffer.append","audio":"` + strings.Repeat("AAAA", 12000) + `"}`)
	s.send(`{"type":"input_audio_buffer.commit"}`)
	s.next("conversation.item.input_audio_transcription.completed")
	s.leave()
}

// Who asks for a secret is reported at once what a session would be told.
func TestBadClientSecrets(t *testing.T) {
	t.Parallel()
	r := start(t)
	before := len(r.mock.Requests(64))
	for body, status := range map[string]int{
		`{"session":{"model":"@nobody/gpt-realtime"}}`:                               400,
		`{"session":{"model":"gpt-realtime"}}`:                                       400, // no provider
		`{"session":{"type":"realtime"}}`:                                            400,
		`{"session":{"model":"@mock/gpt-realtime"},"expires_after":{"seconds":1}}`:   400,
		`{"session":{"model":"@mock/gpt-realtime","model":"@mock/gpt-realtime"}}`:    400,
		`{"session":{"model":"@mock/` + strings.Repeat("x", 200<<10) + `"}}`:         413,
		`{"session":{"model":"@mock-anthropic/claude-sonnet-4-5"}}`:                  400,
		`{"session":{"model":"@mock/gpt-realtime","instructions":"` + "\xff" + `"}}`: 400,
	} {
		if got := r.call("POST", "/realtime/client_secrets", body); got.status != status || !strings.Contains(got.body, "message") {
			t.Errorf("%.80s: %d %s", body, got.status, got.body)
		}
	}
	if len(r.mock.Requests(64)) != before {
		t.Error("a provider was asked")
	}
	for path, body := range map[string]string{"/realtime/sessions": `{"model":"@mock/gpt-realtime","voice":"alloy"}`, "/realtime/transcription_sessions": `{"input_audio_transcription":{"model":"whisper-1"}}`} {
		got := r.call("POST", path, body, onMock...)
		secret, _ := member(got.json(r.t), "client_secret/value").(string)
		if got.status != 200 || member(got.json(r.t), "id") == nil {
			t.Fatalf("%s: %d %s", path, got.status, got.body)
		}
		ws, _, err := r.inBrowser("", secret, "protocol", "openai-beta.realtime-v1")
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		s := &realtimeClient{t, ws}
		s.next("session.created")
		s.leave()
	}
}
