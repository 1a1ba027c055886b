package guardrail

import (
	"testing"
)

// TestQueriesStandBesideBodies: guardrails see both in one object, and a changed body is sent
// without the query.
func TestQueriesStandBesideBodies(t *testing.T) {
	t.Parallel()
	const query = `{"text":"q"}`
	for body, want := range map[string]string{
		``:                           `{"query_parameters":{"text":"q"}}`,
		`{}`:                         `{"query_parameters":{"text":"q"}}`,
		` { "a" : 1 }`:               `{"query_parameters":{"text":"q"},"a" : 1 }`,
		`[{"text":"a"}]`:             `{"query_parameters":{"text":"q"},"body":[{"text":"a"}]}`,
		`{"query_parameters":"own"}`: `{"query_parameters":{"text":"q"},"query_parameters":"own"}`,
	} {
		if got := string(withQuery([]byte(body), []byte(query))); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	for _, c := range []struct {
		changed, body, want string
		ok                  bool
	}{
		{`{"query_parameters":{"text":"q"},"a":"x"}`, `{"a":"y"}`, `{"a":"x"}`, true},
		{`{"a":"x","query_parameters": {"text": "q"}}`, `{"a":"y"}`, `{"a":"x"}`, true},
		{`{"query_parameters":{"text":"x"},"a":"y"}`, `{"a":"y"}`, "", false},
		{`{"a":"x"}`, `{"a":"y"}`, "", false},
		{`{"query_parameters":{"text":"q"},"body":["x"]}`, `["y"]`, "", false},
		{`{"query_parameters":{"text":"x"}}`, ``, "", false},
	} {
		now, ok := withoutQuery([]byte(c.changed), []byte(c.body), []byte(query))
		if ok != c.ok || ok && string(now) != c.want {
			t.Errorf("%s: %s %t", c.changed, now, ok)
		}
	}
}
