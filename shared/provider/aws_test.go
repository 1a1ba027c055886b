package provider

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// signature computes the SigV4 signature of req again, from the documentation.
func signature(t *testing.T, req *http.Request, body []byte, secret, service string) string {
	t.Helper()
	auth := req.Header.Get("Authorization")
	scope := strings.SplitN(between(auth, "Credential=", ","), "/", 2)[1]
	signed := strings.Split(between(auth, "SignedHeaders=", ","), ";")
	path, query, _ := strings.Cut(req.URL.RequestURI(), "?")
	if service != "s3" {
		segments := strings.Split(path, "/")
		for i, s := range segments {
			segments[i] = strings.ReplaceAll(url.PathEscape(s), ":", "%3A")
		}
		path = strings.Join(segments, "/")
	}
	var params []string
	if query != "" {
		params = strings.Split(query, "&")
		sort.Strings(params)
	}
	var headers strings.Builder
	for _, name := range signed {
		value := req.Header.Get(name)
		switch name {
		case "host":
			value = req.URL.Host
		case "content-length":
			value = fmt.Sprint(req.ContentLength)
		}
		headers.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	sum := func(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
	canonical := strings.Join([]string{req.Method, path, strings.Join(params, "&"), headers.String(), strings.Join(signed, ";"), sum(body)}, "\n")
	toSign := strings.Join([]string{"AWS4-HMAC-SHA256", req.Header.Get("X-Amz-Date"), scope, sum([]byte(canonical))}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range append(strings.Split(scope, "/"), toSign) {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	return hex.EncodeToString(key)
}

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// stoppedClock stands still and fetches by transport.
func stoppedClock(transport http.RoundTripper) *Tokens {
	return NewTokens(transport, func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) })
}

type answerFunc func(*http.Request) (*http.Response, error)

func (f answerFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var ownKeys = map[string]string{"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "secret", "aws_region": "eu-west-1"}

func with(base map[string]string, pairs ...string) map[string]string {
	m := map[string]string{}
	for k, v := range base {
		m[k] = v
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

func request(t *testing.T, method, rawURL string, body []byte) *http.Request {
	t.Helper()
	u, err := ExactURL(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Request{Method: method, URL: u, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(body)), Body: http.NoBody}
}

func TestRequestsToAWSAreSignedAsTheyAreSent(t *testing.T) {
	for _, c := range []struct{ name, provider, service, method, url, body string }{
		{"model id", "bedrock", "bedrock", "POST", "https://bedrock-runtime.eu-west-1.amazonaws.com/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse", `{"messages":[]}`},
		{"ARN with slashes", "bedrock", "bedrock", "POST", "https://bedrock-runtime.eu-west-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Aapplication-inference-profile%2Fabc/converse-stream", `{}`},
		{"query", "bedrock", "bedrock", "GET", "https://bedrock.eu-west-1.amazonaws.com/model-invocation-jobs?maxResults=10&a=b", ""},
		{"port and path of a custom host", "bedrock", "bedrock", "POST", "http://127.0.0.1:8080/x/model/m/invoke", "\x00\xff"},
		{"sagemaker", "sagemaker", "sagemaker", "POST", "https://runtime.sagemaker.eu-west-1.amazonaws.com/endpoints/e/invocations", "a,b"},
		{"mantle", "bedrock-mantle", "bedrock-mantle", "POST", "https://bedrock-mantle.eu-west-1.api.aws/v1/chat/completions", "{}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := []byte(c.body)
			req := request(t, c.method, c.url, body)
			req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=CLIENT/20200101/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=00")
			req.Header.Set("X-Amz-Date", "20200101T000000Z")
			req.Header.Set("X-Amz-Security-Token", "the-client's")
			req.Header.Set("X-Amz-Content-Sha256", "0")
			req.Header.Set("X-Amzn-Bedrock-Guardrailidentifier", "g")
			target := Target{Provider: row(t, c.provider), Credential: Credential{Fields: with(ownKeys, "aws_session_token", "session")}, Signer: stoppedClock(nil)}
			if err := target.Authorize(context.Background(), req, body); err != nil {
				t.Fatal(err)
			}
			auth := req.Header.Get("Authorization")
			if !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260301/eu-west-1/"+c.service+"/aws4_request, ") {
				t.Fatal(auth)
			}
			for _, name := range []string{"host", "content-type", "x-amz-date", "x-amz-security-token", "x-amzn-bedrock-guardrailidentifier"} {
				if !strings.Contains(between(auth, "SignedHeaders=", ",")+";", name+";") {
					t.Errorf("%s is not signed: %s", name, auth)
				}
			}
			if req.Header.Get("X-Amz-Security-Token") != "session" || req.Header.Get("X-Amz-Content-Sha256") != "" {
				t.Errorf("the client's own signature stayed: %v", req.Header)
			}
			if got, want := between(auth, "Signature=", ","), signature(t, req, body, "secret", c.service); got != want {
				t.Errorf("signature %s, want %s", got, want)
			}
			if req.URL.RequestURI() != strings.TrimPrefix(c.url, "https://"+req.URL.Host) && !strings.HasSuffix(c.url, req.URL.RequestURI()) {
				t.Errorf("the address became %s", req.URL.RequestURI())
			}
		})
	}
}

// TestASecretOfAnotherIsNotRemembered: a caller who knows somebody's access key id but not
// the secret gets no valid signature.
func TestASecretOfAnotherIsNotRemembered(t *testing.T) {
	signed := func(secret string) string {
		req := request(t, "POST", "https://h.example.com/model/m/converse", []byte("{}"))
		target := Target{Provider: row(t, "bedrock"), Credential: Credential{Fields: with(ownKeys, "aws_secret_access_key", secret)}, Signer: stoppedClock(nil)}
		if err := target.Authorize(context.Background(), req, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		return between(req.Header.Get("Authorization"), "Signature=", ",")
	}
	if signed("secret") == signed("guess") {
		t.Error("a wrong secret signs as the right one")
	}
}

func TestObjectsOfS3AreSignedWithTheirHash(t *testing.T) {
	req := request(t, "PUT", "https://b.s3.eu-west-1.amazonaws.com/a%2Fb/c?partNumber=1&uploadId=x", []byte("data"))
	target := Target{Provider: row(t, "bedrock"), Credential: Credential{Fields: with(ownKeys, "aws_service", "s3")}, Signer: stoppedClock(nil)}
	if err := target.Authorize(context.Background(), req, []byte("data")); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("data"))
	if req.Header.Get("X-Amz-Content-Sha256") != hex.EncodeToString(sum[:]) {
		t.Error(req.Header)
	}
	auth := req.Header.Get("Authorization")
	if got, want := between(auth, "Signature=", ","), signature(t, req, []byte("data"), "secret", "s3"); got != want || !strings.Contains(auth, "/s3/aws4_request") {
		t.Errorf("%s, want %s", auth, want)
	}
}

func TestAStreamedBodyIsReadToBeSigned(t *testing.T) {
	target := Target{Provider: row(t, "sagemaker"), Credential: Credential{Fields: ownKeys}, Signer: stoppedClock(nil)}
	req := request(t, "POST", "https://h.example.com/endpoints/e/invocations", nil)
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader("streamed")), -1
	if err := target.Authorize(context.Background(), req, nil); err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil || string(body) != "streamed" || req.ContentLength != 8 {
		t.Errorf("%q %d %v", body, req.ContentLength, err)
	}
	if got := between(req.Header.Get("Authorization"), "Signature=", ","); got != signature(t, req, body, "secret", "sagemaker") {
		t.Error("the signature is not that of the body")
	}
	for _, length := range []int64{-1, maxSignedBody + 1} {
		req = request(t, "POST", "https://h.example.com/x", nil)
		req.Body, req.ContentLength = io.NopCloser(io.LimitReader(zeros{}, maxSignedBody+1)), length
		if err := target.Authorize(context.Background(), req, nil); fault.From(err).Status() != 413 {
			t.Errorf("length %d: %v", length, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

const stsGood = `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>role-secret</SecretAccessKey><SessionToken>role-session</SessionToken><Expiration>2026-03-01T13:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`

func TestRolesAreAssumedOnceAndCached(t *testing.T) {
	var calls atomic.Int32
	var form url.Values
	sts := answerFunc(func(r *http.Request) (*http.Response, error) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		form, _ = url.ParseQuery(string(body))
		if r.URL.Host != "sts.eu-west-1.amazonaws.com" || !strings.Contains(r.Header.Get("Authorization"), "AKIDEXAMPLE/20260301/eu-west-1/sts/") {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		r.ContentLength = int64(len(body))
		if got := between(r.Header.Get("Authorization"), "Signature=", ","); got != signature(t, r, body, "secret", "sts") {
			t.Error("the call to the token service is signed wrongly")
		}
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(stsGood))}, nil
	})
	target := Target{
		Provider: row(t, "bedrock"), Signer: stoppedClock(sts),
		Credential: Credential{Fields: with(ownKeys, "aws_auth_type", "assumedRole", "aws_role_arn", "arn:aws:iam::123456789012:role/models", "aws_external_id", "ext")},
	}
	for range 3 {
		req := request(t, "POST", "https://h.example.com/model/m/converse", []byte("{}"))
		if err := target.Authorize(context.Background(), req, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if req.Header.Get("X-Amz-Security-Token") != "role-session" || between(req.Header.Get("Authorization"), "Signature=", ",") != signature(t, req, []byte("{}"), "role-secret", "bedrock") {
			t.Errorf("%v", req.Header)
		}
	}
	if calls.Load() != 1 {
		t.Errorf("%d calls", calls.Load())
	}
	if form.Get("RoleArn") != "arn:aws:iam::123456789012:role/models" || form.Get("ExternalId") != "ext" || form.Get("Action") != "AssumeRole" {
		t.Errorf("%v", form)
	}
	target.Credential.Fields["aws_external_id"] = "another"
	if err := target.Authorize(context.Background(), request(t, "POST", "https://h.example.com/x", nil), nil); err != nil || calls.Load() != 2 {
		t.Errorf("another external id shares the session: %v, %d calls", err, calls.Load())
	}
}

func TestTheOperatorsSourceRoleIsAssumedFirst(t *testing.T) {
	t.Setenv(awsSourceID, "AKIDSOURCE")
	t.Setenv(awsSourceSecret, "s")
	t.Setenv(awsSourceRole, "arn:aws:iam::1:role/source")
	t.Setenv(awsSTSVariable, "http://127.0.0.1:1/sts")
	var roles []string
	sts := answerFunc(func(r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(body))
		roles = append(roles, form.Get("RoleArn")+" by "+between(r.Header.Get("Authorization"), "Credential=", "/")+" at "+r.URL.String())
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(stsGood))}, nil
	})
	target := Target{Provider: row(t, "bedrock"), Signer: stoppedClock(sts), Credential: Credential{Fields: map[string]string{"aws_auth_type": "assumedRole", "aws_role_arn": "arn:aws:iam::2:role/theirs"}}}
	if err := target.Authorize(context.Background(), request(t, "POST", "https://h.example.com/x", nil), nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(roles, "; "); got != "arn:aws:iam::1:role/source by AKIDSOURCE at http://127.0.0.1:1/sts/; arn:aws:iam::2:role/theirs by ASIAROLE at http://127.0.0.1:1/sts/" {
		t.Error(got)
	}
}

func TestAWSCredentialsThatAreRefused(t *testing.T) {
	for _, name := range []string{awsSourceID, awsSourceSecret, awsServiceRoleVariable} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDPROCESS")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "process-secret")
	role := map[string]string{"aws_auth_type": "assumedRole", "aws_role_arn": "arn:aws:iam::1:role/x"}
	refusing := func(status int, body string) http.RoundTripper {
		return answerFunc(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body))}, nil
		})
	}
	for _, c := range []struct {
		name    string
		fields  map[string]string
		caller  bool
		allowed bool
		rt      http.RoundTripper
		status  int
		field   string
	}{
		{"no keys", nil, false, false, nil, 400, "aws_access_key_id"},
		{"no secret", map[string]string{"aws_access_key_id": "A"}, false, false, nil, 400, "aws_secret_access_key"},
		{"key with a line end", map[string]string{"aws_access_key_id": "A\nB", "aws_secret_access_key": "s"}, false, false, nil, 400, "aws_access_key_id"},
		{"token with a line end", with(ownKeys, "aws_session_token", "a\r\nb"), false, false, nil, 400, "aws_session_token"},
		{"region that is none", with(ownKeys, "aws_region", "us/east"), false, false, nil, 400, "aws_region"},
		{"unknown type", map[string]string{"aws_auth_type": "magic"}, false, false, nil, 400, "aws_auth_type"},
		{"no role", map[string]string{"aws_auth_type": "assumedRole"}, false, false, nil, 400, "aws_role_arn"},
		{"no ARN of a role", map[string]string{"aws_auth_type": "assumedRole", "aws_role_arn": "arn:aws:iam::1:user/x"}, false, false, nil, 400, "aws_role_arn"},
		{"service role is not lent", map[string]string{"aws_auth_type": "serviceRole"}, false, false, nil, 400, "aws_auth_type"},
		{"service role is never lent to a caller", map[string]string{"aws_auth_type": "serviceRole"}, true, true, nil, 400, "aws_auth_type"},
		{"a caller's role is not assumed for him", role, true, true, nil, 400, "aws_auth_type"},
		{"a role is not assumed by the process", role, false, false, nil, 400, "aws_auth_type"},
		{"the token service refuses", role, false, true, refusing(403, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>secret words</Message></Error></ErrorResponse>`), 401, "aws_role_arn"},
		{"the token service is down", role, false, true, refusing(503, "no"), 503, "aws_role_arn"},
		{"the token service gives nonsense", role, false, true, refusing(200, "<a>"), 502, ""},
		{"the token service cannot be reached", role, false, true, answerFunc(func(*http.Request) (*http.Response, error) { return nil, errors.New("no route") }), 503, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.allowed {
				t.Setenv(awsServiceRoleVariable, "true")
			}
			target := Target{Provider: row(t, "bedrock"), Credential: Credential{Fields: c.fields}, CallerKey: c.caller, Signer: stoppedClock(c.rt)}
			req := request(t, "POST", "https://h.example.com/x", nil)
			req.Header.Set("Authorization", "Bearer caller")
			f := fault.From(target.Authorize(context.Background(), req, nil))
			if f == nil || f.Status() != c.status || f.Field != c.field || strings.Contains(f.Message, "secret words") {
				t.Errorf("%+v", f)
			}
			if req.Header.Get("Authorization") != "" {
				t.Error("the caller's key stayed on the request")
			}
		})
	}
	t.Setenv(awsServiceRoleVariable, "true")
	target := Target{Provider: row(t, "bedrock"), Credential: Credential{Fields: map[string]string{"aws_auth_type": "serviceRole"}}, Signer: stoppedClock(nil)}
	req := request(t, "POST", "https://h.example.com/x", nil)
	if err := target.Authorize(context.Background(), req, nil); err != nil || !strings.Contains(req.Header.Get("Authorization"), "AKIDPROCESS") {
		t.Errorf("%v %v", err, req.Header)
	}
}

func TestFamiliesOfBedrockModels(t *testing.T) {
	for model, want := range map[string]string{
		"anthropic.claude-sonnet-4-5-20250929-v1:0": "anthropic", "us.anthropic.claude-opus-4-1-20250805-v1:0": "anthropic",
		"us-gov.anthropic.claude-3-haiku-20240307-v1:0": "anthropic", "global.amazon.nova-2-lite-v1:0": "amazon", "jp.amazon.nova-pro-v1:0": "amazon",
		"apac.meta.llama3-1-8b-instruct-v1:0": "meta", "au.x.y": "x", "ca.x.y": "x", "eu.mistral.pixtral-large-2502-v1:0": "mistral",
		"arn:aws:bedrock:us-east-1::foundation-model/cohere.command-r-v1:0": "cohere",
		"arn:aws:bedrock:us-east-1:1:inference-profile/us.deepseek.r1-v1:0": "deepseek",
		"arn:aws:bedrock:us-east-1:1:application-inference-profile/abcdef":  "",
		"arn:aws:bedrock:us-east-1:1:provisioned-model/abc":                 "", "mymodel": "", "": "",
	} {
		if got := row(t, "bedrock").Traits(model).Family; got != want {
			t.Errorf("%q: %q, want %q", model, got, want)
		}
	}
	for _, c := range []struct {
		model  string
		schema chat.SchemaSupport
		thinks chat.ThinkingStyle
		cache  bool
		long   bool
	}{
		{"anthropic.claude-sonnet-4-5-20250929-v1:0", chat.SchemaNative, chat.ThinksByBudget, true, true},
		{"anthropic.claude-3-7-sonnet-20250219-v1:0", chat.SchemaByTool, chat.ThinksByBudget, true, false},
		{"us.anthropic.claude-opus-4-6-v1", chat.SchemaNative, chat.ThinksEither, true, true},
		{"amazon.nova-pro-v1:0", chat.SchemaByTool, chat.ThinksNever, true, false},
		{"us.amazon.nova-2-lite-v1:0", chat.SchemaByTool, chat.ThinksAdaptively, true, false},
		{"openai.gpt-oss-120b-1:0", chat.SchemaNative, chat.ThinksAdaptively, false, false},
		{"meta.llama3-70b-instruct-v1:0", chat.SchemaNone, chat.ThinksNever, false, false},
		{"qwen.qwen3-32b-v1:0", chat.SchemaNative, chat.ThinksNever, false, false},
	} {
		tr := row(t, "bedrock").Traits(c.model)
		if tr.Schema != c.schema || tr.Thinking != c.thinks || tr.NoCacheControl == c.cache || tr.NoLongCache == c.long {
			t.Errorf("%s: %+v", c.model, tr)
		}
	}
}

func TestTheModelOfAProfileIsFetchedOnce(t *testing.T) {
	const profile = "arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc"
	status, calls := 200, 0
	rt := answerFunc(func(r *http.Request) (*http.Response, error) {
		calls++
		if r.URL.String() != "https://bedrock.eu-west-1.amazonaws.com/inference-profiles/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Aapplication-inference-profile%2Fabc" && !strings.HasSuffix(r.URL.RequestURI(), "%2Fabc") {
			t.Error(r.URL)
		}
		if between(r.Header.Get("Authorization"), "Signature=", ",") != signature(t, r, nil, "secret", "bedrock") {
			t.Error("the question is signed wrongly")
		}
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(`{"models":[{"modelArn":"arn:aws:bedrock:eu-west-1::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0"}]}`))}, nil
	})
	target := Target{Provider: row(t, "bedrock"), Credential: Credential{Fields: with(ownKeys, "anthropic_beta", "a, b")}, Signer: stoppedClock(rt)}
	for range 2 {
		if tr := target.TraitsFor(context.Background(), profile); tr.Family != "anthropic" || tr.Schema != chat.SchemaNative || strings.Join(tr.Betas, "|") != "a|b" {
			t.Errorf("%+v", tr)
		}
	}
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
	status, calls = 403, 0
	target.Signer = stoppedClock(rt)
	for range 2 {
		if tr := target.TraitsFor(context.Background(), profile); tr.Family != "" {
			t.Errorf("%+v", tr)
		}
	}
	if calls != 1 {
		t.Errorf("a refusal was asked for %d times", calls)
	}
	if tr := target.TraitsFor(context.Background(), "amazon.nova-pro-v1:0"); tr.Family != "amazon" || calls != 1 {
		t.Errorf("%+v %d", tr, calls)
	}
}

func TestThePathNamesTheModel(t *testing.T) {
	for path, want := range map[string]string{
		"/model/anthropic.claude-3-haiku-20240307-v1%3A0/invoke": "anthropic.claude-3-haiku-20240307-v1:0", "model/m/converse": "m", "//model/m": "m",
		"/model/arn%3Aaws%3Abedrock%3A%3A%3Ax%2Fy/converse": "arn:aws:bedrock:::x/y", "/model/%zz/converse": "%zz", "/models/m": "", "/": "", "": "",
	} {
		if got := row(t, "bedrock").PathModel(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	if got := row(t, "openai").PathModel("/model/m/x"); got != "" {
		t.Error(got)
	}
}
