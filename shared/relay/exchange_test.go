package relay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gateway/shared/testkit/relaytest"
	"gateway/shared/usage"
)

// exchange is a request with the replies of its providers, and what is required of it.
type exchange struct {
	name, path, body string
	headers          []string
	script           []relaytest.Reply // all of them are needed
	status           int
	has              string // parts of the response, separated by " & ", with headers as lines "Name: value" before the body; "!" precedes a part that must be absent
	sent             string // the same of the last call, with "METHOD URL" as the first line
	attempts         string // statuses of the attempts; "": not compared
}

// run sends the request and checks all but the record, which it returns. The record is zero if
// the request has none.
func (x *exchange) run(t *testing.T, g *relaytest.Gateway) (relaytest.Response, []relaytest.Call, usage.Record) {
	t.Helper()
	g.Script(x.script...)
	got := g.Do("POST", x.path, x.body, x.headers...)
	calls := g.Calls()
	if got.Status != x.status || len(calls) != len(x.script) {
		t.Errorf("%s: %d after %d calls; want %d after %d: %s", x.name, got.Status, len(calls), x.status, len(x.script), got.Body)
	}
	if bad := parts(lines(got.Header)+"\n"+got.Body, x.has); bad != "" {
		t.Errorf("%s: %q in %v %s", x.name, bad, got.Header, got.Body)
	}
	last := ""
	if len(calls) > 0 {
		c := calls[len(calls)-1]
		last = c.Method + " " + c.URL + "\n" + lines(c.Header) + "\n" + c.Body
	}
	if bad := parts(last, x.sent); bad != "" {
		t.Errorf("%s: %q in the call %s", x.name, bad, last)
	}
	records := g.Records()
	if len(records) == 0 {
		return got, calls, usage.Record{}
	}
	r := records[len(records)-1]
	var statuses []string
	for _, a := range r.Attempts {
		statuses = append(statuses, fmt.Sprint(a.Status))
	}
	if have := strings.Join(statuses, " "); x.attempts != "" && have != x.attempts {
		t.Errorf("%s: attempts %s; want %s", x.name, have, x.attempts)
	}
	return got, calls, r
}

func lines(header map[string][]string) string {
	var all []string
	for name, values := range header {
		for _, v := range values {
			all = append(all, name+": "+v)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// parts returns the first of the parts of want that text violates; "" if none does.
func parts(text, want string) string {
	for part := range strings.SplitSeq(want, " & ") {
		rest, absent := strings.CutPrefix(part, "!")
		if part != "" && strings.Contains(text, rest) == absent {
			return part
		}
	}
	return ""
}

// sse returns events of a stream.
func sse(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString(namedEvent(d))
	}
	return b.String()
}

// on returns headers with a config and others.
func on(text string, more ...string) []string { return append(config(text), more...) }
