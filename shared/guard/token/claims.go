package token

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

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
		r.Values = append(r.Values, bearer.ValueRule{Claim: name, Wanted: basic.Primitives(v.Values), How: v.How})
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
	f, err := r.Judge(t)
	if err != nil {
		return judge.Failed("Error", err.Error())
	}
	d := &report{Verdict: f.None(), Explanation: "The token is valid", Validations: validations{Signature: true}}
	if !d.Verdict {
		d.Explanation = "The token does not claim what it must"
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
		if guard.NeverForwarded(key) || !egress.Forwardable(key) {
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
