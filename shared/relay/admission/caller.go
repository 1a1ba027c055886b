package admission

import (
	"net/http"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/tenant"
)

// Blocked returns the fault for inline configuration that BlocksInline rejects.
func (q *Request) Blocked(code fault.Code, field, what string) error {
	return fault.Newf(code, field, "This organization accepts only saved configuration: %s cannot be sent with a request", what)
}

// BlocksInline reports whether the organization or the installation rejects inline
// configuration.
func (q *Request) BlocksInline() bool { return q.deps.BlockInline || q.Org.Settings.BlockInlineConfig }

// HeadersForProvider returns the client's headers without the gateway key, in whichever header
// it was sent.
func (q *Request) HeadersForProvider() http.Header {
	h, mine := q.Req.Header, false
	drop := func(name string) {
		if !mine {
			h, mine = h.Clone(), true
		}
		h.Del(name)
	}
	if q.KeyInAuth {
		drop("Authorization")
	}
	for name := range q.Req.Header {
		if q.HoldsKey(name) {
			drop(name)
		}
	}
	return h
}

// HoldsKey reports whether a header of the client contains the key of the request, or another
// credential of the gateway.
func (q *Request) HoldsKey(name string) bool {
	for _, v := range q.Req.Header[name] {
		if v = strings.TrimSpace(v); v == q.Token || len(q.Token) >= leastToken && strings.Contains(v, q.Token) || identity.HoldsCredential(v) {
			return true
		}
	}
	return false
}

// KeyHash identifies the caller's key without revealing it.
func (q *Request) KeyHash() string {
	switch {
	case q.Internal != nil:
		return q.Internal.Key
	case q.ClientSecret != nil:
		return q.ClientSecret.Key
	}
	return identity.HashToken(q.Token)
}

// LogsBodies reports whether the bodies of the request are logged.
func (q *Request) LogsBodies() bool {
	if q.Org == nil {
		return false
	}
	s := &q.Org.Settings
	if s.EnforceDebug != nil {
		return *s.EnforceDebug
	}
	return s.RequestLogging != tenant.LogMetrics && !q.Headers.NoBodies
}

// leastToken is the minimum length of a key in bytes that is also searched within other text.
const leastToken = 16
