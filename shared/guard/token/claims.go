package token

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/egress"
	"gateway/shared/guard"
	"gateway/shared/guard/basic"
	"gateway/shared/guard/judge"
)

// claimRules are what a token must claim, and what of it the provider is told.
type claimRules struct {
	required []string
	values   map[string]valueRule
	names    []string // of values, in order
	match    []string // members that header and claims must have alike
	extract  []string
	prefix   string
}

type valueRule struct {
	wanted []string
	how    string
}

func claimRulesOf(p map[string]json.RawMessage) (claimRules, error) {
	r := claimRules{
		required: judge.Get(p, "requiredClaims", []string(nil)), match: judge.Get(p, "headerPayloadMatch", []string(nil)),
		extract: judge.Get(p, "extractClaims", []string(nil)), prefix: judge.Get(p, "claimPrefix", "x-jwt-"), values: map[string]valueRule{},
	}
	raw, _ := judge.Object[map[string]struct {
		Values json.RawMessage `json:"values"`
		How    string          `json:"matchType"`
	}](p, "claimValues")
	for name, v := range raw {
		if len(v.Values) == 0 || string(v.Values) == "null" {
			return r, errors.New("claimValues has a claim without values")
		}
		if v.How == "" {
			v.How = "exact"
		}
		r.values[name] = valueRule{basic.Primitives(v.Values), v.How}
	}
	r.names = slices.Sorted(maps.Keys(r.values))
	return r, nil
}

// judge holds a token whose signature is good against the rules.
func (r *claimRules) judge(t *parsed) judge.Verdict {
	d := &told{Verdict: true, Explanation: "The token is valid", Validations: validations{Signature: true}}
	note := func(res *result) *result {
		if res.Valid = len(res.Missing)+len(res.Failed)+len(res.Mismatched) == 0; !res.Valid {
			d.Verdict, d.Explanation = false, "The token does not claim what it must"
		}
		return res
	}
	if len(r.required) > 0 {
		res := &result{}
		for _, name := range r.required {
			if v, ok := t.claims[name]; !ok || v == nil {
				res.Missing = append(res.Missing, name)
			}
		}
		d.Validations.Required = note(res)
	}
	if len(r.names) > 0 {
		res := &result{}
		for _, name := range r.names {
			fits, err := r.values[name].fits(t.claims[name])
			if err != nil {
				return judge.Failed("Error", err.Error())
			}
			if !fits {
				res.Failed = append(res.Failed, name)
			}
		}
		d.Validations.Values = note(res)
	}
	if len(r.match) > 0 {
		res := &result{}
		for _, name := range r.match {
			a, b := primitives(t.header[name]), primitives(t.claims[name])
			if len(a) == 0 || !slices.Equal(a, b) {
				res.Mismatched = append(res.Mismatched, name)
			}
		}
		d.Validations.Header = note(res)
	}
	v := judge.Verdict{Pass: d.Verdict, Data: d}
	if d.Verdict {
		v.Headers = r.headers(t)
	}
	return v
}

// fits tells whether a claim has what is wanted. A claim that is a list has what one of
// its entries is, and all where it must contain all.
func (v valueRule) fits(claim any) (bool, error) {
	_, many := claim.([]any)
	have := primitives(claim)
	switch {
	case len(have) == 0:
		return false, nil
	case many && v.how == "containsAll":
		return len(v.wanted) > 0 && !slices.ContainsFunc(v.wanted, func(w string) bool { return !slices.Contains(have, w) }), nil
	case many && v.how == "contains":
		return slices.ContainsFunc(v.wanted, func(w string) bool { return slices.Contains(have, w) }), nil
	}
	for _, one := range have {
		if ok, err := basic.Matches(v.how, one, v.wanted); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// primitives are the texts of a value, or of the entries of a list.
func primitives(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case bool:
		return []string{strconv.FormatBool(v)}
	case float64:
		return []string{strconv.FormatFloat(v, 'f', -1, 64)}
	case []any:
		var out []string
		for _, e := range v {
			if _, nested := e.([]any); !nested {
				out = append(out, primitives(e)...)
			}
		}
		return out
	}
	return nil
}

// maxHeader bounds a claim that goes along as a header, in bytes.
const maxHeader = 4096

// headers are claims for the provider. A claim that the token does not have takes a
// header of the client by that name away: nobody claims it but the token.
func (r *claimRules) headers(t *parsed) http.Header {
	if len(r.extract) == 0 {
		return nil
	}
	out := http.Header{}
	for _, name := range r.extract {
		key := strings.ToLower(strings.ReplaceAll(r.prefix+name, "_", "-"))
		if guard.NeverForwarded(key) || !egress.Forwardable(key) {
			continue
		}
		key = http.CanonicalHeaderKey(key)
		value := strings.Join(primitives(t.claims[name]), ",")
		if out[key] = nil; value != "" && len(value) <= maxHeader && egress.ValidHeaderValue(value) {
			out[key] = []string{value}
		}
	}
	return out
}
