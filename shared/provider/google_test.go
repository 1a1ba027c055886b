package provider

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
)

var testKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// accountJSON is a key file; change edits it.
func accountJSON(t *testing.T, change func(map[string]string)) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(testKey())
	if err != nil {
		t.Fatal(err)
	}
	a := map[string]string{
		"type": "service_account", "project_id": "proj", "private_key_id": "kid-1", "client_email": "svc@proj.iam.gserviceaccount.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}
	if change != nil {
		change(a)
	}
	raw, _ := json.Marshal(a)
	return string(raw)
}

// checkAssertion verifies a JWT as the token endpoint does.
func checkAssertion(t *testing.T, assertion, audience string, now time.Time) {
	t.Helper()
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		t.Fatalf("assertion %q", assertion)
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err == nil {
		err = rsa.VerifyPKCS1v15(&testKey().PublicKey, crypto.SHA256, sum[:], signature)
	}
	if err != nil {
		t.Fatal(err)
	}
	var head struct{ Alg, Typ, Kid string }
	var claims struct {
		Iss, Sub, Aud, Scope string
		Iat, Exp             int64
	}
	for i, into := range []any{&head, &claims} {
		raw, _ := base64.RawURLEncoding.DecodeString(parts[i])
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	if head.Alg != "RS256" || head.Typ != "JWT" || head.Kid != "kid-1" {
		t.Errorf("head %+v", head)
	}
	if email := "svc@proj.iam.gserviceaccount.com"; claims.Iss != email || claims.Sub != email || claims.Aud != audience || claims.Scope != googleScope ||
		claims.Iat != now.Unix() || claims.Exp != now.Add(time.Hour).Unix() {
		t.Errorf("claims %+v", claims)
	}
}

func vertexTarget(t *testing.T, signer Signer, fields map[string]string) *Target {
	return &Target{Provider: row(t, "vertex-ai"), Credential: Credential{Fields: fields}, Signer: signer}
}

func bearerOf(t *testing.T, target *Target) (string, error) {
	t.Helper()
	req, _ := http.NewRequest(http.MethodPost, "https://aiplatform.googleapis.com/x", nil)
	err := target.Authorize(context.Background(), req, nil)
	return req.Header.Get("Authorization"), err
}

func TestServiceAccountIsTradedForAToken(t *testing.T) {
	at := newClock()
	calls := 0
	rt := roundTrip(func(r *http.Request) (*http.Response, error) {
		calls++
		body, _ := io.ReadAll(r.Body)
		form, err := url.ParseQuery(string(body))
		if err != nil || r.URL.String() != googleTokenURL || r.Method != http.MethodPost || form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
			t.Errorf("%s %s %q", r.Method, r.URL, body)
		}
		checkAssertion(t, form.Get("assertion"), googleTokenURL, at.now())
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{"access_token":"ya29.token","expires_in":3599,"token_type":"Bearer"}`))}, nil
	})
	target := vertexTarget(t, NewTokens(rt, at.now), map[string]string{accountField: accountJSON(t, nil), "vertex_auth_type": googleServiceAccount})
	for _, step := range []struct {
		wait  time.Duration
		calls int
	}{{0, 1}, {50 * time.Minute, 1}, {10 * time.Minute, 2}} {
		at.add(step.wait)
		got, err := bearerOf(t, target)
		if err != nil || got != "Bearer ya29.token" || calls != step.calls {
			t.Errorf("after %v: %q, %v, %d calls", step.wait, got, err, calls)
		}
	}
}

func TestServiceAccountRefusals(t *testing.T) {
	ecKey := "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg\n-----END PRIVATE KEY-----\n"
	refuse := roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 400, Body: io.NopCloser(strings.NewReader(`{"error":"invalid_grant","error_description":"Invalid JWT Signature."}`))}, nil
	})
	for _, c := range []struct {
		name, field string
		fields      map[string]string
		code        fault.Code
		status      int
	}{
		{"refused by Google", accountField, map[string]string{accountField: accountJSON(t, nil)}, fault.ProviderError, 401},
		{"no key file", accountField, map[string]string{"vertex_auth_type": googleServiceAccount}, fault.InvalidRequest, 400},
		{"not JSON", accountField, map[string]string{accountField: "{oops"}, fault.InvalidRequest, 400},
		{"no email", accountField + ".client_email", map[string]string{accountField: accountJSON(t, func(a map[string]string) { delete(a, "client_email") })}, fault.InvalidRequest, 400},
		{"no key", accountField + ".private_key", map[string]string{accountField: accountJSON(t, func(a map[string]string) { delete(a, "private_key") })}, fault.InvalidRequest, 400},
		{"not a key", accountField + ".private_key", map[string]string{accountField: accountJSON(t, func(a map[string]string) { a["private_key"] = "abc" })}, fault.InvalidRequest, 400},
		{"another kind of key", accountField + ".private_key", map[string]string{accountField: accountJSON(t, func(a map[string]string) { a["private_key"] = ecKey })}, fault.InvalidRequest, 400},
		{"another type", accountField + ".type", map[string]string{accountField: accountJSON(t, func(a map[string]string) { a["type"] = "authorized_user" })}, fault.InvalidRequest, 400},
		{"token_uri", accountField + ".token_uri", map[string]string{accountField: accountJSON(t, func(a map[string]string) { a["token_uri"] = "file:///etc/passwd" })}, fault.InvalidRequest, 400},
		{"another cloud's", accountField + ".type", map[string]string{accountField: accountJSON(t, func(a map[string]string) { a["type"] = "external_account" })}, fault.InvalidRequest, 400},
		{"workload", audienceField, map[string]string{"vertex_auth_type": googleWorkload}, fault.InvalidRequest, 400},
		{"unknown type", "vertex_auth_type", map[string]string{"vertex_auth_type": "magic"}, fault.InvalidRequest, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := bearerOf(t, vertexTarget(t, NewTokens(refuse, newClock().now), c.fields))
			f := fault.From(err)
			if f == nil || f.Code != c.code || f.Field != c.field || f.Status() != c.status {
				t.Fatalf("got %v", f)
			}
			if strings.Contains(f.Error(), "BEGIN") || strings.Contains(f.Error(), "svc@") {
				t.Errorf("tells of the key: %v", f)
			}
		})
	}
	if _, err := bearerOf(t, vertexTarget(t, nil, map[string]string{accountField: accountJSON(t, nil)})); !fault.Is(err, fault.UnsupportedOperation) {
		t.Errorf("without a signer: %v", err)
	}
}

// TestTokenEndpointIsGuarded: the key file may name a host, but not one that the
// egress policy closes.
func TestTokenEndpointIsGuarded(t *testing.T) {
	tokens := NewTokens(egress.NewTransport(egress.Policy{}), time.Now)
	for _, uri := range []string{"http://127.0.0.1:9/token", "https://127.0.0.1:9/token", "http://169.254.169.254/computeMetadata/v1/instance/service-accounts/default/token", "https://[::1]/token"} {
		account := accountJSON(t, func(a map[string]string) { a["token_uri"] = uri })
		_, err := bearerOf(t, vertexTarget(t, tokens, map[string]string{accountField: account}))
		if !fault.Is(err, fault.BlockedHost) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

func TestAdaptForVertex(t *testing.T) {
	for _, c := range []struct {
		name, model, dialect, body, want string
		op                               Operation
		fields                           map[string]string
	}{
		{"messages", "anthropic.claude-sonnet-4-5", AnthropicMessages, `{"model":"claude-sonnet-4-5","max_tokens":1}`, `{"anthropic_version":"vertex-2023-10-16","max_tokens":1}`, Messages, nil},
		{"own version", "anthropic.claude-x", AnthropicMessages, `{"model":"m","anthropic_version":"vertex-2024-01-01"}`, `{"anthropic_version":"vertex-2024-01-01"}`, Messages, nil},
		{"version of the SDK", "anthropic.claude-x", AnthropicMessages, `{"anthropic_version":"2023-06-01","model":"m"}`, `{"anthropic_version":"vertex-2023-10-16"}`, Chat, map[string]string{"anthropic_version": "2023-06-01"}},
		{"version of the target", "anthropic.claude-x", AnthropicMessages, `{"model":"m","a":1}`, `{"anthropic_version":"vertex-9","a":1}`, Chat, map[string]string{"anthropic_version": "vertex-9"}},
		{"count tokens", "anthropic.claude-x", AnthropicMessages, `{"model":"m"}`, `{"anthropic_version":"vertex-2023-10-16","model":"m"}`, MessagesCountTokens, nil},
		{"gemini", "gemini-2.5-pro", Gemini, `{"contents":[]}`, `{"contents":[]}`, Chat, nil},
		{"mistral", "mistralai.mistral-medium-3", OpenAIChat, `{"model":"m","seed":1,"user":"u","tool_choice":"required"}`, `{"model":"m","random_seed":1,"tool_choice":"any"}`, Chat, nil},
		{"llama", "meta.llama-4", OpenAIChat, `{"model":"m","max_completion_tokens":5}`, `{"model":"m","max_tokens":5}`, Chat, nil},
	} {
		got, _ := vertexTarget(t, nil, c.fields).Adapt(c.op, c.dialect, c.model, []byte(c.body))
		var a, b any
		if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(c.want), &b) != nil {
			t.Fatalf("%s: %s", c.name, got)
		}
		ja, _ := json.Marshal(a)
		jb, _ := json.Marshal(b)
		if string(ja) != string(jb) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	body := []byte(`{"model":"claude"}`)
	if got, _ := (&Target{Provider: row(t, "anthropic")}).Adapt(Messages, AnthropicMessages, "claude", body); string(got) != string(body) {
		t.Errorf("anthropic: %s", got)
	}
}

func TestGeminiTraits(t *testing.T) {
	for model, want := range map[string]chat.Traits{
		"gemini-1.5-pro-002":         {Thinking: chat.ThinksNever, Limits: chat.Limits{NoThinking: true}, Schema: chat.SchemaSubset},
		"gemini-2.0-flash":           {Thinking: chat.ThinksNever, Limits: chat.Limits{NoThinking: true}, Schema: chat.SchemaSubset},
		"gemini-2.5-pro":             {MinBudget: 128, MaxBudget: 32768, ThinksAlways: true, Schema: chat.SchemaNative},
		"models/gemini-2.5-flash":    {MaxBudget: 24576, Schema: chat.SchemaNative},
		"gemini-2.5-flash-lite":      {MinBudget: 512, MaxBudget: 24576, Schema: chat.SchemaNative},
		"gemini-3-pro-preview":       {Thinking: chat.ThinksAdaptively, Efforts: "low high", SignedCalls: true, ThinksAlways: true, Schema: chat.SchemaNative},
		"gemini-3.1-pro-preview":     {Thinking: chat.ThinksAdaptively, Efforts: "low medium high", SignedCalls: true, ThinksAlways: true, Schema: chat.SchemaNative},
		"gemini-3-flash-preview":     {Thinking: chat.ThinksAdaptively, SignedCalls: true, Schema: chat.SchemaNative},
		"gemini-7-ultra":             {Thinking: chat.ThinksAdaptively, SignedCalls: true, Schema: chat.SchemaNative},
		"gemma-3-27b-it":             {Thinking: chat.ThinksNever, Limits: chat.Limits{NoTools: true}, Schema: chat.SchemaNone},
		"some-fine-tune":             {},
		"google.gemini-2.0-flash":    {Thinking: chat.ThinksNever, Limits: chat.Limits{NoThinking: true}, Schema: chat.SchemaSubset},
		"gemini-2.5-flash-image":     {Thinking: chat.ThinksNever, Limits: chat.Limits{NoTools: true, NoThinking: true}, Schema: chat.SchemaNative},
		"gemini-2.5-flash-preview-x": {MaxBudget: 24576, Schema: chat.SchemaNative},
	} {
		for _, id := range []string{"google", "vertex-ai"} {
			want.Provider = id
			if got := row(t, id).Traits(model); !reflect.DeepEqual(got, want) {
				t.Errorf("%s %s: %+v", id, model, got)
			}
		}
	}
	vertex := row(t, "vertex-ai")
	if got := vertex.Traits("anthropic.claude-3-5-sonnet"); got.DefaultMaxTokens != 8192 {
		t.Errorf("claude: %+v", got)
	}
	if got := vertex.Traits("mistralai.mistral-medium-3"); !got.NoUnknown || got.SystemRole != "system" || got.MaxTokensField != "max_tokens" {
		t.Errorf("mistral: %+v", got)
	}
}

func TestVertexSpeaksByPublisher(t *testing.T) {
	target := vertexTarget(t, nil, nil)
	for _, c := range []struct {
		op      Operation
		client  string
		model   string
		dialect string
		up      Operation
		ok      bool
	}{
		{Chat, OpenAIChat, "gemini-2.5-pro", Gemini, Chat, true},
		{Messages, AnthropicMessages, "gemini-2.5-pro", Gemini, Chat, true},
		{Messages, AnthropicMessages, "anthropic.claude-x", AnthropicMessages, Messages, true},
		{Chat, OpenAIChat, "anthropic.claude-x", AnthropicMessages, Chat, true},
		{Messages, AnthropicMessages, "meta.llama", OpenAIChat, Chat, true},
		{Chat, OpenAIChat, "meta.llama", OpenAIChat, Chat, true},
		{MessagesCountTokens, AnthropicMessages, "anthropic.claude-x", AnthropicMessages, MessagesCountTokens, true},
		{MessagesCountTokens, AnthropicMessages, "gemini-2.5-pro", "", "", false},
	} {
		dialect, up, ok := target.UpstreamDialect(c.op, c.client, c.model)
		if dialect != c.dialect || up != c.up || ok != c.ok {
			t.Errorf("%s of %s on %s: %s %s %v", c.op, c.client, c.model, dialect, up, ok)
		}
	}
}

// TestLaterGeminiEmbeddingsOnVertex: the models after the first have no :predict.
func TestLaterGeminiEmbeddingsOnVertex(t *testing.T) {
	t.Parallel()
	target := Target{Provider: row(t, "vertex-ai"), Credential: sample(row(t, "vertex-ai"))}
	for model, want := range map[string]struct{ dialect, method string }{
		"gemini-embedding-001": {"vertex.embeddings", ":predict"}, "google.gemini-embedding-001": {"vertex.embeddings", ":predict"},
		"gemini-embedding-exp-03-07": {"vertex.embeddings", ":predict"}, "text-embedding-005": {"vertex.embeddings", ":predict"},
		"gemini-embedding-2": {VertexEmbedContent, ":embedContent"}, "google.gemini-embedding-2-preview": {VertexEmbedContent, ":embedContent"},
		"gemini-embedding-9": {VertexEmbedContent, ":embedContent"},
	} {
		u, err := target.URL(Embeddings, model, false)
		if err != nil || !strings.HasSuffix(u, want.method) || target.DialectOf(Embeddings, model) != want.dialect {
			t.Errorf("%s: %s %s %v", model, target.DialectOf(Embeddings, model), u, err)
		}
	}
}
