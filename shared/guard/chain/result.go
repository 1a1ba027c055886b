package chain

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"gateway/shared/fault"
	"gateway/shared/guard/judge"
	"gateway/shared/wire"
)

// Result is the result of a hook in responses and logs.
type Result struct {
	Verdict     bool          `json:"verdict"`
	ID          string        `json:"id"`
	Label       string        `json:"-"` // name of the guardrail in messages
	Transformed bool          `json:"transformed"`
	Checks      []CheckResult `json:"checks"`
	Feedback    *Feedback     `json:"feedback"`
	Time        int64         `json:"execution_time"` // milliseconds
	Async       bool          `json:"async"`
	Type        string        `json:"type"`
	Created     time.Time     `json:"created_at"`
	Deny        bool          `json:"deny"` // the hook failed and denies
}

// CheckResult is the result of one of the hook's checks.
type CheckResult struct {
	ID          string         `json:"id"`
	Verdict     bool           `json:"verdict"`
	Data        any            `json:"data"`
	Error       *judge.Failure `json:"error,omitempty"`
	Time        int64          `json:"execution_time"` // milliseconds
	Transformed bool           `json:"transformed"`
	Created     time.Time      `json:"created_at"`
	Log         any            `json:"log"`
	FailOnError bool           `json:"fail_on_error"`
}

// passes reports whether the check does not make the hook fail.
func (c *CheckResult) passes() bool { return c.Verdict || c.Error != nil && !c.FailOnError }

// failed returns the ids of the checks that made the hook fail.
func (r *Result) failed() (ids []string) {
	for i := range r.Checks {
		if c := &r.Checks[i]; !c.passes() {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Denial returns the message for a client after a request or response was denied. It names the
// guardrail that caused the denial and its failed checks, and does not quote the judged text.
func Denial(results []Result) string {
	const sentence = "The guardrail checks defined in the config failed."
	var by *Result
	for i := range results {
		if r := &results[i]; r.Deny || by == nil && (!r.Verdict || r.Transformed) {
			if by = r; r.Deny {
				break
			}
		}
	}
	if by == nil {
		return sentence
	}
	message := sentence + " Guardrail " + strconv.Quote(fault.Clip(cmp.Or(by.Label, by.ID), 200))
	switch ids := by.failed(); len(ids) {
	case 0:
	case 1:
		message += ", check " + ids[0]
	default:
		message += ", checks " + strings.Join(ids, ", ")
	}
	return message + "."
}

// Feedback is recorded on the request's trace.
type Feedback struct {
	Value    int64          `json:"value"`
	Weight   float64        `json:"weight"`
	Metadata map[string]any `json:"metadata"`
}

// feedbackOf returns the feedback for the outcome of the checks.
func (h *Hook) feedbackOf(checks []CheckResult) *Feedback {
	var passed, failed, errored []string
	for i := range checks {
		switch c := &checks[i]; {
		case c.Error != nil:
			errored = append(errored, c.ID)
		case c.Verdict:
			passed = append(passed, c.ID)
		default:
			failed = append(failed, c.ID)
		}
	}
	f := h.feedback.success
	if len(failed) > 0 {
		f = h.feedback.fail
	}
	if f == nil {
		return nil
	}
	out := &Feedback{Value: f.Value, Weight: f.Weight, Metadata: map[string]any{}}
	var text string
	if json.Unmarshal(f.Metadata, &out.Metadata) != nil && json.Unmarshal(f.Metadata, &text) == nil && text != "" {
		out.Metadata = map[string]any{"metadata": text}
	}
	if out.Metadata == nil {
		out.Metadata = map[string]any{}
	}
	for name, list := range map[string][]string{"successfulChecks": passed, "failedChecks": failed, "erroredChecks": errored} {
		out.Metadata[name] = strings.Join(list, ", ")
	}
	return out
}

// Results are the results of a request's hooks, except of hooks that ran asynchronously.
type Results struct {
	Before, After []Result
}

// WithAfter returns the results with further ones of output hooks.
func (r Results) WithAfter(results []Result) Results {
	r.After = append(r.After, results...)
	return r
}

// Unquoted returns the results without the data that may quote the judged text.
func (r *Results) Unquoted() *Results { return &Results{Unquoted(r.Before), Unquoted(r.After)} }

// Then returns the result for a stream of which next judged a later part: that of the first part
// that fails.
func (r Result) Then(next Result) Result {
	changed := r.Transformed || next.Transformed
	if r.Verdict {
		r = next
	}
	r.Transformed = changed
	return r
}

// Unquoted returns copies of results without the data and the log of their checks.
func Unquoted(results []Result) []Result {
	out := slices.Clone(results)
	for i := range out {
		out[i].Checks = slices.Clone(out[i].Checks)
		for j := range out[i].Checks {
			out[i].Checks[j].Data, out[i].Checks[j].Log = nil, nil
		}
	}
	return out
}

// Empty reports whether there are no results.
func (r *Results) Empty() bool { return len(r.Before)+len(r.After) == 0 }

// Append appends the field of a response: {"before_request_hooks":[],...}. A cached response
// has no hooks after the response.
func (r *Results) Append(dst []byte, after bool) []byte {
	dst = append(dst, `{"before_request_hooks":`...)
	dst = appendResults(dst, r.Before)
	if after {
		dst = r.AppendAfter(append(dst, ','))
	}
	return append(dst, '}')
}

// AppendAfter appends the field of the hooks after the response.
func (r *Results) AppendAfter(dst []byte) []byte {
	return appendResults(append(dst, `"after_request_hooks":`...), r.After)
}

func appendResults(dst []byte, list []Result) []byte {
	if len(list) == 0 {
		return append(dst, '[', ']')
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return append(dst, '[', ']') // a check reported invalid JSON
	}
	return append(dst, raw...)
}

// AppendTo inserts the results after the other fields of a response that is an object.
func (r *Results) AppendTo(dst, body []byte, after bool) []byte {
	end := len(body)
	for end > 0 && (body[end-1] == ' ' || body[end-1] == '\n' || body[end-1] == '\r' || body[end-1] == '\t') {
		end--
	}
	if end < 2 || body[end-1] != '}' || wire.KindOf(body) != wire.KindObject {
		return append(dst, body...)
	}
	dst = append(dst, body[:end-1]...)
	at := len(dst) - 1
	for at > 0 && (dst[at] == ' ' || dst[at] == '\n' || dst[at] == '\r' || dst[at] == '\t') {
		at--
	}
	if dst[at] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, `"hook_results":`...)
	return append(append(r.Append(dst, after), '}'), body[end:]...)
}

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
