package mockprovider

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// federationShape serves Google's token service for identities of other clouds
// below /google-sts, its service for credentials of service accounts below
// /google-iam, and an identity provider at /google-idp/token.
var federationShape = &shape{name: "federation", match: federationMatch, reject: federationReject}

// FederatedPool is a provider of a pool that trusts AWS; a provider with a name ending in /oidc
// trusts the identity provider.
const FederatedPool = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/mock/providers/aws"

const (
	federatedToken = "ya29.mock-federated"
	providerToken  = "mock.provider.token"
)

func federationMatch(x *exchange) func(*exchange) *apiError {
	switch {
	case x.path == "/google-sts/v1/token":
		return exchangeToken
	case strings.HasPrefix(x.path, "/google-iam/v1/projects/-/serviceAccounts/") && strings.HasSuffix(x.path, ":generateAccessToken"):
		return impersonateAccount
	case x.path == "/google-idp/token":
		return func(x *exchange) *apiError { return listed(x, []byte(`{"value":"`+providerToken+`"}`)) }
	}
	return nil
}

func federationReject(x *exchange, e *apiError) {
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(e.status)
	var body any = map[string]any{"error": e.typ, "error_description": e.message}
	if strings.HasPrefix(x.path, "/google-iam/") {
		body = map[string]any{"error": map[string]any{"code": e.status, "message": e.message, "status": e.typ}}
	}
	_ = json.NewEncoder(x.w).Encode(body)
}

func noGrant(message string) *apiError {
	return &apiError{status: http.StatusBadRequest, typ: "invalid_grant", message: message}
}

// exchangeToken exchanges a token of a trusted identity for an access token.
func exchangeToken(x *exchange) *apiError {
	form, err := url.ParseQuery(string(x.body))
	if err != nil || x.r.Method != http.MethodPost || form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange" ||
		form.Get("requested_token_type") != "urn:ietf:params:oauth:token-type:access_token" || form.Get("scope") != "https://www.googleapis.com/auth/cloud-platform" {
		return &apiError{status: http.StatusBadRequest, typ: "invalid_request", message: "not a token exchange"}
	}
	pool := form.Get("audience")
	switch form.Get("subject_token_type") {
	case "urn:ietf:params:aws:token-type:aws4_request":
		if pool != FederatedPool {
			return noGrant("The target service indicated by the audience is invalid.")
		}
		if e := callerIdentity(x, form.Get("subject_token"), pool); e != nil {
			return e
		}
	case "urn:ietf:params:oauth:token-type:jwt":
		if pool != strings.TrimSuffix(FederatedPool, "aws")+"oidc" || form.Get("subject_token") != providerToken {
			return noGrant("The given credential is rejected by the attribute condition.")
		}
	default:
		return &apiError{status: http.StatusBadRequest, typ: "invalid_request", message: "subject_token_type is not supported"}
	}
	return listed(x, []byte(`{"access_token":"`+federatedToken+`","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":3599}`))
}

// callerIdentity checks a signed GetCallerIdentity as AWS does when Google sends it.
func callerIdentity(x *exchange, token, pool string) *apiError {
	text, err := url.QueryUnescape(token)
	v, bad := parseJSON(text)
	if err != nil || bad != nil {
		return noGrant("Unable to parse the AWS request.")
	}
	u, err := url.Parse(v.get("url").s)
	if err != nil || u.Scheme != "https" || !strings.HasPrefix(u.Host, "sts.") || !strings.HasSuffix(u.Host, ".amazonaws.com") || u.RawQuery != "Action=GetCallerIdentity&Version=2011-06-15" {
		return noGrant("The AWS request is not GetCallerIdentity.")
	}
	r := &http.Request{Method: v.get("method").s, Host: u.Host, Header: http.Header{}}
	for _, h := range v.get("headers").arr {
		r.Header.Set(h.get("key").s, h.get("value").s)
	}
	if signed := r.Header.Get("Authorization"); r.Header.Get("X-Goog-Cloud-Target-Resource") != pool || !strings.Contains(signed, "x-goog-cloud-target-resource") {
		return noGrant("The AWS request is not for this pool.")
	}
	// The signature is checked as if the request had come here.
	signed := &exchange{s: x.s, r: r, path: "/", query: u.RawQuery}
	if e := awsAuthenticate(signed); e != nil {
		return noGrant("AWS: " + e.message)
	}
	return nil
}

// impersonateAccount issues a token of a service account; an account with a name beginning with
// denied trusts no caller.
func impersonateAccount(x *exchange) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if x.r.Header.Get("Authorization") != "Bearer "+federatedToken {
		return &apiError{status: http.StatusUnauthorized, typ: "UNAUTHENTICATED", message: "Request had invalid authentication credentials."}
	}
	name := x.path[strings.LastIndexByte(x.path, '/')+1:]
	if strings.HasPrefix(name, "denied") {
		return &apiError{status: http.StatusForbidden, typ: "PERMISSION_DENIED", message: "Permission 'iam.serviceAccounts.getAccessToken' denied"}
	}
	if len(v.get("scope").arr) == 0 || !strings.HasSuffix(v.get("lifetime").s, "s") {
		return &apiError{status: http.StatusBadRequest, typ: "INVALID_ARGUMENT", message: "scope and lifetime are needed"}
	}
	return listed(x, []byte(`{"accessToken":"`+VertexToken+`","expireTime":"`+x.s.opts.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"}`))
}
