package bearer

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
)

// MaxToken limits a token, in bytes.
const MaxToken = 16 << 10

// Rules say how tokens are checked: by a key set at an address or in the rules, or by
// asking a service. Rules are safe for concurrent use once they are made.
type Rules struct {
	JWKSURI      string
	Inline       *KeySet // nil: the set is at an address
	Introspect   string
	Kind         string        // content type of the request to the service
	ClientID     string        // the gateway's id at the service; "": it needs none
	ClientSecret string        // likewise
	Remember     time.Duration // how long the service's answers are kept; 0: not at all
	KeepSet      time.Duration
	Tolerance    time.Duration // of clocks
	MaxAge       time.Duration // from iat on; 0: any
	NeedExpiry   bool          // a token must have an expiry
	Algorithms   []string
	Claims       ClaimRules
}

// Checker remembers key sets and the services' answers, for all Rules. It is safe for
// concurrent use.
type Checker struct {
	now     func() time.Time
	keys    *keys
	answers *answers
}

// NewChecker returns a Checker.
func NewChecker(now func() time.Time) *Checker {
	return &Checker{now, &keys{now: now, sets: map[string]*KeySet{}}, &answers{now: now, known: map[answerKey]answer{}}}
}

// Token is a token that was found valid, or what a service told about one.
type Token struct {
	Header, Claims map[string]any
}

var errNoClient = errors.New("no host can be called")

// Check reports whether a token is valid, apart from its claims. why tells what is wrong with
// it and quotes nothing of it; an error says that it could not be checked. A client is needed
// where hosts are asked.
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

// InPlace returns a key set that is part of the rules themselves.
func InPlace(raw json.RawMessage) *KeySet {
	s := &KeySet{fixed: true}
	s.keys, s.err = readSet(raw)
	return s
}

// Of returns the token in a header, whose name may be in any case, without the scheme.
func Of(h http.Header, name string) string {
	v := strings.TrimSpace(h.Get(name))
	if len(v) > 7 && strings.EqualFold(v[:7], "Bearer ") {
		v = strings.TrimSpace(v[7:])
	}
	return v
}
