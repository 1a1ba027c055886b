package admission

import (
	"net/http"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/tenant"
)

func (q *Request) Blocked(code fault.Code, field, what string) error {
	return fault.Newf(code, field, "This organisation takes saved configuration only: %s cannot be sent with a request", what)
}

// BlocksInline tells whether the organisation or the installation refuses what a
// request brings along.
func (q *Request) BlocksInline() bool { return q.doors.BlockInline || q.Org.Settings.BlockInlineConfig }

// HeadersForProvider are the client's headers without the gateway key, wherever
// it came.
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

// HoldsKey reports whether a header of the client holds the key of the request, or another
// credential of the gateway.
func (q *Request) HoldsKey(name string) bool {
	for _, v := range q.Req.Header[name] {
		if v = strings.TrimSpace(v); v == q.Token || len(q.Token) >= leastToken && strings.Contains(v, q.Token) || identity.HoldsCredential(v) {
			return true
		}
	}
	return false
}

// KeyHash names the caller's key without telling it.
func (q *Request) KeyHash() string {
	switch {
	case q.Behalf != nil:
		return q.Behalf.Key
	case q.Bound != nil:
		return q.Bound.Key
	}
	return identity.HashToken(q.Token)
}

// Logs tells whether bodies are kept.
func (q *Request) Logs() bool {
	if q.Org == nil {
		return false
	}
	s := &q.Org.Settings
	if s.EnforceDebug != nil {
		return *s.EnforceDebug
	}
	return s.RequestLogging != tenant.LogMetrics && !q.Ask.NoBodies
}

// leastToken is the length in bytes from which a key is also found within other text.
const leastToken = 16
