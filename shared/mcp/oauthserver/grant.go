package oauthserver

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Scopes that clients ask for. All is the other two.
const (
	All   = "mcp"
	Read  = "mcp:read"  // all but calls of tools
	Write = "mcp:write" // calls of tools
)

// Scopes lists them, the one that clients get who ask for none first.
var Scopes = []string{All, Read, Write}

// ScopesOf returns those of Scopes that a client asks for. Others, such as offline_access or
// scopes of a vendor, are left out, as RFC 6749, 3.3 allows: the response states what was
// granted. A client that asks for none of them gets All.
func ScopesOf(text string) (scopes []string) {
	for s := range strings.FieldsSeq(text) {
		if slices.Contains(Scopes, s) && !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	if len(scopes) == 0 {
		scopes = []string{All}
	}
	return scopes
}

// UnknownScope returns the first scope of a text that is named like one of Scopes and is none;
// "" if there is none. It stands for a right that nobody can give.
func UnknownScope(text string) string {
	for s := range strings.FieldsSeq(text) {
		if strings.HasPrefix(s, All) && !slices.Contains(Scopes, s) {
			return s
		}
	}
	return ""
}

// Fewer returns the scopes of a token that a client renews with fewer scopes than the grant
// has; none: it does not ask for fewer. ok is false if it asks for more.
func Fewer(of []string, text string) (scopes []string, ok bool) {
	for s := range strings.FieldsSeq(text) {
		if !slices.Contains(Scopes, s) {
			continue
		}
		if !slices.Contains(of, s) && !slices.Contains(of, All) {
			return nil, false
		}
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	return scopes, true
}

// How long things last.
const (
	CodeLife    = time.Minute
	AccessLife  = time.Hour
	RefreshLife = 30 * 24 * time.Hour // since it was used last
)

// Grant is what a person has allowed a client.
type Grant struct {
	ID            string // tells nothing
	Scope         store.Scope
	WorkspaceSlug string
	User, Email   string
	Server        string // id of the one that it is for
	Client        string // id
	ClientName    string
	Scopes        []string
	Resource      string // address of the server
	Since         time.Time
}

// Code is an authorization code and what its exchange is held against.
type Code struct {
	Grant
	Redirect  string
	Challenge string // S256
}

// Tokens are what a client gets.
type Tokens struct {
	Access, Refresh string
	Expires         time.Duration // of the access token
}

// Kinds of rows, by the hash of what finds them.
const (
	kindCode   = "MCP_CODE"
	kindGrant  = "MCP_GRANT"
	kindAccess = "MCP_ACCESS"
)

// Beginnings of tokens, and how long their parts are.
const (
	prefixAccess  = "ga-"
	prefixRefresh = "gr-"
	secretLength  = 43
	idLength      = 26
)

func secret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func key(kind, token string) store.Key { return store.Credential(kind, identity.HashToken(token)) }

// Refusals of tokens. Which of them it is, clients are not told.
var (
	ErrUnknown = errors.New("granted: no such code or token, or not any more")
	ErrReused  = errors.New("granted: the code or token was used before")
)

func (g *Grant) item(until time.Time) store.Item {
	return store.Item{
		"org": g.Scope.Org, "ws": g.Scope.Workspace, "slug": g.WorkspaceSlug, "user": g.User, "email": g.Email, "server": g.Server, "id": g.ID,
		"client": g.Client, "name": g.ClientName, "scopes": strings.Join(g.Scopes, " "), "resource": g.Resource, "since": g.Since.UnixMilli(), "until": until.UnixMilli(),
	}
}

func grantOf(it store.Item) Grant {
	return Grant{
		ID: it.String("id"), Scope: store.Scope{Org: it.String("org"), Workspace: it.String("ws")}, WorkspaceSlug: it.String("slug"), User: it.String("user"), Email: it.String("email"),
		Server: it.String("server"), Client: it.String("client"), ClientName: it.String("name"), Scopes: strings.Fields(it.String("scopes")), Resource: it.String("resource"),
		Since: time.UnixMilli(it.Int("since")).UTC(),
	}
}

// Begin stages a code for a permission that was just given. It fills ID and Since.
func Begin(tx *resource.Tx, c *Code) (code string, err error) {
	code, c.ID, c.Since = secret(), rand.Text(), tx.Now().UTC().Truncate(time.Millisecond)
	until := tx.Now().Add(CodeLife)
	it := c.item(until)
	it["redirect"], it["challenge"] = c.Redirect, c.Challenge
	// The row outlasts the code by a day, so that a second use is known as one.
	return code, tx.CreateCredential(store.Row{Key: key(kindCode, code), Item: it, Expires: until.Add(24 * time.Hour)})
}

// Matches tells whether a verifier is that of the code's challenge: RFC 7636.
func (c *Code) Matches(verifier string) bool {
	if len(verifier) < 43 || len(verifier) > 128 {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(c.Challenge)) == 1
}

// Exchange stages the end of a code and the first tokens of its grant. ErrReused: the code
// was exchanged meanwhile.
func (c *Code) Exchange(tx *resource.Tx, code string) (*Tokens, error) {
	tx.Do(store.Action{Table: store.Keys, Update: &store.Update{
		Key: key(kindCode, code), Set: []store.Assign{{Path: store.At("used"), Value: int64(1)}}, If: []store.Cond{store.IfPresent(), store.IfMissing(store.At("used"))},
	}}, ErrReused)
	t, it := c.issue(tx, c.Scopes)
	return t, tx.CreateCredential(store.Row{Key: key(kindGrant, c.ID), Item: it, Expires: tx.Now().Add(RefreshLife)})
}

// issue stages an access token with scopes. it is the row of the grant with both tokens.
func (g *Grant) issue(tx *resource.Tx, scopes []string) (t *Tokens, it store.Item) {
	access, fresh := prefixAccess+secret(), secret()
	until := tx.Now().Add(AccessLife)
	row := store.Row{Key: key(kindAccess, access), Item: g.item(until), Expires: until}
	row.Item["scopes"] = strings.Join(scopes, " ")
	tx.Do(store.Action{Table: store.Keys, Put: &store.Put{Row: row, If: []store.Cond{store.IfAbsent()}}}, nil)
	it = g.item(tx.Now().Add(RefreshLife))
	it["access"], it["refresh"] = identity.HashToken(access), identity.HashToken(fresh)
	return &Tokens{Access: access, Refresh: prefixRefresh + g.ID + fresh, Expires: AccessLife}, it
}

// Held is a grant as it is stored.
type Held struct {
	Grant
	access, refresh string // hashes
}

// Renew stages new tokens in place of a grant's. scopes are those of the access token; the
// grant keeps its own. ErrReused: the refresh token was used meanwhile.
func (h *Held) Renew(tx *resource.Tx, scopes []string) (*Tokens, error) {
	t, it := h.issue(tx, scopes)
	tx.DeleteCredential(store.Credential(kindAccess, h.access))
	tx.Do(store.Action{Table: store.Keys, Put: &store.Put{
		Row: store.Row{Key: key(kindGrant, h.ID), Item: it, Expires: tx.Now().Add(RefreshLife)}, If: []store.Cond{store.IfEqual(store.At("refresh"), h.refresh)},
	}}, ErrReused)
	return t, nil
}

// End stages the end of a grant with its tokens. They open nothing any more two seconds
// later at most.
func (h *Held) End(tx *resource.Tx) {
	tx.DeleteCredential(store.Credential(kindAccess, h.access))
	tx.DeleteCredential(key(kindGrant, h.ID))
}
