package main

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	golangjwt "github.com/golang-jwt/jwt/v5"
)

// recordingProvider is a provider that keeps what it was sent.
type recordingProvider struct {
	header atomic.Value
	body   atomic.Value
}

func (h *recordingProvider) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	raw, _ := io.ReadAll(req.Body)
	h.header.Store(req.Header.Clone())
	h.body.Store(string(raw))
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"see http://127.0.0.1:1/none"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
}

// TestTokensOfClientsAreChecked: a client's own token lets it through, its claims reach
// the provider as headers, and nothing that the client claims automatically does.
func TestTokensOfClientsAreChecked(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		fmt.Fprintf(w, `{"keys":[{"kty":"RSA","kid":"k","n":%q,"e":"AQAB"}]}`, base64.RawURLEncoding.EncodeToString(key.N.Bytes()))
	}))
	defer keys.Close()
	provider := new(recordingProvider)
	host := httptest.NewServer(provider)
	defer host.Close()
	r := start(t)
	r.save("heard", `"ai_provider_id":"openai","key":"sk-heard","configurations":{"custom_host":"`+host.URL+`/v1"}`)
	sign := func(claims golangjwt.MapClaims) string {
		tok := golangjwt.NewWithClaims(golangjwt.SigningMethodRS256, claims)
		tok.Header["kid"] = "k"
		s, err := tok.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	now := time.Now()
	config := `{"forward_headers":["x-jwt-team","x-jwt-gone"],"input_guardrails":[{"jwt":{"jwksUri":"` + keys.URL + `","headerKey":"X-User-Token","extractClaims":["team","gone"]},"deny":true}]}`
	body := `{"model":"@heard/gpt-4o-mini","messages":[{"role":"user","content":"x"}]}`
	good := sign(golangjwt.MapClaims{"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "team": "red"})
	old := sign(golangjwt.MapClaims{"iat": now.Add(-48 * time.Hour).Unix(), "exp": now.Add(time.Hour).Unix()})
	for token, status := range map[string]int{good: 200, old: 446, "": 446, good + "A": 446} {
		if got := r.call("POST", "/chat/completions", body, "X-Gateway-Config", config, "X-User-Token", token, "X-Jwt-Team", "blue", "X-Jwt-Gone", "boss"); got.status != status || strings.Contains(got.body, "signatureValid") != (status == 200) || status == 446 && !strings.Contains(got.body, "check default.jwt.") {
			t.Errorf("%q: %d %s", token, got.status, got.body)
		}
	}
	if h := provider.header.Load().(http.Header); h.Get("X-Jwt-Team") != "red" || h.Values("X-Jwt-Gone") != nil || h.Get("Authorization") != "Bearer sk-heard" {
		t.Errorf("%v", h)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("the keys were asked for %d times", n)
	}
}

// TestChecksThatReachOut: images replace their addresses, addresses in a response are tried,
// and hosts that must not be reached are not.
func TestChecksThatReachOut(t *testing.T) {
	t.Parallel()
	provider := new(recordingProvider)
	host := httptest.NewServer(provider)
	defer host.Close()
	base, hits := web(t)
	r := start(t)
	r.save("heard", `"ai_provider_id":"openai","key":"sk-heard","configurations":{"custom_host":"`+host.URL+`/v1"}`)
	config := `{"input_guardrails":[{"inlineImageUrls":{}}]}`
	got := r.call("POST", "/chat/completions", withImages("@heard/gpt-4o-mini", "x", base+"/cat.png", base+"/cat.png", base+"/inside.png", base+"/paper", "http://169.254.169.254/x"), "X-Gateway-Config", config)
	sent := provider.body.Load().(string)
	if got.status != 200 || hits.Load() != 3 || strings.Count(sent, "data:image/png;base64,"+base64.StdEncoding.EncodeToString(picture)) != 2 || !strings.Contains(sent, "/paper") ||
		!strings.Contains(got.body, `"inlined":2`) || !strings.Contains(got.body, "its host must not be reached") || !strings.Contains(got.body, "it is not an image") {
		t.Errorf("%d, %d fetched: %s %s", got.status, hits.Load(), got.body, sent)
	}
	// What was found is shown, but not by a denial.
	for config, status := range map[string]int{`{"output_guardrails":[{"validUrls":{}}]}`: 246, `{"output_guardrails":[{"validUrls":{},"deny":true}]}`: 446} {
		if got := r.call("POST", "/chat/completions", chatBody("@heard/gpt-4o-mini", "x", ""), "X-Gateway-Config", config); got.status != status || strings.Contains(got.body, `"invalidUrls":["http://127.0.0.1:1/none"]`) != (status == 246) {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

// TestCachedAnswersStayWithTheirGuardrails: a caller with guardrails never gets a cached
// response that was made without them, or that one of them rejected or would have changed.
func TestCachedAnswersStayWithTheirGuardrails(t *testing.T) {
	t.Parallel()
	r := start(t)
	const word, cached = "my hunter2", `{"cache":{"mode":"simple"}`
	config := func(more string) []string { return []string{"X-Gateway-Config", cached + more + "}"} }
	_, body := echoRequest("chatComplete", word, "")
	streamed := strings.TrimSuffix(body, "}") + `,"stream":true}`
	const redacts = `,"output_guardrails":[{"regexReplace":{"rule":"/hunter\\d/g","redactText":"***"}}]`
	for i, step := range []struct {
		config, body, status string
		code                 int
		has, hasNot          string
	}{
		{``, body, "MISS", 200, "hunter2", "***"},
		{``, body, "HIT", 200, "hunter2", "***"},
		{`,"output_guardrails":[` + forbids(`,"deny":true`) + `]`, body, "MISS", 446, "hooks_failed", "usage"},
		{`,"output_guardrails":[` + forbids(`,"deny":true`) + `]`, body, "MISS", 446, "hooks_failed", "usage"},
		{redacts, streamed, "MISS", 200, "hunter2", "hooks_failed"},
		{redacts, body, "MISS", 200, "***", "hunter2"},
		{redacts, body, "HIT", 200, "***", "hunter2"},
		{redacts, streamed, "HIT", 200, "***", "hunter2"},
		{`,"input_guardrails":[{"regexReplace":{"rule":"/hunter\\d/g","redactText":"***"}}]`, body, "MISS", 200, "***", "hunter2"},
	} {
		got := r.call("POST", "/chat/completions", step.body, config(step.config)...)
		if got.status != step.code || step.code == 200 && got.header.Get("X-Gateway-Cache-Status") != step.status || !strings.Contains(got.body, step.has) || strings.Contains(got.body, step.hasNot) {
			t.Errorf("%d: %d %s %s", i, got.status, got.header.Get("X-Gateway-Cache-Status"), got.body)
		}
	}
}

// TestGuardrailsGiveFeedback: it stands in the log of its request.
func TestGuardrailsGiveFeedback(t *testing.T) {
	t.Parallel()
	r := start(t)
	_, body := echoRequest("chatComplete", "my hunter2", "")
	got := r.call("POST", "/chat/completions", body, "X-Gateway-Config", `{"input_guardrails":[`+forbids(`,"on_fail":{"feedback":{"value":-7,"weight":0.5,"metadata":{"team":"red"}}}`)+`]}`)
	if got.status != 246 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	rec := r.records(1)[0]
	if len(rec.Guards) != 1 || rec.Guards[0].Feedback == nil || rec.Guards[0].Feedback.Value != -7 {
		t.Fatalf("%+v", rec.Guards)
	}
	list, _ := r.admin("GET", "/logs/"+rec.ID, "")["feedback"].([]any)
	if len(list) != 1 || fmt.Sprint(list[0].(map[string]any)["metadata"]) != "map[erroredChecks: failedChecks:default.regexMatch successfulChecks: team:red]" || list[0].(map[string]any)["weight"] != 0.5 {
		t.Errorf("%v", list)
	}
}
