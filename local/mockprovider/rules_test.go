package mockprovider

import (
	"encoding/json"
	"testing"
)

// Each condition of rules rejects what it excludes, and names the place.
func TestRulesNameTheFirstViolation(t *testing.T) {
	const all = `name!:s<3 n:1..8i/2 share:0..0.5 kind=a|b list<2[]{id!!:s} either:sa[]{x} inner{... must!} -gone`
	r := parseRules(all)
	for _, c := range []struct{ body, what, at string }{
		{`{"name":"abc","n":4,"share":0.5,"kind":"a","list":[{"id":"x"}],"either":"text","inner":{"must":1,"more":2}}`, "", ""},
		{`{"name":"abc","n":null,"kind":null,"list":null}`, "", ""},
		{`{"name":"abc","either":[{"x":1}]}`, "", ""},
		{`{}`, "missing", "name"},
		{`{"name":null}`, "missing", "name"},
		{`{"name":1}`, "kind", "name"},
		{`{"name":"abcd"}`, "long", "name"},
		{`{"name":"a","other":1}`, "unknown", "other"},
		{`{"name":"a","gone":1}`, "unknown", "gone"},
		{`{"name":"a","n":0}`, "below", "n"},
		{`{"name":"a","n":9}`, "above", "n"},
		{`{"name":"a","n":1.5}`, "kind", "n"},
		{`{"name":"a","n":3}`, "kind", "n"},
		{`{"name":"a","n":"2"}`, "kind", "n"},
		{`{"name":"a","share":0.6}`, "above", "share"},
		{`{"name":"a","kind":"c"}`, "value", "kind"},
		{`{"name":"a","kind":1}`, "kind", "kind"},
		{`{"name":"a","list":"x"}`, "kind", "list"},
		{`{"name":"a","list":["x"]}`, "kind", "list[0]"},
		{`{"name":"a","list":[{"id":"x"},{"id":""}]}`, "missing", "list[1].id"},
		{`{"name":"a","list":[{"id":"x","y":1}]}`, "unknown", "list[0].y"},
		{`{"name":"a","list":[{"id":"x"},{"id":"x"},{"id":"x"}]}`, "long", "list"},
		{`{"name":"a","either":1}`, "kind", "either"},
		{`{"name":"a","inner":{}}`, "missing", "inner.must"},
		{`{"name":"a","inner":[]}`, "kind", "inner"},
	} {
		v, err := parseJSON(c.body)
		if err != nil {
			t.Fatal(err)
		}
		got := violation{}
		if bad := r.check(v, ""); bad != nil {
			got = *bad
		}
		if got.what != c.what || got.at != c.at {
			t.Errorf("%s: %s at %q, want %s at %q", c.body, got.what, got.at, c.what, c.at)
		}
	}
}

// Every kind of object and every operation of a host rejects a field that it does not have.
func TestDescribedBodiesRejectUnknownFields(t *testing.T) {
	body, err := parseJSON(`{"a_field_of_no_host":1}`)
	if err != nil {
		t.Fatal(err)
	}
	closed := func(name string, r *rules) {
		if r != nil && (r.open || r.check(body, "") == nil) {
			t.Errorf("%s accepts unknown fields", name)
		}
	}
	for name, c := range collections() {
		closed(name, c.creates)
		closed(name+" (changes)", c.changes)
	}
	for _, w := range wires() {
		if closed(w.head+"*"+w.tail, w.rules); w.rules == nil {
			t.Errorf("%s*%s has no rules", w.head, w.tail)
		}
	}
}

func TestTemplatesInsertValues(t *testing.T) {
	get := values(map[string]any{"id": "a\"b", "n": int64(3), "none": nil, "state": "done", "empty": ""})
	for template, want := range map[string]string{
		`{"id":<id>,"n":<n>,"none":<none>}`:                `{"id":"a\"b","n":3,"none":null}`,
		"{\n  <?n>\"n\":1,</>\n  \"x\":<?none>1<:>2</>}":   `{"n":1,"x":2}`,
		`<?state=open|done>yes<:>no</>`:                    `yes`,
		`<?state=open>yes<:>no</>`:                         `no`,
		`<?empty>yes</>[<?n><?state=done>both</>,</>true]`: `[both,true]`,
	} {
		if got := string(parseTemplate(template).fill(nil, get)); got != want {
			t.Errorf("%s: %s, want %s", template, got, want)
		}
	}
	if got := string(fill(`{"a":$,"b":[$],"c":$}`, "x", json.RawMessage("1,2"), nil)); got != `{"a":"x","b":[1,2],"c":null}` {
		t.Error(got)
	}
}
