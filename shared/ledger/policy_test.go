package ledger

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestPoliciesMatchRequestsAndNameCounters(t *testing.T) {
	t.Parallel()
	request := map[string][]string{
		"api_key": {"k1"}, "provider": {"openai"}, "model": {"@mine/gpt-4o", "@openai/gpt-4o"}, "metadata.team": {"red"}, "metadata.empty": {""},
	}
	attribute := func(key string) []string { return request[key] }
	for conditions, want := range map[string]bool{
		`[{"key":"api_key","value":"k1"}]`: true, `[{"key":"api_key","value":["k2","k1"]}]`: true, `[{"key":"api_key","value":"k2"}]`: false, `[{"key":"api_key","value":"*"}]`: true,
		`[{"key":"api_key","value":"*","excludes":"k1"}]`: false, `[{"key":"api_key","value":"k1","excludes":["k1"]}]`: false, `[{"key":"api_key","value":"*","excludes":["k2"]}]`: true,
		`[{"key":"api_key","value":"*","excludes":"*"}]`: false, `[{"key":"metadata.none","value":"*"}]`: false, `[{"key":"metadata.empty","value":"*"}]`: false,
		`[{"key":"model","value":"@mine/*"}]`: true, `[{"key":"model","value":"@openai/*"}]`: true, `[{"key":"model","value":"@min/*"}]`: false, `[{"key":"model","value":"@openai/gpt-4o"}]`: true,
		`[{"key":"model","value":"@openai/gpt-4"}]`: false, `[{"key":"model","value":"@openai/*","excludes":"@mine/gpt-4o"}]`: false, `[{"key":"metadata.team","value":"red/*"}]`: false,
		`[{"key":"api_key","value":"k1"},{"key":"metadata.team","value":"red"}]`: true, `[{"key":"api_key","value":"k1"},{"key":"metadata.team","value":"blue"}]`: false,
	} {
		var p PolicyForm
		if err := json.Unmarshal([]byte(`{"conditions":`+conditions+`}`), &p); err != nil {
			t.Fatal(err)
		}
		if got := p.Matches(attribute); got != want {
			t.Errorf("%s: %v", conditions, got)
		}
		if back, err := json.Marshal(p.Conditions); err != nil || string(back) != conditions {
			t.Errorf("%s is kept as %s", conditions, back)
		}
	}
	for _, c := range []struct {
		groups []Group
		want   string
		ok     bool
	}{
		{nil, "*", true}, {[]Group{{"metadata.team"}}, "metadata.team:red", true}, {[]Group{{"api_key"}, {"metadata.team"}}, "api_key:k1,metadata.team:red", true},
		{[]Group{{"api_key"}, {"config"}}, "", false}, {[]Group{{"metadata.empty"}}, "", false},
	} {
		if got, ok := (&PolicyForm{GroupBy: c.groups}).ValueKey(attribute); got != c.want || ok != c.ok {
			t.Errorf("%v: %q %v", c.groups, got, ok)
		}
	}
}

// Requests with different values never share a counter, whatever the values contain; the keys
// of values without separators stay those of stored counters.
func TestValueKeysAreInjective(t *testing.T) {
	t.Parallel()
	texts := []string{"", `\`, ",", ",metadata.b:v", `\,metadata.b:v`}
	var values []string
	for _, a := range texts {
		for _, b := range texts {
			for _, c := range texts {
				values = append(values, "v"+a+b+c)
			}
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	for _, groups := range [][]Group{{{"metadata.a"}}, {{"metadata.a"}, {"metadata.b"}}} {
		seen := map[string][2]string{}
		for _, a := range values {
			for _, b := range values {
				if len(groups) == 1 && b != values[0] {
					break
				}
				request := map[string][]string{"metadata.a": {a}, "metadata.b": {b}}
				key, ok := (&PolicyForm{GroupBy: groups}).ValueKey(func(k string) []string { return request[k] })
				if other, taken := seen[key]; !ok || taken {
					t.Fatalf("%q and %q share the counter %q", other, [2]string{a, b}, key)
				}
				seen[key] = [2]string{a, b}
			}
		}
	}
}
