package oauthclient

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"gateway/shared/mcp"
	"gateway/shared/store"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
)

// Ways in which the gateway shows who it is.
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
)

// Client is how an authorization server knows the gateway.
type Client struct {
	ID      string `json:"id"`
	Secret  string `json:"secret,omitempty"`
	Method  string `json:"method"`
	Expires int64  `json:"expires,omitempty"` // Unix seconds; 0: never
}

// Given is the client that the integration names; nil: it names none.
func Given(c *mcp.Configuration) *Client {
	if e := c.External; e != nil {
		return given(e.ClientID, e.ClientSecret, "")
	}
	if o := c.OAuth; o != nil && o.ClientID != "" {
		return given(o.ClientID, o.ClientSecret, o.TokenEndpointAuth)
	}
	return nil
}

func given(id, secret, method string) *Client {
	switch {
	case secret == "":
		method = methodNone
	case method != methodPost:
		method = methodBasic
	}
	return &Client{ID: id, Secret: secret, Method: method}
}

// Ours are the gateway's own addresses that authorization servers hear of.
type Ours struct {
	Callback string // where browsers come back to
	Document string // about the gateway as a client
}

// ByDocument is a client whose id is the address of the gateway's own document; nil where
// the authorization server does not accept such ids, or could not read the document.
func ByDocument(a *Authority, o Ours) *Client {
	if !a.Documents || !strings.HasPrefix(o.Document, "https://") {
		return nil
	}
	return &Client{ID: o.Document, Method: methodNone}
}

// Document is what the gateway says of itself as a client.
func (o Ours) About() map[string]any {
	return map[string]any{
		"client_id": o.Document, "client_name": "AI gateway", "redirect_uris": []string{o.Callback}, "grant_types": grants,
		"response_types": []string{"code"}, "token_endpoint_auth_method": methodNone, "software_id": softwareID,
	}
}

const softwareID = "ai.gateway.mcp"

var grants = []string{"authorization_code", "refresh_token"}

// registration is what the gateway says of itself where it registers (RFC 7591).
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

// Register makes the gateway a client of an authorization server. of and server distinguish
// it from the clients of other workspaces.
func Register(ctx context.Context, via http.RoundTripper, a *Authority, c *mcp.Configuration, o Ours, of store.Scope, server string) (*Client, error) {
	if a.Registration == "" {
		return nil, upstream.Fail(0, "the authorization server registers no clients: set configurations.oauth_metadata.client_id to one that is known there")
	}
	m := c.OAuth
	if m == nil {
		m = new(mcp.OAuthMetadata)
	}
	asked := &registration{
		Name: cmp.Or(m.ClientName, fmt.Sprintf("Gateway (%s/%s)", of.Workspace, server)), Redirects: []string{o.Callback}, Grants: grants, Responses: []string{"code"},
		AuthMethod: cmp.Or(m.TokenEndpointAuth, methodNone), Scope: m.Scope, URI: m.ClientURI, Logo: m.LogoURI, Contacts: m.Contacts, Tos: m.TosURI, Policy: m.PolicyURI,
		SoftwareID: cmp.Or(m.SoftwareID, softwareID), SoftwareVersion: m.SoftwareVersion,
	}
	if asked.Application = "web"; !strings.HasPrefix(o.Callback, "https://") {
		asked.Application = "native" // browsers come back to this machine
	}
	if len(m.GrantTypes) > 0 {
		asked.Grants = m.GrantTypes
	}
	if m.TokenEndpointAuth == "" && len(a.AuthMethods) > 0 && !slices.Contains(a.AuthMethods, methodNone) {
		asked.AuthMethod = methodBasic
		if !slices.Contains(a.AuthMethods, methodBasic) {
			asked.AuthMethod = methodPost
		}
	}
	raw, err := json.Marshal(asked)
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
		var refusal struct {
			Code string `json:"error"`
		}
		if wire.CheckStrict(raw, maxDepth) != nil || json.Unmarshal(raw, &refusal) != nil || refusal.Code == "" || status >= 500 || status == http.StatusTooManyRequests {
			return nil, upstream.Fail(status, "the authorization server answers with status %d", status)
		}
		return nil, upstream.Fail(status, "the authorization server refuses with %s", shown(refusal.Code))
	}
	if wire.CheckStrict(raw, maxDepth) != nil || json.Unmarshal(raw, &got) != nil {
		return nil, upstream.Fail(status, "the authorization server's response to the registration cannot be read")
	}
	if got.ID == "" {
		return nil, upstream.Fail(http.StatusOK, "the authorization server registers the gateway and gives it no id")
	}
	method := cmp.Or(got.Method, asked.AuthMethod)
	switch {
	case got.Secret == "" && method == methodNone:
	case got.Secret != "" && (method == methodBasic || method == methodPost):
	case method == methodNone && got.Method == "" && len(a.AuthMethods) == 0:
		method = methodBasic // a secret for nothing else: the default of RFC 7591 and RFC 8414
	case method == methodNone:
		got.Secret = ""
	default:
		return nil, upstream.Fail(http.StatusOK, "the authorization server wants the gateway to show who it is in a way that it cannot")
	}
	return &Client{ID: got.ID, Secret: got.Secret, Method: method, Expires: got.Expires}, nil
}

// Ended tells whether the client's secret is no longer valid.
func (c *Client) Ended(now time.Time) bool { return c.Expires != 0 && now.Unix() >= c.Expires-60 }
