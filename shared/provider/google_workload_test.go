package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"gateway/shared/egress"
	"gateway/shared/fault"
)

const (
	poolAWS  = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/aws"
	poolOIDC = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/oidc"
)

// googleCloud stands for Google's token service, its service for service accounts,
// AWS's token service and an identity provider.
type googleCloud struct {
	t        *testing.T
	at       *clock
	secret   map[string]string // of AWS, by key id
	requests []string          // hosts
	refuse   string            // host that rejects
	bad      string            // host that answers without a token
}

func (g *googleCloud) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Host
	g.requests = append(g.requests, host)
	body := ""
	if r.Body != nil {
		raw, _ := io.ReadAll(r.Body)
		body = string(raw)
	}
	answer := func(status int, text string) (*http.Response, error) {
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(text))}, nil
	}
	switch {
	case host == g.refuse && strings.HasPrefix(host, "iam"):
		return answer(403, `{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED"}}`)
	case host == g.refuse:
		return answer(400, `{"error":"invalid_grant","error_description":"The pool does not trust secret-of-the-test"}`)
	case host == g.bad:
		return answer(200, `{}`)
	}
	switch host {
	case "sts.googleapis.com":
		form, err := url.ParseQuery(body)
		want := map[string]string{"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "requested_token_type": tokenTypeAccess, "scope": googleScope}
		for name, value := range want {
			if form.Get(name) != value {
				g.t.Errorf("%s is %q", name, form.Get(name))
			}
		}
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/token" || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
			g.t.Errorf("%s %s %s", r.Method, r.URL, body)
		}
		switch form.Get("subject_token_type") {
		case tokenTypeAWS:
			g.checkSigned(form.Get("subject_token"), form.Get("audience"))
		default:
			if form.Get("subject_token") != "token.of.the-provider" || form.Get("audience") != poolOIDC {
				g.t.Errorf("form %v", form)
			}
		}
		return answer(200, `{"access_token":"federated","issued_token_type":"`+tokenTypeAccess+`","token_type":"Bearer","expires_in":3600}`)
	case "iamcredentials.googleapis.com":
		if r.Header.Get("Authorization") != "Bearer federated" || r.URL.Path != "/v1/projects/-/serviceAccounts/svc@proj.iam.gserviceaccount.com:generateAccessToken" ||
			!strings.Contains(body, `"scope":["`+googleScope+`"]`) || !strings.Contains(body, `"lifetime":"`) {
			g.t.Errorf("%s %v %s", r.URL, r.Header, body)
		}
		return answer(200, `{"accessToken":"impersonated","expireTime":"`+g.at.now().Add(time.Hour).Format(time.RFC3339)+`"}`)
	case "sts.us-east-1.amazonaws.com":
		if !strings.Contains(body, "Action=AssumeRole") {
			g.t.Errorf("to AWS: %s", body)
		}
		return answer(200, `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>role-secret</SecretAccessKey><SessionToken>role-session</SessionToken><Expiration>`+
			g.at.now().Add(time.Hour).Format(time.RFC3339)+`</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`)
	case "idp.example.com":
		if r.Method != http.MethodGet || r.Header.Get("X-Own") != "value" {
			g.t.Errorf("%s %v", r.Method, r.Header)
		}
		if r.URL.Path == "/text" {
			return answer(200, "token.of.the-provider\n")
		}
		return answer(200, `{"id_token":"token.of.the-provider"}`)
	}
	g.t.Errorf("asked %s", r.URL)
	return answer(500, "")
}

// checkSigned holds a subject token against what AWS would check: the signature of
// GetCallerIdentity, which covers the pool.
func (g *googleCloud) checkSigned(token, audience string) {
	g.t.Helper()
	text, err := url.QueryUnescape(token)
	var v struct {
		URL, Method string
		Headers     []struct{ Key, Value string }
	}
	if err != nil || json.Unmarshal([]byte(text), &v) != nil || strings.Contains(token, "+") {
		g.t.Fatalf("%v: %q", err, token)
	}
	headers := map[string]string{}
	for _, h := range v.Headers {
		headers[h.Key] = h.Value
	}
	if v.Method != http.MethodPost || v.URL != "https://sts.us-east-1.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15" || headers["host"] != "sts.us-east-1.amazonaws.com" ||
		headers[callerHeader] != audience || audience != poolAWS || !strings.Contains(headers["authorization"], callerHeader) {
		g.t.Fatalf("%s", text)
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(headers["authorization"], "AWS4-HMAC-SHA256 Credential="), "/")
	req, _ := http.NewRequest(v.Method, v.URL, nil)
	req.Header.Set(callerHeader, audience)
	at, err := time.Parse("20060102T150405Z", headers["x-amz-date"])
	if err != nil || !at.Equal(g.at.now()) {
		g.t.Errorf("signed at %q", headers["x-amz-date"])
	}
	empty := sha256.Sum256(nil)
	cred := aws.Credentials{AccessKeyID: id, SecretAccessKey: g.secret[id], SessionToken: headers["x-amz-security-token"]}
	if err := v4.NewSigner().SignHTTP(context.Background(), cred, req, hex.EncodeToString(empty[:]), "sts", "us-east-1", at); err != nil || req.Header.Get("Authorization") != headers["authorization"] {
		g.t.Errorf("the signature of %q is wrong: %v", id, err)
	}
}

func newGoogleCloud(t *testing.T) *googleCloud {
	for _, name := range []string{googleIdentityVariable, googleFileVariable, googleAudienceVariable, googleAccountVariable, googleSTSVariable, googleIAMVariable, awsServiceRoleVariable, awsSourceID, awsSourceRole, awsSTSVariable, "AWS_REGION", "AWS_ACCESS_KEY_ID"} {
		t.Setenv(name, "")
	}
	return &googleCloud{t: t, at: newClock(), secret: map[string]string{"AKIDOWN": "own-secret", "ASIAROLE": "role-secret", "ASIALAMBDA": "lambda-secret"}}
}

// externalJSON is a configuration file of a pool that trusts an identity provider;
// more are further fields.
func externalJSON(source, more string) string {
	return `{"type":"external_account","audience":"` + poolOIDC + `","subject_token_type":"urn:ietf:params:oauth:token-type:jwt","token_url":"https://sts.googleapis.com/v1/token","credential_source":` + source + more + `}`
}

const (
	sourceJSON  = `{"url":"https://idp.example.com/json","headers":{"X-Own":"value"},"format":{"type":"json","subject_token_field_name":"id_token"}}`
	sourceText  = `{"url":"https://idp.example.com/text","headers":{"X-Own":"value"}}`
	sourceAWS   = `{"environment_id":"aws1","region_url":"http://169.254.169.254/x","url":"http://169.254.169.254/y","regional_cred_verification_url":"https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15"}`
	impersonate = `,"service_account_impersonation_url":"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/svc@proj.iam.gserviceaccount.com:generateAccessToken"`
)

func TestIdentitiesOfOtherCloudsAreTradedForTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("token.of.the-provider\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	external := filepath.Join(t.TempDir(), "external.json")
	if err := os.WriteFile(external, []byte(externalJSON(`{"file":"`+file+`"}`, impersonate)), 0o600); err != nil {
		t.Fatal(err)
	}
	awsFile := strings.NewReplacer(poolOIDC, poolAWS, "urn:ietf:params:oauth:token-type:jwt", tokenTypeAWS).Replace(externalJSON(sourceAWS, impersonate))
	own := map[string]string{"aws_access_key_id": "AKIDOWN", "aws_secret_access_key": "own-secret"}
	lambda := map[string]string{awsServiceRoleVariable: "true", "AWS_ACCESS_KEY_ID": "ASIALAMBDA", "AWS_SECRET_ACCESS_KEY": "lambda-secret", "AWS_SESSION_TOKEN": "lambda-session"}
	with := func(fields map[string]string, pairs ...string) map[string]string {
		all := map[string]string{"vertex_auth_type": googleWorkload}
		for k, v := range fields {
			all[k] = v
		}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	for _, c := range []struct {
		name, token string
		fields, env map[string]string
		hosts       []string
	}{
		{"own AWS keys", "federated", with(own, audienceField, poolAWS), nil, []string{"sts.googleapis.com"}},
		{"own AWS keys, as a service account", "impersonated", with(own, audienceField, poolAWS, emailField, "svc@proj.iam.gserviceaccount.com"), nil, []string{"sts.googleapis.com", "iamcredentials.googleapis.com"}},
		{"an external account of AWS", "impersonated", with(own, accountField, awsFile), nil, []string{"sts.googleapis.com", "iamcredentials.googleapis.com"}},
		{"a role", "federated", with(own, audienceField, poolAWS, "aws_role_arn", "arn:aws:iam::123456789012:role/vertex"), nil, []string{"sts.us-east-1.amazonaws.com", "sts.googleapis.com"}},
		{"the role of the process", "federated", with(nil, audienceField, poolAWS), lambda, []string{"sts.googleapis.com"}},
		{"the operator's pool", "impersonated", with(nil), with(lambda, googleAudienceVariable, poolAWS, googleAccountVariable, "svc@proj.iam.gserviceaccount.com"), []string{"sts.googleapis.com", "iamcredentials.googleapis.com"}},
		{"an identity provider's JSON", "federated", with(nil, accountField, externalJSON(sourceJSON, "")), nil, []string{"idp.example.com", "sts.googleapis.com"}},
		{"an identity provider's text, as a service account", "impersonated", with(nil, accountField, externalJSON(sourceText, impersonate+`,"service_account_impersonation":{"token_lifetime_seconds":1200}`)), nil, []string{"idp.example.com", "sts.googleapis.com", "iamcredentials.googleapis.com"}},
		{"the operator's file", "impersonated", with(nil), map[string]string{googleIdentityVariable: "true", googleFileVariable: external}, []string{"sts.googleapis.com", "iamcredentials.googleapis.com"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cloud := newGoogleCloud(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			target := vertexTarget(t, NewTokens(cloud, cloud.at.now), c.fields)
			for range 2 { // the second comes from the cache
				if got, err := bearerOf(t, target); err != nil || got != "Bearer "+c.token {
					t.Fatalf("%q %v", got, err)
				}
			}
			if !slices.Equal(cloud.requests, c.hosts) {
				t.Errorf("asked %v, want %v", cloud.requests, c.hosts)
			}
			cloud.at.add(2 * time.Hour)
			if _, err := bearerOf(t, target); err != nil || len(cloud.requests) != 2*len(c.hosts) {
				t.Errorf("afterwards: %v, asked %v", err, cloud.requests)
			}
		})
	}
}

// TestIdentitiesAreNotShared: another key, role or pool has a token of its own.
func TestIdentitiesAreNotShared(t *testing.T) {
	cloud := newGoogleCloud(t)
	tokens := NewTokens(cloud, cloud.at.now)
	fields := map[string]string{"vertex_auth_type": googleWorkload, audienceField: poolAWS, "aws_access_key_id": "AKIDOWN", "aws_secret_access_key": "own-secret"}
	for i, change := range []string{"", "aws_session_token", emailField} {
		if change != "" {
			fields[change] = "svc@proj.iam.gserviceaccount.com"
		}
		before := len(cloud.requests)
		if _, err := bearerOf(t, vertexTarget(t, tokens, fields)); err != nil || len(cloud.requests) == before {
			t.Errorf("%d: %v, asked %v", i, err, cloud.requests)
		}
	}
}

func TestIdentitiesThatAreRefused(t *testing.T) {
	fields := func(pairs ...string) map[string]string {
		all := map[string]string{"vertex_auth_type": googleWorkload}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	own := func(pairs ...string) map[string]string {
		return fields(append(pairs, "aws_access_key_id", "AKIDOWN", "aws_secret_access_key", "own-secret")...)
	}
	account := func(text string) map[string]string { return fields(accountField, text) }
	const source = accountField + ".credential_source"
	for _, c := range []struct {
		name, field string
		fields, env map[string]string
		caller      bool
	}{
		{"nothing", audienceField, fields(), nil, false},
		{"no AWS keys", "aws_access_key_id", fields(audienceField, poolAWS), nil, false},
		{"the process is not lent", "aws_access_key_id", fields(audienceField, poolAWS), map[string]string{"AWS_ACCESS_KEY_ID": "ASIALAMBDA", "AWS_SECRET_ACCESS_KEY": "x"}, false},
		{"never to callers", "aws_access_key_id", fields(audienceField, poolAWS), map[string]string{awsServiceRoleVariable: "true", "AWS_ACCESS_KEY_ID": "ASIALAMBDA", "AWS_SECRET_ACCESS_KEY": "x"}, true},
		{"a role for callers", "aws_access_key_id", fields(audienceField, poolAWS, "aws_role_arn", "arn:aws:iam::123456789012:role/x"), map[string]string{awsSourceID: "AKIDOWN", awsSourceSecret: "own-secret"}, true},
		{"the operator's file is not lent", "vertex_auth_type", fields(), map[string]string{googleFileVariable: "/nowhere"}, false},
		{"the operator's file for callers", audienceField, fields(), map[string]string{googleFileVariable: "/nowhere", googleIdentityVariable: "true"}, true},
		{"half a key", "aws_secret_access_key", fields(audienceField, poolAWS, "aws_access_key_id", "AKIDOWN"), nil, false},
		{"not a role", "aws_role_arn", own(audienceField, poolAWS, "aws_role_arn", "role"), nil, false},
		{"not a pool", audienceField, own(audienceField, "https://example.com"), nil, false},
		{"a control character", audienceField, own(audienceField, poolAWS+"\n"), nil, false},
		{"not an email", emailField, own(audienceField, poolAWS, emailField, "a/../b:x"), nil, false},
		{"not JSON", accountField, account("{"), nil, false},
		{"members of other kinds", accountField, account(`{"type":1}`), nil, false},
		{"a key file", accountField + ".type", account(`{"type":"service_account"}`), nil, false},
		{"no audience", accountField + ".audience", account(strings.Replace(externalJSON(sourceJSON, ""), poolOIDC, "", 1)), nil, false},
		{"another token service", accountField + ".token_url", account(strings.Replace(externalJSON(sourceJSON, ""), "sts.googleapis.com/v1/token", "evil.example.com/v1/token", 1)), nil, false},
		{"a token service by http", accountField + ".token_url", account(strings.Replace(externalJSON(sourceJSON, ""), "https://sts", "http://sts", 1)), nil, false},
		{"a name that looks like it", accountField + ".token_url", account(strings.Replace(externalJSON(sourceJSON, ""), "sts.googleapis.com", "sts.googleapis.com.example.com", 1)), nil, false},
		{"another impersonation", accountField + ".service_account_impersonation_url", account(externalJSON(sourceJSON, strings.Replace(impersonate, "iamcredentials.googleapis.com", "evil.example.com", 1))), nil, false},
		{"a long life", accountField + ".service_account_impersonation.token_lifetime_seconds", account(externalJSON(sourceJSON, `,"service_account_impersonation":{"token_lifetime_seconds":99999}`)), nil, false},
		{"a client's secret", accountField + ".client_secret", account(externalJSON(sourceJSON, `,"client_secret":"secret-of-the-test"`)), nil, false},
		{"a file", source + ".file", account(externalJSON(`{"file":"/etc/passwd"}`, "")), nil, false},
		{"a program", source, account(externalJSON(`{"executable":{"command":"/bin/sh"}}`, "")), nil, false},
		{"a certificate", source, account(externalJSON(`{"certificate":{"use_default_certificate_config":true}}`, "")), nil, false},
		{"no source", source + ".url", account(externalJSON(`{}`, "")), nil, false},
		{"another scheme", source + ".url", account(externalJSON(`{"url":"file:///etc/passwd"}`, "")), nil, false},
		{"a header that is none", source + ".headers", account(externalJSON(`{"url":"https://idp.example.com/text","headers":{"a b":"c"}}`, "")), nil, false},
		{"a format", source + ".format", account(externalJSON(`{"url":"https://idp.example.com/text","format":{"type":"json"}}`, "")), nil, false},
		{"a kind of token", accountField + ".subject_token_type", account(strings.Replace(externalJSON(sourceJSON, ""), "token-type:jwt", "token-type:magic", 1)), nil, false},
		{"an environment", source + ".environment_id", account(strings.Replace(externalJSON(strings.Replace(sourceAWS, "aws1", "aws2", 1), ""), "urn:ietf:params:oauth:token-type:jwt", tokenTypeAWS, 1)), nil, false},
		{"AWS with another token", accountField + ".subject_token_type", account(externalJSON(sourceAWS, "")), nil, false},
		{"another verification", source + ".regional_cred_verification_url", account(strings.NewReplacer("sts.{region}", "evil.{region}", "urn:ietf:params:oauth:token-type:jwt", tokenTypeAWS).Replace(externalJSON(sourceAWS, ""))), nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cloud := newGoogleCloud(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			target := vertexTarget(t, NewTokens(cloud, cloud.at.now), c.fields)
			target.CallerKey = c.caller
			_, err := bearerOf(t, target)
			f := fault.From(err)
			if err == nil || f.Field != c.field || f.Status() != 400 || len(cloud.requests) != 0 {
				t.Errorf("got %v at %q, asked %v", err, f.Field, cloud.requests)
			}
			if err != nil && (strings.Contains(err.Error(), "secret") && strings.Contains(err.Error(), "of-the-test") || strings.Contains(err.Error(), "passwd")) {
				t.Errorf("tells too much: %v", err)
			}
		})
	}
}

// TestTradesThatFail keep the reason of the service and nothing else of its response.
func TestTradesThatFail(t *testing.T) {
	for _, c := range []struct {
		name, refuse, bad, message string
		code                       fault.Code
		status                     int
	}{
		{"the pool does not trust it", "sts.googleapis.com", "", "invalid_grant", fault.ProviderError, 401},
		{"the account may not be impersonated", "iamcredentials.googleapis.com", "", "PERMISSION_DENIED", fault.ProviderError, 401},
		{"the identity provider refuses", "idp.example.com", "", "idp.example.com", fault.ProviderError, 401},
		{"no federated token", "", "sts.googleapis.com", "without an access token", fault.InvalidProviderResponse, 502},
		{"no token of the account", "", "iamcredentials.googleapis.com", "service account", fault.InvalidProviderResponse, 502},
		{"no token of the provider", "", "idp.example.com", "without a token", fault.InvalidProviderResponse, 502},
	} {
		t.Run(c.name, func(t *testing.T) {
			cloud := newGoogleCloud(t)
			cloud.refuse, cloud.bad = c.refuse, c.bad
			target := vertexTarget(t, NewTokens(cloud, cloud.at.now), map[string]string{"vertex_auth_type": googleWorkload, accountField: externalJSON(sourceJSON, impersonate)})
			_, err := bearerOf(t, target)
			f := fault.From(err)
			if f == nil || f.Code != c.code || f.Status() != c.status || !strings.Contains(f.Error(), c.message) || strings.Contains(f.Error(), "secret-of-the-test") {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := bearerOf(t, vertexTarget(t, nil, map[string]string{"vertex_auth_type": googleWorkload, audienceField: poolAWS})); !fault.Is(err, fault.UnsupportedOperation) {
		t.Errorf("without a signer: %v", err)
	}
}

// TestTheSourceOfAnIdentityIsGuarded: a configuration file may name an address, but
// not one that the egress policy closes.
func TestTheSourceOfAnIdentityIsGuarded(t *testing.T) {
	newGoogleCloud(t) // clears the environment
	tokens := NewTokens(egress.NewTransport(egress.Policy{}), time.Now)
	for _, address := range []string{"http://127.0.0.1:9/x", "http://169.254.169.254/latest/meta-data/iam", "https://[::1]/x", "http://metadata.google.internal/computeMetadata"} {
		_, err := bearerOf(t, vertexTarget(t, tokens, map[string]string{"vertex_auth_type": googleWorkload, accountField: externalJSON(`{"url":"`+address+`"}`, "")}))
		if err == nil || strings.Contains(address, "1") && !fault.Is(err, fault.BlockedHost) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func FuzzExternalAccount(f *testing.F) {
	f.Add(externalJSON(sourceJSON, impersonate))
	f.Add(externalJSON(sourceAWS, ""))
	f.Add(`{"type":"external_account","credential_source":{"file":"x"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseExternal(text, accountField, false)
		if err != nil {
			if fault.From(err).Status() != 400 {
				t.Fatalf("%v", err)
			}
			return
		}
		if a.Source.File != "" && !a.Source.aws() || a.TokenURL != "" && !strings.Contains(a.TokenURL, ".googleapis.com") {
			t.Fatalf("%+v", a)
		}
	})
}
