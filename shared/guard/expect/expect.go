// Package expect evaluates test tables of prompts: it validates their assertions and reports
// whether they hold for a response. It uses the patterns and schemas of guardrails with their
// limits.
//
// Do not add calls of models or guardrails here; the caller makes both.
package expect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/prompt"
)

// maxText is the length limit of a text to compare with, in bytes.
const maxText = 10_000

// Validate returns the faults of a table that the limits in the struct tags do not cover.
// Fields are relative to the field with the table.
func Validate(field string, table []prompt.Case) (bad []fault.Detail) {
	if raw, err := json.Marshal(table); err != nil || len(raw) > prompt.MaxTable {
		return []fault.Detail{{Field: field, Message: fmt.Sprintf("must have at most %d bytes of JSON", prompt.MaxTable)}}
	}
	names := map[string]bool{}
	for i := range table {
		c := &table[i]
		at := fmt.Sprintf("%s[%d]", field, i)
		if names[c.Name] {
			bad = append(bad, fault.Detail{Field: at + ".name", Message: "is the name of another test"})
		}
		names[c.Name] = true
		for k := range c.Assertions {
			if d := check(&c.Assertions[k], c.RenderOnly); d.Message != "" {
				d.Field = strings.TrimSuffix(fmt.Sprintf("%s.assertions[%d].%s", at, k, d.Field), ".")
				bad = append(bad, d)
			}
		}
	}
	return bad
}

// check returns the fault of an assertion; its message is empty if there is none.
func check(a *prompt.Assertion, renderOnly bool) fault.Detail {
	switch {
	case !slices.Contains(prompt.Assertions, a.Type):
		return fault.Detail{Field: "type", Message: "must be one of " + strings.Join(prompt.Assertions, ", ")}
	case a.On != "" && a.On != prompt.OnAnswer && a.On != prompt.OnRendered:
		return fault.Detail{Field: "on", Message: "must be " + prompt.OnAnswer + " or " + prompt.OnRendered}
	case renderOnly && a.On == prompt.OnAnswer:
		return fault.Detail{Field: "on", Message: "must be " + prompt.OnRendered + ": this test calls no model"}
	case a.Type == prompt.MaxLatency && (renderOnly || a.On == prompt.OnRendered):
		return fault.Detail{Field: "type", Message: "is about a response"}
	}
	if message := value(a); message != "" {
		return fault.Detail{Field: "value", Message: message}
	}
	return fault.Detail{}
}

// value returns the fault of an assertion's value, or "".
func value(a *prompt.Assertion) string {
	switch a.Type {
	case prompt.MaxLatency:
		var n int64
		if json.Unmarshal(a.Value, &n) != nil || n < 1 || n > 600_000 {
			return "must be a whole number of milliseconds, 1 to 600000"
		}
		return ""
	case prompt.JSONSchema:
		if raw := bytes.TrimSpace(a.Value); len(raw) == 0 || raw[0] != '{' {
			return "must be a JSON Schema: an object"
		}
		if _, err := guard.SchemaOf(a.Value); err != nil {
			return err.Error()
		}
		return ""
	}
	var s string
	switch err := json.Unmarshal(a.Value, &s); {
	case err != nil:
		return "must be a text"
	case s == "" && a.Type != prompt.Equals:
		return "must not be empty"
	case len(s) > maxText:
		return fmt.Sprintf("must have at most %d bytes", maxText)
	}
	if a.Type == prompt.Regex {
		if _, err := guard.PatternOf(s); err != nil {
			return err.Error()
		}
	}
	return ""
}

// Outcome is the input of an assertion.
type Outcome struct {
	Text    string        // of the response, or the rendered prompt
	Latency time.Duration // of the response
	Guard   func(name string) (passes bool, err error)
}

// Judge reports whether a valid assertion holds, and otherwise the reason, which does not quote
// the text. Searches share the budget of ctx, see guard.BudgetOf.
func Judge(ctx context.Context, a *prompt.Assertion, o *Outcome) (holds bool, why string) {
	text := func() (s string) { _ = json.Unmarshal(a.Value, &s); return s } // validated by Validate
	switch a.Type {
	case prompt.Contains:
		return result(strings.Contains(o.Text, text()), "the text does not occur")
	case prompt.NotContains:
		return result(!strings.Contains(o.Text, text()), "the text occurs")
	case prompt.Equals:
		return result(strings.TrimSpace(o.Text) == strings.TrimSpace(text()), "the text is different")
	case prompt.Regex:
		return matches(ctx, text(), o.Text)
	case prompt.JSONSchema:
		return fits(ctx, a.Value, o.Text)
	case prompt.MaxLatency:
		var n int64
		_ = json.Unmarshal(a.Value, &n)
		return result(o.Latency <= time.Duration(n)*time.Millisecond, fmt.Sprintf("it took %d ms", o.Latency.Milliseconds()))
	}
	passes, err := o.Guard(text())
	if err != nil {
		return false, fault.From(err).Message
	}
	return result(passes, "the guardrail failed")
}

func result(holds bool, otherwise string) (bool, string) {
	if holds {
		return true, ""
	}
	return false, otherwise
}

const tooSlow = "the pattern takes too long"

func matches(ctx context.Context, pattern, text string) (holds bool, why string) {
	re, err := guard.PatternOf(pattern)
	if err != nil {
		return false, err.Error()
	}
	found, wrong := false, guard.ErrTime
	_ = guard.BudgetOf(ctx).Spend(ctx, func(ctx context.Context) { found, wrong = re.Match(ctx, text) })
	if wrong != nil {
		return false, tooSlow
	}
	return result(found, "nothing matches the pattern")
}

// fits reports whether a text is JSON that matches a schema.
func fits(ctx context.Context, schema []byte, text string) (holds bool, why string) {
	s, err := guard.SchemaOf(schema)
	if err != nil {
		return false, err.Error()
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return false, "it is not JSON"
	}
	wrong := guard.ErrTime
	_ = guard.BudgetOf(ctx).Spend(ctx, func(ctx context.Context) { wrong = s.Validate(ctx, v) })
	if errors.Is(wrong, guard.ErrTime) {
		return false, tooSlow
	}
	return result(wrong == nil, "it does not match the schema")
}
