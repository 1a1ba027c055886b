package oauthclient

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// Paths below the gateway's address.
const (
	PathConnect  = "/oauth/upstream-connect"
	PathCallback = "/oauth/upstream-callback"
	PathDocument = "/oauth/upstream-client.json"
)

// linkLife is the lifetime of a link.
const linkLife = 15 * time.Minute

// Link asks one user to sign in at one server.
type Link struct {
	Org       string `json:"-"`
	Workspace string `json:"w"`
	Server    string `json:"s"` // id
	User      string `json:"u"`
	Expires   int64  `json:"x"` // Unix seconds
	// Scopes are requested in addition to those that the server names.
	Scopes []string `json:"c,omitempty"`
}

// Scope returns the scope of the server.
func (l *Link) Scope() store.Scope { return store.Scope{Org: l.Org, Workspace: l.Workspace} }

// sealed binds a sealed value to its purpose and place.
func sealed(org, place, what string) seal.Binding {
	return seal.Binding{Org: org, Table: "mcp", PK: place, SK: what}
}

const maxLink = 4096

// Address returns the sealed sign-in address. It cannot be forged.
func (l *Link) Address(ctx context.Context, s seal.Sealer, issuer string, now time.Time) (string, error) {
	l.Expires = now.Add(linkLife).Unix()
	plain, err := json.Marshal(l)
	if err != nil {
		return "", err
	}
	closed, err := s.Seal(ctx, sealed(l.Org, "", "connect"), plain)
	if err != nil {
		return "", fault.Unavailable(err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(l.Org)) + "." + base64.RawURLEncoding.EncodeToString(closed)
	return issuer + PathConnect + "?" + url.Values{"link": {text}}.Encode(), nil
}

// errNoLink returns the fault for an invalid or expired link.
func errNoLink() error {
	return fault.Invalid("link", "is invalid or has expired: call the MCP server again for a new one")
}

// ReadLink opens a link.
func ReadLink(ctx context.Context, s seal.Sealer, text string, now time.Time) (*Link, error) {
	of, rest, ok := strings.Cut(text, ".")
	org, bad := base64.RawURLEncoding.DecodeString(of)
	closed, worse := base64.RawURLEncoding.DecodeString(rest)
	if !ok || len(text) > maxLink || bad != nil || worse != nil || len(org) == 0 || len(org) > 64 || len(closed) == 0 {
		return nil, errNoLink()
	}
	plain, err := s.Open(ctx, sealed(string(org), "", "connect"), closed)
	l := &Link{Org: string(org)}
	if err != nil || json.Unmarshal(plain, l) != nil || now.Unix() >= l.Expires {
		return nil, errNoLink()
	}
	return l, nil
}
