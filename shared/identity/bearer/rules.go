package bearer

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
)

// MaxToken is the size limit of a token in bytes.
const MaxToken = 16 << 10

// Rules configure the verification of tokens: by a key set at an address or inline, or by
// introspection. Rules are safe for concurrent use.
type Rules struct {
	JWKSURI      string
	Inline       *KeySet // nil if the set is at an address
	Introspect   string
	Kind         string        // content type of introspection requests
	ClientID     string        // the gateway's client id at the endpoint; may be empty
	ClientSecret string        // may be empty
	Remember     time.Duration // how long introspection responses are cached; zero means not at all
	KeepSet      time.Duration
	Tolerance    time.Duration // for clock differences
	MaxAge       time.Duration // since iat; zero means no limit
	NeedExpiry   bool          // a token must have an expiry
	Algorithms   []string
	Claims       ClaimRules
}

// Checker caches key sets and introspection responses for all Rules. It is safe for concurrent
// use.
type Checker struct {
	now     func() time.Time
	keys    *keys
	answers *answers
}

// NewChecker returns a Checker.
func NewChecker(now func() time.Time) *Checker {
	return &Checker{now, &keys{now: now, sets: map[string]*KeySet{}}, &answers{now: now, known: map[answerKey]answer{}}}
}

// Token is a valid token, or the introspection response for one.
type Token struct {
	Header, Claims map[string]any
}

var errNoClient = errors.New("no host can be called")

// Check reports whether a token is valid, apart from its claims. why is the reason of a
// rejection and does not quote the token; err is set if the token could not be checked. client
// is used for requests to the hosts in the rules.
func (c *Checker) Check(ctx context.Context, client *http.Client, r *Rules, raw string) (t *Token, why string, err error) {
	switch {
	case raw == "":
		return nil, "The header has no token", nil
	case len(raw) > MaxToken:
		return nil, "The token is too long", nil
	case client == nil && r.Inline == nil:
		return nil, "", errNoClient
	case r.Introspect != "":
		return c.answers.ask(ctx, client, r, raw)
	}
	return c.keys.verify(ctx, client, r, raw, c.now())
}

// InPlace returns an inline key set.
func InPlace(raw json.RawMessage) *KeySet {
	s := &KeySet{fixed: true}
	s.keys, s.err = readSet(raw)
	return s
}

// Of returns the token in a header, without the scheme. The name may be in any case.
func Of(h http.Header, name string) string {
	v := strings.TrimSpace(h.Get(name))
	if len(v) > 7 && strings.EqualFold(v[:7], "Bearer ") {
		v = strings.TrimSpace(v[7:])
	}
	return v
}
