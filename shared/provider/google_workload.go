package provider

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"gateway/shared/fault"
)

// googleWorkloadToken exchanges an identity of another cloud for an access token of Google.
// Google's token service exchanges the other side's token for a federated one. If a service
// account is named, that token is exchanged for one of the account.
func googleWorkloadToken(t *Target, ctx context.Context) (string, error) {
	signer, err := t.signer()
	if err != nil {
		return "", err
	}
	a, err := external(t)
	if err != nil {
		return "", err
	}
	var who *awsIdentity
	if a.Source.aws() {
		if who, err = ownAWSIdentity(t); err != nil {
			return "", err
		}
	}
	encoded, _ := json.Marshal(a)
	return signer.Get(ctx, TokenKey("google-workload", string(encoded), who.key(t)), func(ctx context.Context, rt http.RoundTripper) (string, time.Time, error) {
		subject, err := a.subject(ctx, rt, t, who, signer.Now())
		if err != nil {
			return "", time.Time{}, err
		}
		token, until, err := a.exchange(ctx, rt, subject, signer.Now())
		if err != nil || a.ImpersonationURL == "" {
			return token, until, err
		}
		return a.impersonate(ctx, rt, token, signer.Now())
	})
}

// awsIdentity is the target's identity at AWS, for a pool that trusts AWS.
type awsIdentity struct {
	region string
	role   bool    // the role aws_role_arn is assumed
	keys   awsKeys // without a role
}

// ownAWSIdentity decides which keys sign for the target: the credential's own keys, those of
// the role that it names, or the gateway's if they are lent.
func ownAWSIdentity(t *Target) (*awsIdentity, error) {
	who := &awsIdentity{region: os.Getenv("AWS_REGION"), role: t.Field("aws_role_arn") != ""}
	if !hostLabel(who.region, false) {
		who.region = "us-east-1"
	}
	var err error
	if t.Field("aws_access_key_id") != "" {
		who.keys, err = ownAWSKeys(t)
		return who, err
	}
	sources := who.role && os.Getenv(awsSourceID) != ""
	if t.CallerKey || os.Getenv(awsServiceRoleVariable) != "true" && !sources {
		return nil, fault.Newf(fault.InvalidRequest, "aws_access_key_id", "vertex_auth_type %s needs aws_access_key_id and aws_secret_access_key; saved providers may use the gateway's own AWS identity when the operator sets %s=true", googleWorkload, awsServiceRoleVariable)
	}
	if !who.role {
		if who.keys, err = processKeys(); err != nil {
			return nil, fault.New(fault.InvalidRequest, "aws_access_key_id", "The gateway's process has no AWS credentials in its environment; send aws_access_key_id and aws_secret_access_key")
		}
	}
	return who, nil
}

// key identifies a cached token by everything that it depends on.
func (who *awsIdentity) key(t *Target) string {
	if who == nil {
		return ""
	}
	return TokenKey("aws", who.region, who.keys.ID, who.keys.Secret, who.keys.Session, t.Field("aws_role_arn"), t.Field("aws_external_id"))
}

// subject gets the other side's token.
func (a *externalAccount) subject(ctx context.Context, rt http.RoundTripper, t *Target, who *awsIdentity, now time.Time) (string, error) {
	if who != nil {
		keys := who.keys
		if who.role {
			var err error
			if keys, err = assumedRole((t), ctx, who.region); err != nil {
				return "", err
			}
		}
		return awsSubject(ctx, keys, who.region, a.Audience, now)
	}
	var raw []byte
	at := a.field + ".credential_source"
	if a.Source.File != "" {
		var err error
		if raw, err = os.ReadFile(a.Source.File); err != nil {
			return "", fault.New(fault.ServiceUnavailable, at, "The token of the gateway's own Google identity cannot be read").WithCause(err)
		}
	} else {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.Source.URL, nil)
		if err != nil {
			return "", fault.Invalid(at+".url", "%s.url is not a URL", at)
		}
		for name, value := range a.Source.Headers {
			req.Header.Set(name, value)
		}
		host := req.URL.Hostname()
		status, body, err := tokenCall(rt, req, host)
		if err != nil {
			return "", err
		}
		if status != http.StatusOK {
			return "", tokenRejected(status, host, at, "")
		}
		raw = body
	}
	return a.Source.token(raw, at)
}

// token reads the token from the response of a source.
func (s *externalSource) token(raw []byte, at string) (string, error) {
	token := strings.TrimSpace(string(raw))
	if s.Format.Type == "json" {
		var v map[string]any
		token = ""
		if json.Unmarshal(raw, &v) == nil {
			token, _ = v[s.Format.Field].(string)
		}
	}
	if token == "" || len(token) > maxSubjectToken || !printable(token) {
		f := fault.New(fault.InvalidProviderResponse, at, "The identity provider returned a response without a token")
		f.Source = fault.SourceProvider
		return "", f
	}
	return token, nil
}

// callerHeader binds a signed request to the pool for which it is meant.
const callerHeader = "x-goog-cloud-target-resource"

// awsSubject is a signed request of GetCallerIdentity. Google sends it to AWS to learn who
// signed it. The gateway never sends it.
func awsSubject(ctx context.Context, keys awsKeys, region, audience string, now time.Time) (string, error) {
	address := "https://sts." + region + ".amazonaws.com?Action=GetCallerIdentity&Version=" + stsVersion
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		return "", fault.Invalid("vertex_auth_type", "the address of the token service is not a URL")
	}
	req.Header.Set(callerHeader, audience)
	empty := sha256.Sum256(nil)
	cred := aws.Credentials{AccessKeyID: keys.ID, SecretAccessKey: keys.Secret, SessionToken: keys.Session}
	if err := v4.NewSigner().SignHTTP(ctx, cred, req, hex.EncodeToString(empty[:]), "sts", region, now); err != nil {
		return "", fault.New(fault.InvalidRequest, "aws_access_key_id", "The request cannot be signed").WithCause(err)
	}
	type header struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	headers := []header{{"host", req.URL.Host}}
	for name := range req.Header {
		headers = append(headers, header{strings.ToLower(name), req.Header.Get(name)})
	}
	sort.Slice(headers, func(i, j int) bool { return headers[i].Key < headers[j].Key })
	text, err := json.Marshal(struct {
		URL     string   `json:"url"`
		Method  string   `json:"method"`
		Headers []header `json:"headers"`
	}{address, http.MethodPost, headers})
	return strings.ReplaceAll(url.QueryEscape(string(text)), "+", "%20"), err
}

// exchange exchanges the other side's token for a federated access token.
func (a *externalAccount) exchange(ctx context.Context, rt http.RoundTripper, subject string, now time.Time) (string, time.Time, error) {
	form := url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "requested_token_type": {tokenTypeAccess}, "audience": {a.Audience},
		"scope": {googleScope}, "subject_token_type": {a.SubjectType}, "subject_token": {subject},
	}
	if a.UserProject != "" {
		form.Set("options", `{"userProject":`+quoted(a.UserProject)+`}`)
	}
	token, life, err := oauthToken(ctx, rt, googleAt(googleSTSVariable, a.TokenURL, googleSTS, "/v1/token"), form, "Google", a.field)
	return token, now.Add(life), err
}

// impersonate exchanges a federated token for one of a service account.
func (a *externalAccount) impersonate(ctx context.Context, rt http.RoundTripper, token string, now time.Time) (string, time.Time, error) {
	at := a.field
	if at == accountField {
		at += ".service_account_impersonation_url"
	}
	body := []byte(`{"scope":["` + googleScope + `"],"lifetime":"` + a.lifetime() + `"}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, googleAt(googleIAMVariable, a.ImpersonationURL, "", ""), bytes.NewReader(body))
	if err != nil {
		return "", time.Time{}, fault.Invalid(at, "%s is not a URL", at)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	const who = "Google"
	status, answer, err := tokenCall(rt, req, who)
	if err != nil {
		return "", time.Time{}, err
	}
	var v struct {
		AccessToken string    `json:"accessToken"`
		ExpireTime  time.Time `json:"expireTime"`
		Error       struct {
			Status string `json:"status"`
		} `json:"error"`
	}
	bad := json.Unmarshal(answer, &v) != nil
	if status < 200 || status > 299 {
		return "", time.Time{}, tokenRejected(status, who, at, v.Error.Status)
	}
	if bad || v.AccessToken == "" || !printable(v.AccessToken) || !v.ExpireTime.After(now) {
		f := fault.New(fault.InvalidProviderResponse, "", "Google returned a response without an access token of the service account")
		f.Source = fault.SourceProvider
		return "", time.Time{}, f
	}
	return v.AccessToken, v.ExpireTime, nil
}
