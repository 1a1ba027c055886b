package basic

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"gateway/shared/guard"
	"gateway/shared/guard/judge"
	"gateway/shared/identity/bearer"
)

type metadataData struct {
	Missing     []string `json:"missing_metadata_keys"`
	Found       []string `json:"found_metadata_keys"`
	Operator    string   `json:"operator"`
	Verdict     bool     `json:"verdict"`
	Explanation string   `json:"explanation"`
}

// unsupported returns an error verdict for an unsupported request. The check then passes.
func unsupported(message string) judge.Verdict {
	v := failed(message)
	v.Pass = true
	return v
}

// metadataKeys passes a request with metadata that has all, any or none of the keys.
func metadataKeys(raw map[string]json.RawMessage) judge.Func {
	keys, ok := judge.Read[[]string](raw, "metadataKeys")
	operator := judge.Get(raw, "operator", "all")
	if !ok || len(keys) == 0 {
		return constant(unsupported("Missing or invalid metadataKeys"))
	}
	if !slices.Contains(operators, operator) {
		return constant(unsupported(badOperator))
	}
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		d := &metadataData{Missing: []string{}, Found: []string{}, Operator: operator}
		for _, k := range keys {
			if _, has := s.Metadata[k]; has {
				d.Found = append(d.Found, k)
			} else {
				d.Missing = append(d.Missing, k)
			}
		}
		d.Verdict, d.Explanation = quantify(operator, len(d.Found), len(d.Missing), "metadata keys")
		return judge.Verdict{Pass: d.Verdict, Data: d}
	}
}

type pairsData struct {
	Missing     []string `json:"missing_metadata_pairs"`
	Found       []string `json:"found_metadata_pairs"`
	Operator    string   `json:"operator"`
	MatchType   string   `json:"matchType"`
	Verdict     bool     `json:"verdict"`
	Explanation string   `json:"explanation"`
}

// metadataPairs passes a request with metadata that has all, any or none of the pairs. A value
// is compared by equality, by a part, by all of several parts, or by a pattern.
func metadataPairs(raw map[string]json.RawMessage) judge.Func {
	pairs, ok := judge.Object[map[string]json.RawMessage](raw, "metadataPairs")
	operator, how := judge.Get(raw, "operator", "all"), judge.Get(raw, "matchType", "exact")
	if !ok || len(pairs) == 0 {
		return constant(unsupported("Missing or invalid metadataPairs"))
	}
	wanted := make(map[string][]string, len(pairs))
	for key, value := range pairs {
		wanted[key] = Primitives(value)
	}
	keys := slices.Sorted(maps.Keys(wanted))
	return func(ctx context.Context, s *judge.Subject) judge.Verdict {
		fit := func(pattern, text string) (bool, error) { return FitsPattern(ctx, pattern, text) }
		d := &pairsData{Missing: []string{}, Found: []string{}, Operator: operator, MatchType: how}
		for _, key := range keys {
			said, has := s.Metadata[key]
			fits, err := bearer.Matches(how, said, wanted[key], fit)
			if errors.Is(err, guard.ErrTime) {
				return judge.TooSlow()
			}
			if err != nil {
				return unsupported(err.Error())
			}
			if has && fits {
				d.Found = append(d.Found, key)
			} else {
				d.Missing = append(d.Missing, key)
			}
		}
		d.Verdict, d.Explanation = quantify(operator, len(d.Found), len(d.Missing), "metadata pairs")
		return judge.Verdict{Pass: d.Verdict, Data: d}
	}
}

// Primitives returns a value, or the entries of a list, as strings.
func Primitives(raw json.RawMessage) []string {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	out := make([]string, 0, len(list))
	for _, e := range list {
		var text string
		if json.Unmarshal(e, &text) != nil {
			text = strings.TrimSpace(string(e)) // a number, true or false
		}
		out = append(out, text)
	}
	return out
}

// FitsPattern reports whether a guardrail pattern matches a text.
func FitsPattern(ctx context.Context, pattern, text string) (bool, error) {
	re, err := guard.PatternOf(pattern)
	if err != nil {
		return false, err
	}
	return re.Match(ctx, text)
}
