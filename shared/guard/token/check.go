package token

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"gateway/shared/guard"
	"gateway/shared/guard/judge"
	"gateway/shared/identity/bearer"
)

// ID is the id of the check.
const ID = "default.jwt"

// Makers returns the check. It caches keys and responses for all callers.
func Makers(now func() time.Time) map[string]judge.Maker {
	c := bearer.NewChecker(now)
	return map[string]judge.Maker{ID: func(p map[string]json.RawMessage) judge.Func { return check(p, c) }}
}

// rules are the parameters of one check.
type rules struct {
	header string
	bearer.Rules
	extraction
}

func rulesOf(p map[string]json.RawMessage) (r rules, err error) {
	r.header = judge.Get(p, "headerKey", "Authorization")
	r.extraction = extraction{judge.Get(p, "extractClaims", []string(nil)), judge.Get(p, "claimPrefix", "x-jwt-")}
	r.Rules = bearer.Rules{
		JWKSURI: judge.Get(p, "jwksUri", ""), Introspect: judge.Get(p, "introspectEndpoint", ""),
		Kind:       judge.Get(p, "introspectContentType", bearer.FormType),
		Remember:   seconds(judge.Get(p, "introspectCacheMaxAge", int64(0))),
		KeepSet:    seconds(judge.Get(p, "cacheMaxAge", int64(86_400))),
		Tolerance:  seconds(judge.Get(p, "clockTolerance", int64(5))),
		Algorithms: judge.Get(p, "algorithms", []string{"RS256"}),
	}
	if set, ok := judge.Object[json.RawMessage](p, "jwks"); ok {
		r.Inline = bearer.InPlace(set)
	}
	if r.MaxAge, err = guard.ParseAge(judge.Get(p, "maxTokenAge", "1d")); err != nil {
		return r, errors.New("maxTokenAge " + err.Error())
	}
	if r.JWKSURI == "" && r.Introspect == "" && r.Inline == nil {
		return r, errors.New("jwksUri, jwks or introspectEndpoint is missing")
	}
	r.Claims, err = claimRulesOf(p)
	return r, err
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// report is the data of a verdict.
type report struct {
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

// result reports one kind of claims by their names only.
type result struct {
	Valid      bool     `json:"valid"`
	Missing    []string `json:"missing,omitempty"`
	Failed     []string `json:"failed,omitempty"`
	Mismatched []string `json:"mismatched,omitempty"`
}

func check(p map[string]json.RawMessage, c *bearer.Checker) judge.Func {
	r, err := rulesOf(p)
	if err != nil {
		wrong := judge.Failed("Error", err.Error())
		return func(context.Context, *judge.Subject) judge.Verdict { return wrong }
	}
	return func(ctx context.Context, s *judge.Subject) judge.Verdict {
		t, why, err := c.Check(ctx, s.Client, &r.Rules, bearer.Of(s.Headers, r.header))
		switch {
		case err != nil:
			return judge.Failed("Error", err.Error())
		case t == nil:
			return judge.Verdict{Data: &report{Explanation: why}}
		}
		return verdict(ctx, r.Rules.Claims, &r.extraction, t)
	}
}
