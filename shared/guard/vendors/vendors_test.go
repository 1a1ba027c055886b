package vendors

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/guard/judge"
	"gateway/shared/provider"
)

// proofOf returns the first proof of a check.
func proofOf(id string) *proof {
	for i := range proofs {
		if proofs[i].id == id {
			return &proofs[i]
		}
	}
	panic(id)
}

// TestRowsAreOfTheTable: each wire has a row that says what it takes, its parameters are
// validated with their paths, and its placeholders are known.
func TestRowsAreOfTheTable(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		row, ok := guard.Find(w.id)
		if !ok || row.Category != guard.Vendor {
			t.Errorf("%s is not in the table", w.id)
			continue
		}
		if c := w.check(Deps{}, nil, nil); c.bodies[0] == nil || c.bodies[1] == nil {
			t.Errorf("%s: its body is not JSON", w.id)
		}
	}
	for raw, field := range map[string]string{
		`[{"id":"aporia.validateProject","parameters":{"projectID":"p","credentials":{"apiEndpoint":"https://a.example.com"}}}]`:                                      "[0].parameters.credentials.apiKey",
		`[{"id":"aporia.validateProject","parameters":{"projectID":"p","credentials":{"apiKey":"k","apiEndpoint":"ftp://x"}}}]`:                                       "[0].parameters.credentials.apiEndpoint",
		`[{"id":"aporia.validateProject","parameters":{"credentials":{"apiKey":"k"}}}]`:                                                                               "[0].parameters.projectID",
		`[{"id":"azure.pii","parameters":{"credentials":{"pii":{"apiKey":"k"}}}}]`:                                                                                    "[0].parameters.credentials.pii.resourceName",
		`[{"id":"azure.contentSafety","parameters":{"credentials":{"resourceName":"r"}}}]`:                                                                            "[0].parameters.credentials.contentSafety",
		`[{"id":"azure.contentSafety","parameters":{"credentials":{"contentSafety":{"resourceName":"r","azureAuthMode":"guess"}}}}]`:                                  "[0].parameters.credentials.contentSafety.azureAuthMode",
		`[{"id":"bedrock.guard","parameters":{"guardrailId":"g","guardrailVersion":"1","credentials":{"awsAuthType":"serviceRole"}}}]`:                                "[0].parameters.credentials.awsAuthType",
		`[{"id":"mistral.moderateContent","parameters":{"categories":["pii"],"timeout":0,"credentials":{"apiKey":"k"}}}]`:                                             "[0].parameters.timeout",
		`[{"id":"mistral.moderateContent","parameters":{"categories":["pii"],"credentials":{"apiKey":5}}}]`:                                                           "[0].parameters.credentials.apiKey",
		`[{"id":"f5-guardrails.scan","parameters":{"projectId":"p","credentials":"{\"apiKey\":\"k\",\"calypsoUrl\":\"http://10.0.0.1:80?\"}"}}]`:                      "[0].parameters.credentials.calypsoUrl",
		`[{"id":"mistral.moderateContent","parameters":{"categories":["pii"],"secret_mappings":[{"target_field":"credentials.apiBase","secret_reference_id":"r"}]}}]`: "[0].parameters.secret_mappings[0].target_field",
	} {
		if _, bad := guard.ParseChecks(json.RawMessage(raw), refuse); len(bad) != 1 || bad[0].Field != field {
			t.Errorf("%s: %v, want %s", raw, bad, field)
		}
	}
}

// TestCredentialsThatCannotBeUsed: nobody is called, and the message names what is
// missing.
func TestCredentialsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ id, creds, message string }{
		{"aporia.validateProject", `{}`, "needs apiKey"},
		{"aporia.validateProject", `{"apiKey":"a\nb"}`, "line breaks"},
		{"aporia.validateProject", `{"apiKey":"k","apiEndpoint":"file:///etc"}`, "apiEndpoint has an invalid form"},
		{"aporia.validateProject", `{"apiKey":"k","apiEndpoint":"https://user:pass@a.example.com"}`, "apiEndpoint has an invalid form"},
		{"azure.contentSafety", `{}`, "credentials.contentSafety.resourceName"},
		{"azure.contentSafety", `{"contentSafety":{"resourceName":"a.b/c","apiKey":"k"}}`, "credentials.contentSafety.resourceName"},
		{"azure.contentSafety", `{"contentSafety":{"resourceName":"res"}}`, "azureAuthMode"},
		{"azure.contentSafety", `{"contentSafety":{"resourceName":"res","azureAuthMode":"managed"}}`, "GATEWAY_AZURE_IDENTITY"},
		{"azure.contentSafety", `{"contentSafety":{"resourceName":"res","azureAuthMode":"entra","tenantId":"the-tenant","clientId":"the-client","clientSecret":"wrong"}}`, "does not accept"},
		{"bedrock.guard", `{}`, "aws_access_key_id"},
		{"bedrock.guard", `{"awsAccessKeyId":"AKID","awsSecretAccessKey":"s","awsRegion":"a/../b"}`, "awsRegion"},
		{"bedrock.guard", `{"awsAuthType":"assumedRole","awsRoleArn":"arn:aws:iam::123456789012:role/x"}`, "cannot be used by requests"},
	} {
		p := *proofOf(c.id)
		p.creds = c.creds
		s := serve(t, &p)
		s.respond(responding(200, p.passes[0]))
		if v := p.run(s, ""); v.Pass || v.Err == nil || v.Err.Name != "CredentialsError" || !strings.Contains(v.Err.Message, c.message) || s.calls.Load() > 0 {
			t.Errorf("%s %s: %s, %d calls", c.id, c.creds, verdictText(v), s.calls.Load())
		}
	}
}

// TestEmptyTextIsNotSent: nobody is asked about no text.
func TestEmptyTextIsNotSent(t *testing.T) {
	t.Parallel()
	p := *proofOf("f5-guardrails.scan")
	p.texts = []string{"", ""}
	s := serve(t, &p)
	if v := p.run(s, ""); v.Err == nil || v.Err.Name != "MissingText" || s.calls.Load() > 0 {
		t.Error(verdictText(v))
	}
}

// TestRedactsInputsOfEmbeddings: what is embedded is redacted as any other text.
func TestRedactsInputsOfEmbeddings(t *testing.T) {
	t.Parallel()
	p := *proofOf("f5-guardrails.scan")
	p.texts, p.kind = []string{"a", "b"}, "embed"
	s := serve(t, &p)
	s.respond(responding(200, `{"result":{"outcome":"redacted"},"redactedInput":"x"}`))
	if v := p.run(s, `{"redact":true}`); texts(v) != "x/x" || !v.Pass || s.calls.Load() != 2 {
		t.Errorf("%s %q %d", verdictText(v), texts(v), s.calls.Load())
	}
}

// TestPartsAreJudgedConcurrently: each part of a message is its own call, and its redaction
// goes to its place; one that breaks does not undo those of others.
func TestPartsAreJudgedConcurrently(t *testing.T) {
	t.Parallel()
	p := *proofOf("f5-guardrails.scan")
	p.texts = []string{"a", "", "b", "c"}
	s := serve(t, &p)
	s.respond(responding(200, `{"result":{"outcome":"redacted"},"redactedInput":"x"}`))
	if v := p.run(s, `{"redact":true}`); texts(v) != "x//x/x" || !v.Pass || s.calls.Load() != 3 {
		t.Errorf("%s %q %d", verdictText(v), texts(v), s.calls.Load())
	}
	var n atomic.Int64
	s.respond(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 2 {
			responding(500, "")(w, r)
			return
		}
		responding(200, `{"result":{"outcome":"redacted"},"redactedInput":"x"}`)(w, r)
	})
	if v := p.run(s, `{"redact":true}`); v.Err == nil || strings.Count(texts(v), "x") != 2 {
		t.Errorf("%s %q", verdictText(v), texts(v))
	}
}

// TestBreakerOpensAfterConsecutiveOutages: after three outages nobody asks the vendor for half a
// minute; then one caller does. Callers with other credentials are not held up.
func TestBreakerOpensAfterConsecutiveOutages(t *testing.T) {
	t.Parallel()
	p := *proofOf("aporia.validateProject")
	p.header = map[string]string{"X-Aporia-Api-Key": "*"}
	s := serve(t, &p)
	var now atomic.Int64
	makers := Makers(Deps{Now: func() time.Time { return time.Unix(now.Load(), 0) }})
	run := func(creds string) judge.Verdict {
		p := p
		p.creds = creds
		sub := p.subject(s, "")
		return makers[p.id](sub.Parameters)(context.Background(), sub) // as a config that comes with each request
	}
	s.respond(responding(503, ""))
	for range tripsAt {
		if v := run(keyed); v.Err == nil || v.Err.Name != "VendorError" {
			t.Fatal(verdictText(v))
		}
	}
	for range 20 {
		if v := run(keyed); v.Err == nil || v.Err.Name != "VendorDown" {
			t.Fatal(verdictText(v))
		}
	}
	if n := s.calls.Load(); n != tripsAt {
		t.Errorf("%d calls", n)
	}
	s.respond(responding(200, p.passes[0]))
	if v := run(`{"apiKey":"another"}`); !v.Pass {
		t.Errorf("another's credentials are held up: %s", verdictText(v))
	}
	now.Add(31)
	s.respond(responding(503, ""))
	if v := run(keyed); v.Err.Name != "VendorError" {
		t.Error(verdictText(v))
	}
	if v := run(keyed); v.Err.Name != "VendorDown" {
		t.Error(verdictText(v))
	}
	now.Add(31)
	s.respond(responding(200, p.passes[0]))
	for range 3 {
		if v := run(keyed); !v.Pass {
			t.Error(verdictText(v))
		}
	}
	for _, status := range []int{401, 429} { // they cost no time
		s.respond(responding(status, ""))
		for range tripsAt + 2 {
			if v := run(keyed); v.Err.Name != "VendorError" {
				t.Error(verdictText(v))
			}
		}
	}
}

// TestBreakersAreLimited: settings without end are forgotten.
func TestBreakersAreLimited(t *testing.T) {
	t.Parallel()
	b := &breakers{now: time.Now, known: map[[32]byte]*circuit{}}
	for i := range 3 * maxCircuits {
		b.record([32]byte{byte(i), byte(i >> 8), byte(i >> 16)}, true)
	}
	if len(b.known) > maxCircuits {
		t.Errorf("%d", len(b.known))
	}
}

// TestCanceledRequestIsNotAnOutage: a client that goes away is no outage of the vendor.
func TestCanceledRequestIsNotAnOutage(t *testing.T) {
	t.Parallel()
	p := *proofOf("aporia.validateProject")
	s := serve(t, &p)
	makers := Makers(Deps{Now: time.Now})
	for range tripsAt {
		ctx, cancel := context.WithCancel(context.Background())
		s.respond(func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		})
		sub := p.subject(s, "")
		if v := makers[p.id](sub.Parameters)(ctx, sub); v.Err == nil {
			t.Error(verdictText(v))
		}
		cancel()
	}
	s.respond(responding(200, p.passes[0]))
	sub := p.subject(s, "")
	if v := makers[p.id](sub.Parameters)(context.Background(), sub); !v.Pass {
		t.Error(verdictText(v))
	}
}

// TestClientHeadersAreForwarded, and never in the place of the vendor's own.
func TestClientHeadersAreForwarded(t *testing.T) {
	t.Parallel()
	p := *proofOf("aporia.validateProject")
	p.header = map[string]string{"X-Aporia-Api-Key": "the-key", "X-Team": "ads", "Traceparent": "*"}
	s := serve(t, &p)
	s.respond(responding(200, p.passes[0]))
	sub := p.subject(s, `{"forwardHeaders":["x-team","x-aporia-api-key","x-absent","traceparent"]}`)
	sub.Headers = http.Header{"X-Team": {"ads"}, "X-Aporia-Api-Key": {"the client's"}, "X-Other": {"o"}}
	if v := Makers(Deps{Now: time.Now})[p.id](sub.Parameters)(context.Background(), sub); !v.Pass {
		t.Error(verdictText(v), s.refused.Load())
	}
}

// FuzzAnswers gives responses of vendors to all wires: whatever they are, no wire panics,
// and one that passes has understood them.
func FuzzAnswers(f *testing.F) {
	for i := range proofs {
		p := &proofs[i]
		for _, one := range p.passes {
			f.Add(i, one)
		}
		for one := range p.fails {
			f.Add(i, one)
		}
		for one := range p.masks {
			f.Add(i, one)
		}
		for _, one := range p.wrong {
			f.Add(i, one)
		}
	}
	f.Fuzz(func(t *testing.T, which int, body string) {
		p := &proofs[((which%len(proofs))+len(proofs))%len(proofs)]
		transport := roundTrip(func(*http.Request) (*http.Response, error) {
			w := &http.Response{StatusCode: 200, Body: http.NoBody}
			if body != "" {
				w.Body = reader(body)
			}
			return w, nil
		})
		sub := p.subjectFor(&http.Client{Transport: transport}, `{"redact":true}`)
		for _, w := range wires {
			if w.id != p.id {
				continue
			}
			v := w.check(Deps{Now: time.Now, Signer: signer{}}, &breakers{now: time.Now, known: map[[32]byte]*circuit{}}, sub.Parameters).run(context.Background(), sub)
			if v.Err != nil && v.Pass {
				t.Errorf("%s: %s", body, verdictText(v))
			}
			if !json.Valid([]byte(body)) && v.Err == nil {
				t.Errorf("%q is understood: %s", body, verdictText(v))
			}
			if _, err := json.Marshal(v.Data); err != nil {
				t.Errorf("%q: %v", body, err)
			}
			if v.Texts != nil && len(v.Texts) != len(sub.Texts) {
				t.Errorf("%q: %d texts", body, len(v.Texts))
			}
		}
	})
}

// TestLongTextsAreSplit: nobody hides behind a text that is longer than the
// vendor takes.
func TestLongTextsAreSplit(t *testing.T) {
	t.Parallel()
	p := *proofOf("azure.contentSafety")
	p.texts = []string{strings.Repeat("é", 25_000) + "bad"}
	s := serve(t, &p)
	var calls atomic.Int64
	s.respond(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		responding(200, `{"categoriesAnalysis":[]}`)(w, r)
	})
	if v := p.run(s, ""); !v.Pass || calls.Load() != 3 {
		t.Errorf("%s, %d calls", verdictText(v), calls.Load())
	}
	var n atomic.Int64
	s.respond(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 3 {
			responding(200, `{"categoriesAnalysis":[{"category":"Hate","severity":6}]}`)(w, r)
			return
		}
		responding(200, `{"categoriesAnalysis":[]}`)(w, r)
	})
	if v := p.run(s, ""); v.Pass {
		t.Error(verdictText(v))
	}
}

// TestOutagesAreDistinguishedFromRejections: with an outage a hook that denies passes, but not with what the
// length, the number or the content of texts can cause.
func TestOutagesAreDistinguishedFromRejections(t *testing.T) {
	t.Parallel()
	p := *proofOf("azure.contentSafety")
	s := serve(t, &p)
	for _, c := range []struct {
		status int
		body   string
		closed bool
	}{
		{413, "", true}, {400, `{"error":{"code":"InvalidRequestBody"}}`, true}, {401, "", true}, {302, "", true}, {200, "", true}, {200, `{"error":"too long"}`, true}, {200, "[", true},
		{500, "", false}, {429, "", false}, {408, "", false},
	} {
		s.respond(responding(c.status, c.body))
		if v := p.run(s, ""); v.Pass || v.Err == nil || v.Err.FailsClosed() != c.closed {
			t.Errorf("%d %s: %s", c.status, c.body, verdictText(v))
		}
	}
	p.texts = []string{strings.Repeat("a", 25_000)}
	var n atomic.Int64
	s.respond(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 2 {
			responding(500, "")(w, r)
			return
		}
		responding(200, `{"categoriesAnalysis":[]}`)(w, r)
	})
	if v := p.run(s, ""); v.Pass || v.Err == nil || !v.Err.FailsClosed() {
		t.Errorf("an error of one part: %s", verdictText(v))
	}
}

func TestMasked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		spans []span
		want  string
	}{
		{"añb", nil, "añb"},
		{"añb", []span{{1, 2, "x"}}, "axb"},
		{"abcdef", []span{{3, 5, "y"}, {0, 2, "x"}}, "xcyf"},
		{"abcdef", []span{{0, 4, "x"}, {2, 6, "y"}}, "x"},
		{"abcdef", []span{{0, 6, "x"}, {2, 3, "y"}}, "x"},
		{"abc", []span{{-1, 2, "x"}, {2, 2, "x"}, {2, 1, "x"}, {2, 4, "x"}}, "abc"},
	} {
		if got := masked(c.text, c.spans); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.text, c.spans, got, c.want)
		}
	}
}

func TestScopesOfPrismaAIRS(t *testing.T) {
	t.Parallel()
	p := *proofOf("panw-prisma-airs.intercept")
	p.request = `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"one"},{"role":"assistant","content":"a"},{"role":"user","content":"<system-reminder>r</system-reminder>two"},{"role":"tool","content":"t"}]}`
	p.texts = []string{"t"}
	s := serve(t, &p)
	s.respond(responding(200, `{"action":"allow"}`))
	for scope, want := range map[string]string{
		`"last_message"`: "t", `"last_user_message","strip_scaffolding":true`: "two", `"last_user_message"`: "<system-reminder>r</system-reminder>two",
		`"user_messages","strip_scaffolding":true`: "one\ntwo", `"all_messages","strip_scaffolding":true`: "s\none\na\ntwo\nt",
	} {
		p.params = `{"scan_scope":` + scope + `}`
		if v := p.run(s, ""); !v.Pass {
			t.Fatal(verdictText(v))
		}
		var sent struct{ Contents []struct{ Prompt string } }
		if err := json.Unmarshal(s.sent.Load().([]byte), &sent); err != nil || len(sent.Contents) != 1 || sent.Contents[0].Prompt != want {
			t.Errorf("%s: %+v, want %q", scope, sent, want)
		}
	}
	if got := unwrapped("<user_info>only"); got != "<user_info>only" {
		t.Error(got)
	}
	if got := unwrapped("<user_info>only</user_info>"); got != "<user_info>only</user_info>" {
		t.Errorf("a text of nothing else is hidden: %q", got)
	}
}

// TestSearchResultsPrecedeTheMessages: what was found goes before the messages where nobody speaks
// for the system, and into no request of another type.
func TestSearchResultsPrecedeTheMessages(t *testing.T) {
	t.Parallel()
	const found = `{"results":[{"title":"T","url":"https://t.example","text":"b"}]}`
	const block = `\n<web_search_context>\n[1] \"T\"\nURL: https://t.example\nb\n\n</web_search_context>`
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":"q"}],"model":"m"}`: `{"messages":[{"role":"system","content":"` + block + `"},{"role":"user","content":"q"}],"model":"m"}`,
		`{"messages":[ ]}`: `{"messages":[{"role":"system","content":"` + block + `"} ]}`,
		`{"messages":[{"role":"system","content":[{"type":"text","text":"k"}]}]}`: `{"messages":[{"role":"system","content":[{"type":"text","text":"k` + block + `"}]}]}`,
		`{"messages":5}`: ``,
	} {
		p := *proofOf("exa.online")
		p.request = body
		s := serve(t, &p)
		s.respond(responding(200, found))
		if v := p.run(s, ""); !v.Pass || string(v.Body) != want {
			t.Errorf("%s\n%s\nnot\n%s", verdictText(v), v.Body, want)
		}
		p.kind = "messages"
		before := s.calls.Load()
		if v := p.run(s, ""); !v.Pass || v.Body != nil || s.calls.Load() != before {
			t.Errorf("%s", verdictText(v))
		}
	}
}

// TestCredentialsOfSecretManagers: they are fetched for saved guardrails, and for no
// config that a caller may have written.
func TestCredentialsOfSecretManagers(t *testing.T) {
	t.Parallel()
	p := *proofOf("azure.pii")
	p.creds, p.saved = `{"pii":{"resourceName":"res"}}`, true
	s := serve(t, &p)
	s.respond(responding(200, p.passes[0]))
	sub := p.subject(s, `{"secret_mappings":[{"target_field":"credentials.pii.apiKey","secret_reference_id":"vault"}]}`)
	var fail error
	sub.Secrets = func(_ context.Context, of []provider.SecretMapping) (map[string]string, error) {
		if len(of) != 1 || of[0].SecretReferenceID != "vault" {
			t.Errorf("%+v", of)
		}
		return map[string]string{"credentials.pii.apiKey": "the-key"}, fail
	}
	run := Makers(Deps{Now: time.Now})[p.id](sub.Parameters)
	if v := run(context.Background(), sub); !v.Pass || v.Err != nil {
		t.Error(verdictText(v), s.refused.Load())
	}
	fail = fault.New(fault.ServiceUnavailable, "secret_mappings", "The secret reference vault has no answer")
	if v := run(context.Background(), sub); v.Err == nil || !strings.Contains(v.Err.Message, "reference vault") || s.calls.Load() != 1 {
		t.Error(verdictText(v))
	}
	sub.Saved, fail = false, nil
	if v := run(context.Background(), sub); v.Err == nil || !strings.Contains(v.Err.Message, "saved guardrails") || s.calls.Load() != 1 {
		t.Error(verdictText(v))
	}
}
