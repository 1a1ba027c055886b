package chain

import (
	"encoding/json"
	"strings"
	"unicode"

	"gateway/shared/guard/judge"
	"gateway/shared/wire"
)

// redacted replaces a quote of removed text.
const redacted = "[redacted]"

// redactQuotes removes quotes of removed text from results: results are sent to the client and
// stored, and must not contain what a check has redacted.
func redactQuotes(results []Result, before, after []byte) {
	q := quotes{textOf(before), textOf(after)}
	for i := range results {
		for j := range results[i].Checks {
			c := &results[i].Checks[j]
			c.Data, c.Log = q.clean(c.Data), q.clean(c.Log)
			if c.Error != nil && q.removed(c.Error.Message) {
				c.Error = &judge.Failure{Name: c.Error.Name, Message: redacted}
			}
		}
	}
}

// quotes contains the texts of a body before and after checks changed it.
type quotes struct{ before, after string }

// removed reports whether s quotes text that is not in the changed body. Words are compared as
// well, because a quote may begin or end anywhere.
func (q *quotes) removed(s string) bool {
	s = strings.TrimSuffix(s, "...")
	if q.lost(s) {
		return true
	}
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("@._%+-'", r)
	}) {
		if q.lost(strings.Trim(word, ".-'")) {
			return true
		}
	}
	return false
}

func (q *quotes) lost(s string) bool {
	return len(s) > 1 && strings.Contains(q.before, s) && !strings.Contains(q.after, s)
}

// clean returns a value without quotes of removed text.
func (q *quotes) clean(v any) any {
	if v == nil {
		return nil
	}
	raw, err := json.Marshal(v)
	var plain any
	if err != nil || json.Unmarshal(raw, &plain) != nil {
		return nil
	}
	if now, changed := q.value(plain); changed {
		return now
	}
	return v
}

func (q *quotes) value(v any) (now any, changed bool) {
	switch v := v.(type) {
	case string:
		if q.removed(v) {
			return redacted, true
		}
	case float64:
		if raw, err := json.Marshal(v); err == nil && len(raw) > 3 && q.removed(string(raw)) {
			return nil, true
		}
	case []any:
		for i := range v {
			if one, is := q.value(v[i]); is {
				v[i], changed = one, true
			}
		}
	case map[string]any:
		for name, member := range v {
			if q.removed(name) {
				return redacted, true
			}
			if one, is := q.value(member); is {
				v[name], changed = one, true
			}
		}
	}
	return v, changed
}

// textOf returns all strings and numbers of a JSON body, each on a line.
func textOf(body []byte) string {
	var out []byte
	for i := 0; i < len(body); {
		switch b := body[i]; {
		case b == '"':
			end := i + 1
			for end < len(body) && body[end] != '"' {
				if body[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(body))
			out = append(wire.AppendUnquoted(out, body[i:end]), '\n')
			i = end
		case b >= '0' && b <= '9' || b == '-':
			for ; i < len(body) && strings.IndexByte("0123456789+-.eE", body[i]) >= 0; i++ {
				out = append(out, body[i])
			}
			out = append(out, '\n')
		default:
			i++
		}
	}
	return string(out)
}
