package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"gateway/local/mockprovider"
)

// googleMock is a mock provider of its own whose token endpoint knows a service
// account; it gives the account's key file too.
func googleMock(t *testing.T) (mock *mockprovider.Server, host string, account map[string]string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	mock = mockprovider.New(mockprovider.Options{ServiceAccount: &key.PublicKey})
	host, err = mock.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mock.Close() })
	return mock, host, map[string]string{
		"type": "service_account", "project_id": "proj", "private_key_id": "kid", "client_email": "svc@proj.iam.gserviceaccount.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": host + "/token",
	}
}

// startGoogle runs a gateway with the saved providers @google and @vertex in
// front of one mock.
func startGoogle(t *testing.T) (*running, *mockprovider.Server) {
	t.Helper()
	r := start(t)
	mock, host, account := googleMock(t)
	raw, _ := json.Marshal(account)
	r.save("google", `"ai_provider_id":"google","key":"mock-google","configurations":{"custom_host":"`+host+`"}`)
	r.save("vertex", `"ai_provider_id":"vertex-ai","configurations":{"vertex_auth_type":"serviceAccount","vertex_region":"us-central1","vertex_service_account_json":`+string(raw)+`,"custom_host":"`+host+`"}`)
	return r, mock
}

func (r *running) save(slug, fields string) {
	r.t.Helper()
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":%q,"slug":%q,"workspace_id":%q,%s}`, slug, slug, r.workspace(), fields))
}

// countingClient counts the requests that are recorded.
type countingClient struct {
	*running
	n int
}

func (a *countingClient) send(path, body string, headers ...string) reply {
	a.t.Helper()
	a.n++
	got := a.call("POST", path, body, headers...)
	if got.status != 200 {
		a.t.Fatalf("%d %s\n%s", got.status, got.body, body)
	}
	return got
}

// TestVertexCredentials: a rejected key is the provider's 401, and the key file
// cannot send the gateway where the egress rules close.
func TestVertexCredentials(t *testing.T) {
	t.Parallel()
	r := start(t)
	_, host, account := googleMock(t)
	_, _, stranger := googleMock(t)
	stranger["token_uri"] = host + "/token"
	closed := map[string]string{}
	for k, v := range account {
		closed[k] = v
	}
	closed["token_uri"] = "http://169.254.169.254/token"
	for _, c := range []struct {
		slug    string
		account map[string]string
		status  int
		want    string
	}{
		{"good", account, 200, `"choices"`},
		{"unknown", stranger, 401, `"source":"provider"`},
		{"closed", closed, 400, "blocked_host"},
	} {
		raw, _ := json.Marshal(c.account)
		r.save("vertex-"+c.slug, `"ai_provider_id":"vertex-ai","configurations":{"vertex_auth_type":"serviceAccount","vertex_region":"global","vertex_service_account_json":`+string(raw)+`,"custom_host":"`+host+`"}`)
		got := r.call("POST", "/chat/completions", chatBody("@vertex-"+c.slug+"/gemini-2.5-flash", "Hi", ""))
		if got.status != c.status || !strings.Contains(got.body, c.want) || strings.Contains(got.body, "PRIVATE") {
			t.Errorf("%s: %d %s", c.slug, got.status, got.body)
		}
	}
	r.save("vertex-token", `"ai_provider_id":"vertex-ai","key":"`+mockprovider.VertexToken+`","configurations":{"vertex_auth_type":"basic","vertex_region":"europe-west4","vertex_project_id":"p1","custom_host":"`+host+`"}`)
	if got := r.call("POST", "/chat/completions", chatBody("@vertex-token/gemini-2.5-flash", "Hi", "")); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestModelsAreListedForGooglesClients: Google's SDK 3 reads the models at /v1/models, which others
// read in OpenAI's format.
func TestModelsAreListedForGooglesClients(t *testing.T) {
	t.Parallel()
	r, mock := startGoogle(t)
	key, agent := []string{"X-Goog-Api-Key", workspaceKey}, []string{"X-Goog-Api-Client", "google-genai-sdk/3.3.0 gl-node/v24"}
	const mini = `{"name":"models/@mock/gpt-4o-mini","displayName":"gpt-4o-mini","inputTokenLimit":128000,"outputTokenLimit":16384,"supportedGenerationMethods":["generateContent","countTokens"]}`
	const flash = `{"name":"models/gemini-2.5-flash","displayName":"gemini-2.5-flash","inputTokenLimit":1048576,`
	to := func(headers []string, slug string) []string {
		return append(headers[:len(headers):len(headers)], "X-Gateway-Provider", slug)
	}
	for _, c := range []struct {
		path    string
		headers []string
		status  int
		want    string
		sent    string // to Google
	}{
		{"/models", nil, 200, `{"object":"list","data":[{"id":"@`, ""},
		{"/models", key, 200, mini, ""},
		{"/v1/models/", agent, 404, ``, ""},
		{"/models?pageSize=1", agent, 200, `"nextPageToken":"@`, ""},
		{"/models?pageSize=x", agent, 400, `"status":"INVALID_ARGUMENT"`, ""},
		{"/models?pageToken=@mock/gpt-4o-mini&pageSize=1", agent, 200, `{"models":[` + mini + `],"nextPageToken":"@`, ""},
		{"/models?pageToken=nothing", agent, 400, `"status":"INVALID_ARGUMENT"`, ""},
		{"/models/@mock/gpt-4o-mini", agent, 200, mini, ""},
		{"/models/@mock%2Fgpt-4o-mini", to(agent, "@google"), 200, mini, ""},
		{"/models/gpt-4o-mini", agent, 200, `{"name":"models/gpt-4o-mini","displayName":"gpt-4o-mini",`, ""},
		{"/models/unknown", agent, 404, `"status":"NOT_FOUND"`, ""},
		{"/models", to(agent, "@mock"), 200, `{"name":"models/gpt-4o-mini","displayName":"gpt-4o-mini",`, ""},
		{"/models/gpt-4o-mini", to(agent, "@mock"), 200, `{"name":"models/gpt-4o-mini","displayName":"gpt-4o-mini",`, ""},
		{"/models/unknown", to(agent, "@mock"), 404, `"status":"NOT_FOUND"`, ""},
		{"/models?pageSize=3&pageToken=x&key=secret", to(key, "@google"), 200, `{"models":[{"name":"models/gemini-2.0-flash",`, "/v1beta/models?pageSize=3&pageToken=x"},
		{"/models/gemini-2.5-flash", to(key, "@google"), 200, flash, "/v1beta/models/gemini-2.5-flash"},
		{"/models/does-not-exist", to(key, "@google"), 404, `"status":"NOT_FOUND"`, "/v1beta/models/does-not-exist"},
		{"/models", to(nil, "@google"), 200, `{"object":"list","data":[{"id":"gemini-2.0-flash"`, "/v1beta/models?pageSize=1000"},
		{"/models", to(append(agent, "Anthropic-Version", "2023-06-01"), "@mock"), 200, `"has_more":false`, ""},
	} {
		mock.Reset()
		got := r.call("GET", c.path, "", c.headers...)
		if got.status != c.status || !strings.Contains(got.body, c.want) {
			t.Errorf("%s %v: %d, want %d and %s\n%.600s", c.path, c.headers, got.status, c.status, c.want, got.body)
		}
		sent := ""
		for _, req := range mock.Requests(9) {
			sent = req.Path
			if req.Query != "" {
				sent += "?" + req.Query
			}
		}
		if sent != c.sent {
			t.Errorf("%s %v: sent %q, want %q", c.path, c.headers, sent, c.sent)
		}
	}
}

// TestGeminiSDKWithoutBeta asks as Google's SDK 3 does, whose paths begin with v1, and as the AI SDK,
// which omits models/ before a name with a slash, at the provider itself and at one of another shape.
func TestGeminiSDKWithoutBeta(t *testing.T) {
	t.Parallel()
	r, mock := startGoogle(t)
	const body = `{"contents":[{"role":"user","parts":[{"text":"mock: echo\nHello"}]}]}`
	for _, c := range []struct{ path, body, sent, want string }{
		{"/models/@google/gemini-2.5-flash:generateContent", body, "/v1beta/models/gemini-2.5-flash:generateContent", `"Hello`},
		{"/models/@google/gemini-2.5-flash:streamGenerateContent?alt=sse", body, "/v1beta/models/gemini-2.5-flash:streamGenerateContent", `"finishReason":"STOP"`},
		{"/models/gemini-2.5-flash:countTokens", body, "/v1beta/models/gemini-2.5-flash:countTokens", `"totalTokens"`},
		{"/models/gemini-embedding-001:embedContent", `{"content":{"parts":[{"text":"Hello"}]}}`, "/v1beta/models/gemini-embedding-001:embedContent", `"values"`},
		{"/models/@mock/gpt-4o:generateContent", body, "", `"candidates"`},
		{"/v1beta/@google/gemini-2.5-flash:generateContent", body, "/v1beta/models/gemini-2.5-flash:generateContent", `"Hello`},
		{"/v1beta/@mock/gpt-4o:streamGenerateContent?alt=sse", body, "", `"finishReason":"STOP"`},
		{"/models/@mock/gpt-4o:streamGenerateContent?alt=sse", body, "", `"finishReason":"STOP"`},
	} {
		var headers []string
		if !strings.Contains(c.path, "@") {
			headers = []string{"X-Gateway-Provider", "@google"}
		}
		got := r.call("POST", c.path, c.body, headers...)
		if got.status != 200 || !strings.Contains(string(got.body), c.want) {
			t.Errorf("%s: %d %s", c.path, got.status, got.body)
		}
		if c.sent != "" && mock.Requests(1)[0].Path != c.sent {
			t.Errorf("%s: sent to %s", c.path, mock.Requests(1)[0].Path)
		}
	}
}

// TestTokenCountsInEveryShape counts with the paths of each shape at targets of other shapes,
// where the response says that it is an estimate, and at Google itself.
func TestTokenCountsInEveryShape(t *testing.T) {
	t.Parallel()
	r, mock := startGoogle(t)
	const contents = `{"contents":[{"role":"user","parts":[{"text":"Count these words, please."}]}]}`
	for _, c := range []struct {
		path, body, member string
		estimated          bool
	}{
		{"/v1beta/models/@mock/gpt-4o:countTokens", contents, "totalTokens", true},
		{"/models/@vertex/anthropic.claude-sonnet-4-5:countTokens", `{"generateContentRequest":` + contents + `}`, "totalTokens", true},
		{"/v1beta/models/@google/gemini-2.5-flash:countTokens", contents, "totalTokens", false},
		{"/responses/input_tokens", `{"model":"@google/gemini-2.5-flash","input":"Count these words, please."}`, "input_tokens", true},
		{"/messages/count_tokens", `{"model":"@google/gemini-2.5-flash","messages":[{"role":"user","content":"Count these words, please."}]}`, "input_tokens", true},
	} {
		before := len(mock.Requests(1000))
		got := r.call("POST", c.path, c.body)
		if got.status != 200 {
			t.Errorf("%s: %d %s", c.path, got.status, got.body)
			continue
		}
		answer := got.json(t)
		n, _ := answer[c.member].(float64)
		if reported, _ := answer["estimated"].(bool); reported != c.estimated || n < 3 || n > 20 || (len(mock.Requests(1000)) == before) != c.estimated {
			t.Errorf("%s: %s", c.path, got.body)
		}
	}
}
