package token

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"gateway/shared/guard"
	"gateway/shared/guard/judge"
)

// maxToken bounds a token, in bytes.
const maxToken = 16 << 10

// ID is that of the check.
const ID = "default.jwt"

// Makers gives the check. Keys and answers are remembered by it, for all who ask.
func Makers(now func() time.Time) map[string]judge.Maker {
	k := &keys{now: now, sets: map[string]*keySet{}}
	a := &answers{now: now, known: map[answerKey]answer{}}
	return map[string]judge.Maker{ID: func(p map[string]json.RawMessage) judge.Func { return check(p, k, a, now) }}
}

// rules are the parameters of one check.
type rules struct {
	header     string
	jwksURI    string
	inline     json.RawMessage
	introspect string
	kind       string        // of what the service is sent
	remember   time.Duration // its answers
	keepSet    time.Duration
	tolerance  time.Duration
	maxAge     time.Duration
	algorithms []string
	claims     claimRules
}

func rulesOf(p map[string]json.RawMessage) (rules, error) {
	r := rules{
		header: judge.Get(p, "headerKey", "Authorization"), jwksURI: judge.Get(p, "jwksUri", ""), introspect: judge.Get(p, "introspectEndpoint", ""),
		kind:       judge.Get(p, "introspectContentType", formType),
		remember:   seconds(judge.Get(p, "introspectCacheMaxAge", int64(0))),
		keepSet:    seconds(judge.Get(p, "cacheMaxAge", int64(86_400))),
		tolerance:  seconds(judge.Get(p, "clockTolerance", int64(5))),
		algorithms: judge.Get(p, "algorithms", []string{"RS256"}),
	}
	if set, ok := judge.Object[json.RawMessage](p, "jwks"); ok {
		r.inline = set
	}
	var err error
	if r.maxAge, err = guard.ParseAge(judge.Get(p, "maxTokenAge", "1d")); err != nil {
		return r, errors.New("maxTokenAge " + err.Error())
	}
	if r.jwksURI == "" && r.introspect == "" && r.inline == nil {
		return r, errors.New("jwksUri, jwks or introspectEndpoint is missing")
	}
	r.claims, err = claimRulesOf(p)
	return r, err
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// told is what the check tells.
type told struct {
	Verdict     bool        `json:"verdict"`
	Explanation string      `json:"explanation"`
	Validations validations `json:"validations"`
}

type validations struct {
	Signature bool    `json:"signatureValid"`
	Required  *result `json:"requiredClaims,omitempty"`
	Values    *result `json:"claimValues,omitempty"`
	Header    *result `json:"headerPayloadMatch,omitempty"`
}

// result tells of one kind of claims, by their names alone.
type result struct {
	Valid      bool     `json:"valid"`
	Missing    []string `json:"missing,omitempty"`
	Failed     []string `json:"failed,omitempty"`
	Mismatched []string `json:"mismatched,omitempty"`
}

func check(p map[string]json.RawMessage, k *keys, a *answers, now func() time.Time) judge.Func {
	r, err := rulesOf(p)
	if err != nil {
		wrong := judge.Failed("Error", err.Error())
		return func(context.Context, *judge.Subject) judge.Verdict { return wrong }
	}
	var set *keySet
	if r.inline != nil {
		set = inPlace(r.inline)
	}
	return func(ctx context.Context, s *judge.Subject) judge.Verdict {
		no := func(why string) judge.Verdict { return judge.Verdict{Data: &told{Explanation: why}} }
		raw := bearer(s.Headers, r.header)
		switch {
		case raw == "":
			return no("The header has no token")
		case len(raw) > maxToken:
			return no("The token is too long")
		case s.Client == nil && set == nil:
			return judge.Failed("Error", "No host can be called")
		}
		var t *parsed
		var why string
		var err error
		if r.introspect != "" {
			t, why, err = a.ask(ctx, s.Client, &r, raw)
		} else {
			t, why, err = k.verify(ctx, s.Client, &r, set, raw, now())
		}
		switch {
		case err != nil:
			return judge.Failed("Error", err.Error())
		case t == nil:
			return no(why)
		}
		return r.claims.judge(t)
	}
}

// bearer is the token of a header, whatever case its name has.
func bearer(h http.Header, name string) string {
	v := strings.TrimSpace(h.Get(name))
	if len(v) > 7 && strings.EqualFold(v[:7], "Bearer ") {
		v = strings.TrimSpace(v[7:])
	}
	return v
}
