package oauthclient

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gateway/shared/egress"
	"gateway/shared/mcp"
	"gateway/shared/mcp/tokenresponse"
	"gateway/shared/store"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
)

// Client authentication methods.
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
)

// Client is the gateway's registration at an authorization server.
type Client struct {
	ID      string `json:"id"`
	Secret  string `json:"secret,omitempty"`
	Method  string `json:"method"`
	Expires int64  `json:"expires,omitempty"` // Unix seconds; zero means never
}

// Configured returns the client that the integration configures, or nil.
func Configured(c *mcp.Configuration) *Client {
	if e := c.External; e != nil {
		return configured(e.ClientID, e.ClientSecret, "")
	}
	if o := c.OAuth; o != nil && o.ClientID != "" {
		return configured(o.ClientID, o.ClientSecret, o.TokenEndpointAuth)
	}
	return nil
}

func configured(id, secret, method string) *Client {
	switch {
	case secret == "":
		method = methodNone
	case method != methodPost:
		method = methodBasic
	}
	return &Client{ID: id, Secret: secret, Method: method}
}

// Endpoints are the gateway's addresses that authorization servers use.
type Endpoints struct {
	Callback string // redirect URI
	Document string // client metadata document
}

// ByDocument returns a client with the address of the gateway's metadata document as id, or
// nil if the authorization server does not support such ids or could not read the document.
func ByDocument(a *Authority, o Endpoints) *Client {
	if !a.Documents || !strings.HasPrefix(o.Document, "https://") {
		return nil
	}
	return &Client{ID: o.Document, Method: methodNone}
}

// Metadata returns the gateway's client metadata document.
func (o Endpoints) Metadata() map[string]any {
	return map[string]any{
		"client_id": o.Document, "client_name": "AI gateway", "redirect_uris": []string{o.Callback}, "grant_types": grants,
		"response_types": []string{"code"}, "token_endpoint_auth_method": methodNone, "software_id": softwareID,
	}
}

const softwareID = "ai.gateway.mcp"

var grants = []string{"authorization_code", "refresh_token"}

// registration is the client metadata of a dynamic registration (RFC 7591).
type registration struct {
	Name            string   `json:"client_name"`
	Redirects       []string `json:"redirect_uris"`
	Grants          []string `json:"grant_types"`
	Responses       []string `json:"response_types"`
	AuthMethod      string   `json:"token_endpoint_auth_method"`
	Application     string   `json:"application_type"` // OpenID Connect Registration: web or native
	Scope           string   `json:"scope,omitempty"`
	URI             string   `json:"client_uri,omitempty"`
	Logo            string   `json:"logo_uri,omitempty"`
	Contacts        []string `json:"contacts,omitempty"`
	Tos             string   `json:"tos_uri,omitempty"`
	Policy          string   `json:"policy_uri,omitempty"`
	SoftwareID      string   `json:"software_id,omitempty"`
	SoftwareVersion string   `json:"software_version,omitempty"`
}

// Register registers the gateway at an authorization server. of and server distinguish the
// registrations of workspaces.
func Register(ctx context.Context, via http.RoundTripper, a *Authority, c *mcp.Configuration, o Endpoints, of store.Scope, server string) (*Client, error) {
	if a.Registration == "" {
		return nil, upstream.Fail(0, "the authorization server does not register clients: set configurations.oauth_metadata.client_id to a client that is registered there")
	}
	m := c.OAuth
	if m == nil {
		m = new(mcp.OAuthMetadata)
	}
	request := &registration{
		Name: cmp.Or(m.ClientName, fmt.Sprintf("Gateway (%s/%s)", of.Workspace, server)), Redirects: []string{o.Callback}, Grants: grants, Responses: []string{"code"},
		AuthMethod: cmp.Or(m.TokenEndpointAuth, methodNone), Scope: m.Scope, URI: m.ClientURI, Logo: m.LogoURI, Contacts: m.Contacts, Tos: m.TosURI, Policy: m.PolicyURI,
		SoftwareID: cmp.Or(m.SoftwareID, softwareID), SoftwareVersion: m.SoftwareVersion,
	}
	if request.Application = "web"; !strings.HasPrefix(o.Callback, "https://") {
		request.Application = "native" // the redirect URI is on the user's machine
	}
	if len(m.GrantTypes) > 0 {
		request.Grants = m.GrantTypes
	}
	if m.TokenEndpointAuth == "" && len(a.AuthMethods) > 0 && !slices.Contains(a.AuthMethods, methodNone) {
		request.AuthMethod = methodBasic
		if !slices.Contains(a.AuthMethods, methodBasic) {
			request.AuthMethod = methodPost
		}
	}
	raw, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	var got struct {
		ID      string `json:"client_id"`
		Secret  string `json:"client_secret"`
		Method  string `json:"token_endpoint_auth_method"`
		Expires int64  `json:"client_secret_expires_at"`
	}
	status, _, raw, err := post(ctx, via, a.Registration, "application/json", string(raw), nil)
	if err != nil {
		return nil, err
	}
	if status/100 != 2 {
		var rejection struct {
			Code string `json:"error"`
		}
		if wire.CheckStrict(raw, maxDepth) != nil || json.Unmarshal(raw, &rejection) != nil || rejection.Code == "" || status >= 500 || status == http.StatusTooManyRequests {
			return nil, upstream.Fail(status, "the authorization server responded with status %d", status)
		}
		return nil, upstream.Fail(status, "the authorization server returned the error %s", shown(rejection.Code))
	}
	if wire.CheckStrict(raw, maxDepth) != nil || json.Unmarshal(raw, &got) != nil {
		return nil, upstream.Fail(status, "the authorization server's response to the registration cannot be read")
	}
	if got.ID == "" {
		return nil, upstream.Fail(http.StatusOK, "the authorization server's registration has no client_id")
	}
	method := cmp.Or(got.Method, request.AuthMethod)
	switch {
	case got.Secret == "" && method == methodNone:
	case got.Secret != "" && (method == methodBasic || method == methodPost):
	case method == methodNone && got.Method == "" && len(a.AuthMethods) == 0:
		method = methodBasic // the default of RFC 7591 and RFC 8414 for a client with a secret
	case method == methodNone:
		got.Secret = ""
	default:
		return nil, upstream.Fail(http.StatusOK, "the authorization server requires an unsupported token_endpoint_auth_method")
	}
	return &Client{ID: got.ID, Secret: got.Secret, Method: method, Expires: got.Expires}, nil
}

// Expired reports whether the client's secret is no longer valid.
func (c *Client) Expired(now time.Time) bool { return c.Expires != 0 && now.Unix() >= c.Expires-60 }

// Limits of responses from authorization servers.
const (
	maxDocument    = 64 << 10 // bytes
	maxDepth       = 16
	requestTimeout = 10 * time.Second
)

// document fetches a JSON object. ok is false if the address serves no readable JSON.
func document(ctx context.Context, via http.RoundTripper, address string, into any) (ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, upstream.Fail(0, "an address in the server's sign-in metadata is invalid")
	}
	req.Header.Set("Accept", "application/json")
	resp, err := via.RoundTrip(req)
	if err != nil {
		return false, upstream.Unreachable("the authorization server", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 4 || resp.StatusCode/100 == 3 {
		return false, nil
	}
	if resp.StatusCode != http.StatusOK {
		return false, upstream.Fail(resp.StatusCode, "the authorization server responded with status %d", resp.StatusCode)
	}
	raw, err := io.ReadAll(egress.CapBody(resp.Body, maxDocument))
	return err == nil && wire.CheckStrict(raw, maxDepth) == nil && json.Unmarshal(raw, into) == nil, nil
}

// post sends a body and returns the status, media type and body of the response.
func post(ctx context.Context, via http.RoundTripper, address, media, body string, by func(*http.Request)) (status int, as string, raw []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return 0, "", nil, upstream.Fail(0, "an address of the authorization server is invalid")
	}
	req.Header.Set("Content-Type", media)
	req.Header.Set("Accept", "application/json")
	if by != nil {
		by(req)
	}
	resp, err := via.RoundTrip(req)
	if err != nil {
		return 0, "", nil, upstream.Unreachable("the authorization server", err)
	}
	defer resp.Body.Close()
	if raw, err = io.ReadAll(egress.CapBody(resp.Body, maxDocument)); err != nil {
		return 0, "", nil, upstream.Fail(resp.StatusCode, "the authorization server's response with status %d cannot be read", resp.StatusCode)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), raw, nil
}

// requestToken posts a form to a token endpoint. If the endpoint rejected the request, only the
// error code of the response is set.
func requestToken(ctx context.Context, via http.RoundTripper, address string, form url.Values, by func(*http.Request)) (tokenresponse.Response, error) {
	status, media, raw, err := post(ctx, via, address, "application/x-www-form-urlencoded", form.Encode(), by)
	if err != nil {
		return tokenresponse.Response{}, err
	}
	got, err := tokenresponse.Read(media, raw)
	switch {
	case status >= 500 || status == http.StatusTooManyRequests || status/100 != 2 && got.Error == "":
		return tokenresponse.Response{}, upstream.Fail(status, "the authorization server responded with status %d", status)
	case got.Error != "":
		return got, upstream.Fail(status, "the authorization server returned the error %s", shown(got.Error))
	case err != nil:
		return tokenresponse.Response{}, upstream.Fail(status, "the authorization server returned no usable token")
	}
	return got, nil
}

// shown returns an OAuth error code that is safe to show.
func shown(code string) string {
	if len(code) > 64 || strings.ContainsFunc(code, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' }) {
		return "an error of its own"
	}
	return code
}

// authenticate adds the client authentication to a token request.
func (c *Client) authenticate(form url.Values) func(*http.Request) {
	switch c.Method {
	case methodBasic:
		return func(r *http.Request) { r.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret)) }
	case methodPost:
		form.Set("client_secret", c.Secret)
	}
	form.Set("client_id", c.ID)
	return nil
}
