// Package token implements the check of signed tokens that clients send: signature, times and
// claims. It uses keys of the customer or the customer's introspection endpoint.
package token

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"gateway/shared/egress"
	"gateway/shared/guard"
	"gateway/shared/guard/basic"
	"gateway/shared/guard/judge"
	"gateway/shared/identity/bearer"
)

func claimRulesOf(p map[string]json.RawMessage) (r bearer.ClaimRules, err error) {
	r = bearer.ClaimRules{Required: judge.Get(p, "requiredClaims", []string(nil)), Match: judge.Get(p, "headerPayloadMatch", []string(nil))}
	raw, _ := judge.Object[map[string]struct {
		Values json.RawMessage `json:"values"`
		How    string          `json:"matchType"`
	}](p, "claimValues")
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		v := raw[name]
		if len(v.Values) == 0 || string(v.Values) == "null" {
			return r, errors.New("claimValues has a claim without values")
		}
		if v.How == "" {
			v.How = "exact"
		}
		r.Values = append(r.Values, bearer.ValueRule{Claim: name, Allowed: basic.Primitives(v.Values), Match: v.How})
	}
	return r, nil
}

// extraction selects the claims that the provider receives.
type extraction struct {
	claims []string
	prefix string
}

// verdict compares a token with a valid signature with the rules.
func verdict(ctx context.Context, r bearer.ClaimRules, e *extraction, t *bearer.Token) judge.Verdict {
	r.Pattern = func(pattern, text string) (fits bool, err error) {
		err = guard.ErrTime
		_ = guard.BudgetOf(ctx).Spend(ctx, func(ctx context.Context) { fits, err = basic.FitsPattern(ctx, pattern, text) })
		return fits, err
	}
	f, err := r.Check(t)
	if err != nil {
		return judge.Failed("Error", err.Error())
	}
	d := &report{Verdict: f.None(), Explanation: "The token is valid", Validations: validations{Signature: true}}
	if !d.Verdict {
		d.Explanation = "The token does not have the required claims"
	}
	if len(r.Required) > 0 {
		d.Validations.Required = &result{Valid: len(f.Missing) == 0, Missing: f.Missing}
	}
	if len(r.Values) > 0 {
		d.Validations.Values = &result{Valid: len(f.Wrong) == 0, Failed: f.Wrong}
	}
	if len(r.Match) > 0 {
		d.Validations.Header = &result{Valid: len(f.Mismatched) == 0, Mismatched: f.Mismatched}
	}
	v := judge.Verdict{Pass: d.Verdict, Data: d}
	if d.Verdict {
		v.Headers = e.headers(t)
	}
	return v
}

// maxHeader is the size limit of a claim that is forwarded as a header, in bytes.
const maxHeader = 4096

// headers returns the claims for the provider. If the token lacks a claim, a client header of
// the same name is removed, because only the token may make the claim.
func (e *extraction) headers(t *bearer.Token) http.Header {
	if len(e.claims) == 0 {
		return nil
	}
	out := http.Header{}
	for _, name := range e.claims {
		key := strings.ToLower(strings.ReplaceAll(e.prefix+name, "_", "-"))
		if guard.IsNeverForwarded(key) || !egress.Forwardable(key) {
			continue
		}
		key = http.CanonicalHeaderKey(key)
		value := strings.Join(bearer.Texts(t.Claims[name]), ",")
		if out[key] = nil; value != "" && len(value) <= maxHeader && egress.ValidHeaderValue(value) {
			out[key] = []string{value}
		}
	}
	return out
}

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
		CacheFor:   seconds(judge.Get(p, "introspectCacheMaxAge", int64(0))),
		KeySetTTL:  seconds(judge.Get(p, "cacheMaxAge", int64(86_400))),
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
