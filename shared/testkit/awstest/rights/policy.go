package rights

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gateway/shared/testkit/standin"
)

// Use is one action on one resource, as IAM checks it.
type Use struct {
	Action, Resource string
	// Context holds the condition keys of the request; a key with several values holds a set.
	Context map[string][]string
}

func (u Use) String() string { return fmt.Sprintf("%s on %s %v", u.Action, u.Resource, u.Context) }

// Allowed returns the positions of the statements that allow a use.
func Allowed(policy []standin.Statement, u Use) (by []int, err error) {
	for i, s := range policy {
		ok, err := allows(s, u)
		if err != nil {
			return nil, err
		}
		if ok {
			by = append(by, i)
		}
	}
	return by, nil
}

func allows(s standin.Statement, u Use) (bool, error) {
	if !any(s.Action, u.Action) || !any(s.Resource, u.Resource) {
		return false, nil
	}
	for operator, keys := range s.Condition {
		for key, want := range keys {
			ok, err := holds(operator, want, u.Context, key)
			if !ok || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// any reports whether one of the patterns matches.
func any(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return like(p, s) })
}

// like is IAM's StringLike: * matches any text, including slashes, and ? one character.
func like(pattern, s string) bool {
	// path.Match stops at slashes, so slashes are replaced by another character. Its other
	// special characters occur in no policy.
	flat := strings.NewReplacer("/", "\x00", "[", "\x01", "\\", "\x02")
	ok, err := path.Match(flat.Replace(pattern), flat.Replace(s))
	return ok && err == nil
}

// holds evaluates one key of a condition, as IAM documents it: an absent key
// fails, except with IfExists and with ForAllValues.
func holds(operator string, want []string, context map[string][]string, key string) (bool, error) {
	have, there := context[key]
	every, plain := false, operator
	if rest, ok := strings.CutPrefix(plain, "ForAllValues:"); ok {
		every, plain = true, rest
	} else if rest, ok := strings.CutPrefix(plain, "ForAnyValue:"); ok {
		plain = rest
	}
	plain, ifExists := strings.CutSuffix(plain, "IfExists")
	var fits func(v string) bool
	switch plain {
	case "StringEquals":
		fits = func(v string) bool { return slices.Contains(want, v) }
	case "StringLike":
		fits = func(v string) bool { return any(want, v) }
	case "Null":
		return len(want) == 1 && (want[0] == "true") == !there, nil
	default:
		return false, fmt.Errorf("rights: no operator %s", operator)
	}
	switch {
	case !there:
		return every || ifExists, nil
	case every:
		return !slices.ContainsFunc(have, func(v string) bool { return !fits(v) }), nil
	}
	return slices.ContainsFunc(have, fits), nil
}
