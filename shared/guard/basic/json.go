package basic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"gateway/shared/guard"
	"gateway/shared/guard/judge"
)

// Limits of the search for JSON in a response.
const (
	maxCandidates = 100 // pieces of JSON that are tried
	maxInvalid    = 20  // errors that are reported
)

type schemaData struct {
	Matched     any       `json:"matchedJson"`
	Not         bool      `json:"not"`
	Explanation string    `json:"explanation"`
	Errors      []invalid `json:"validationErrors,omitzero"` // empty for JSON that fits; nil without JSON
}

type invalid struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

// jsonSchema passes a response with JSON that matches a schema. A response without JSON fails,
// even with not.
func jsonSchema(raw map[string]json.RawMessage) judge.Func {
	not := judge.Get(raw, "not", false)
	text := raw["schema"]
	if inner, ok := judge.Read[string](raw, "schema"); ok {
		text = []byte(inner)
	}
	if len(text) == 0 || string(text) == "null" {
		return constant(failed("Missing schema"))
	}
	schema, err := guard.SchemaOf(text)
	if err != nil {
		return constant(failed("The schema " + err.Error()))
	}
	return func(ctx context.Context, s *judge.Subject) judge.Verdict {
		answer := s.Text()
		if answer == "" {
			return judge.NoContent("Missing text to check")
		}
		var first *schemaData
		for value := range candidates(answer) {
			err := schema.Validate(ctx, value)
			if errors.Is(err, guard.ErrTime) {
				return judge.TooSlow()
			}
			if err == nil {
				d := &schemaData{Matched: value, Not: not, Explanation: "JSON of the response matches the schema", Errors: []invalid{}}
				return judge.Verdict{Pass: !not, Data: d}
			}
			if first == nil {
				first = &schemaData{Matched: value, Not: not, Explanation: "JSON of the response does not match the schema", Errors: mistakes(err)}
			}
		}
		if first == nil {
			return judge.Verdict{Data: &schemaData{Not: not, Explanation: "The response has no JSON"}}
		}
		return judge.Verdict{Pass: not, Data: first}
	}
}

// mistakes returns the schema violations of a value.
func mistakes(err error) []invalid {
	var wrong *jsonschema.ValidationError
	if !errors.As(err, &wrong) {
		return []invalid{{"", "could not be checked"}}
	}
	var out []invalid
	var leaves func(e *jsonschema.ValidationError)
	leaves = func(e *jsonschema.ValidationError) {
		for _, c := range e.Causes {
			leaves(c)
		}
		if len(e.Causes) == 0 && len(out) < maxInvalid {
			out = append(out, invalid{"/" + strings.Join(e.InstanceLocation, "/"), violation(e)})
		}
	}
	leaves(wrong)
	return out
}

// violation returns the text of a violation without the location that the library prepends.
func violation(e *jsonschema.ValidationError) string {
	text := e.Error()
	if at := strings.LastIndex(text, "- at '"); at >= 0 {
		text = text[at:]
	}
	if _, behind, ok := strings.Cut(text, "': "); ok {
		return behind
	}
	return text
}

type keysData struct {
	Matched     any      `json:"matchedJson"`
	Verdict     bool     `json:"verdict"`
	Explanation string   `json:"explanation"`
	Present     []string `json:"presentKeys"`
	Missing     []string `json:"missingKeys"`
	Operator    string   `json:"operator"`
}

// jsonKeys passes a response with JSON that has any, all or none of the keys at its top level.
func jsonKeys(raw map[string]json.RawMessage) judge.Func {
	keys, ok := judge.Read[[]string](raw, "keys")
	operator := judge.Get(raw, "operator", "any")
	if !ok || len(keys) == 0 {
		return constant(failed("Missing keys"))
	}
	if !slices.Contains(operators, operator) {
		return constant(failed(badOperator))
	}
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		answer := s.Text()
		if answer == "" {
			return judge.NoContent("Missing text to check")
		}
		var best *keysData
		for value := range candidates(answer) {
			object, ok := value.(map[string]any)
			if !ok {
				continue
			}
			d := &keysData{Matched: value, Present: []string{}, Missing: []string{}, Operator: operator}
			for _, k := range keys {
				if _, has := object[k]; has {
					d.Present = append(d.Present, k)
				} else {
					d.Missing = append(d.Missing, k)
				}
			}
			if d.Verdict, d.Explanation = quantify(operator, len(d.Present), len(d.Missing), "keys"); d.Verdict {
				return judge.Verdict{Pass: true, Data: d}
			}
			if best == nil || len(d.Present) > len(best.Present) {
				best = d
			}
		}
		if best == nil {
			best = &keysData{Explanation: "The response has no JSON", Present: []string{}, Missing: slices.Clone(keys), Operator: operator}
		}
		return judge.Verdict{Data: best}
	}
}

// candidates iterates over the JSON of a response: its fenced blocks, or the objects in its
// text if no block is JSON.
func candidates(text string) func(func(any) bool) {
	return func(yield func(any) bool) {
		n, found := 0, false
		try := func(raw string) bool {
			if n++; n > maxCandidates {
				return false
			}
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(raw)))
			if err != nil {
				return true
			}
			found = true
			return yield(value)
		}
		for f := range fences(text) {
			if (f.tag == "" || strings.EqualFold(f.tag, "json")) && !try(strings.TrimSpace(f.body)) {
				return
			}
		}
		if found {
			return
		}
		for at := strings.IndexByte(text, '{'); at >= 0 && n <= maxCandidates; {
			end := closing(text, at)
			if end < 0 {
				n++
				end = at + 1
			} else if !try(text[at:end]) {
				return
			}
			next := strings.IndexByte(text[end:], '{')
			if next < 0 {
				return
			}
			at = end + next
		}
	}
}

// closing returns the end of the object that begins at a position, or -1 if it is not closed.
func closing(text string, at int) int {
	depth, in := 0, false
	for i := at; i < len(text); i++ {
		switch c := text[i]; {
		case in && c == '\\':
			i++
		case c == '"':
			in = !in
		case in:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
