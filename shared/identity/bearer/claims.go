package bearer

import (
	"slices"
	"strconv"
	"strings"
)

// ClaimRules are the requirements for the claims of a token.
type ClaimRules struct {
	Required []string
	Values   []ValueRule
	Match    []string // fields that header and claims must both have with the same value
	Pattern  Pattern  // nil if no value is a pattern
}

// ValueRule requires a claim to equal one of the wanted values (exact), contain one (contains)
// or all of them (containsAll), or match a pattern (regex).
type ValueRule struct {
	Claim  string
	Wanted []string
	How    string
}

// Pattern reports whether a text matches a pattern.
type Pattern func(pattern, text string) (bool, error)

// Failings are the names of failed claims by reason.
type Failings struct{ Missing, Wrong, Mismatched []string }

// None reports whether no claim failed.
func (f *Failings) None() bool { return len(f.Missing)+len(f.Wrong)+len(f.Mismatched) == 0 }

// Judge checks the claims of a valid token. An error comes from a pattern.
func (r *ClaimRules) Judge(t *Token) (f Failings, err error) {
	for _, name := range r.Required {
		if v, ok := t.Claims[name]; !ok || v == nil {
			f.Missing = append(f.Missing, name)
		}
	}
	for _, v := range r.Values {
		fits, err := v.fits(t.Claims[v.Claim], r.Pattern)
		if err != nil {
			return f, err
		}
		if !fits {
			f.Wrong = append(f.Wrong, v.Claim)
		}
	}
	for _, name := range r.Match {
		a, b := Texts(t.Header[name]), Texts(t.Claims[name])
		if len(a) == 0 || !slices.Equal(a, b) {
			f.Mismatched = append(f.Mismatched, name)
		}
	}
	return f, nil
}

// Matches reports whether a value equals one of the wanted values (exact), contains one of them
// (contains) or all of them (containsAll), or matches one as a pattern (regex).
func Matches(how, said string, wanted []string, pattern Pattern) (bool, error) {
	switch how {
	case "contains":
		return slices.ContainsFunc(wanted, func(w string) bool { return strings.Contains(said, w) }), nil
	case "containsAll":
		return len(wanted) > 0 && !slices.ContainsFunc(wanted, func(w string) bool { return !strings.Contains(said, w) }), nil
	case "regex":
		var failed error
		for _, w := range wanted {
			fits, err := pattern(w, said)
			if fits {
				return true, failed
			}
			if err != nil {
				failed = err
			}
		}
		return false, failed
	}
	return slices.Contains(wanted, said), nil
}

// fits reports whether a claim satisfies the rule. If the claim is a list, one of its entries
// must satisfy it; for containsAll every wanted value must be an entry.
func (v ValueRule) fits(claim any, pattern Pattern) (bool, error) {
	_, many := claim.([]any)
	have := Texts(claim)
	switch {
	case len(have) == 0:
		return false, nil
	case many && v.How == "containsAll":
		return len(v.Wanted) > 0 && !slices.ContainsFunc(v.Wanted, func(w string) bool { return !slices.Contains(have, w) }), nil
	case many && v.How == "contains":
		return slices.ContainsFunc(v.Wanted, func(w string) bool { return slices.Contains(have, w) }), nil
	}
	for _, one := range have {
		if ok, err := Matches(v.How, one, v.Wanted, pattern); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// Texts returns a string, or the strings of a list.
func Texts(v any) []string {
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
				out = append(out, Texts(e)...)
			}
		}
		return out
	}
	return nil
}
