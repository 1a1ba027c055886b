package route

import (
	"encoding/json"
	"reflect"
	"testing"
)

func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatalf("%s: %v", a, err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return reflect.DeepEqual(x, y)
}

func TestApplyParams(t *testing.T) {
	for _, c := range []struct{ name, config, body, want string }{
		{"override present and absent", `{"override_params":{"a":2,"b":[1]}}`, `{ "a" : 1,"c":3 }`, `{"b":[1], "a" : 2,"c":3 }`},
		{"default only when absent", `{"default_params":{"a":2,"b":3,"c":4}}`, `{"a":1,"c":null}`, `{"b":3,"a":1,"c":4}`},
		{"override over default", `{"default_params":{"a":2},"override_params":{"a":3}}`, `{}`, `{"a":3}`},
		{"drop over override", `{"override_params":{"a":3},"drop_params":["a"]}`, `{"a":1,"b":2}`, `{"b":2}`},
		{"drop of nothing", `{"drop_params":["a","x.y","l[3]"]}`, `{"b":2,"l":[1]}`, `{"b":2,"l":[1]}`},
		{"drop below", `{"drop_params":["metadata.internal"]}`, `{"metadata":{"internal":1,"x":{"internal":2}}}`, `{"metadata":{"x":{"internal":2}}}`},
		{"drop an index", `{"drop_params":["l[0]","l[2]"]}`, `{"l":[1,2,3,4]}`, `{"l":[2,4]}`},
		{"drop every element", `{"drop_params":["l[*]"]}`, `{"l":[1, 2]}`, `{"l":[ ]}`},
		{"several wildcards", `{"drop_params":["messages[*].content[*].cache_control.scope"]}`,
			`{"messages":[{"content":"x"},{"content":[{"cache_control":{"scope":1,"type":"e"}},{"cache_control":{"scope":2}},5]}]}`,
			`{"messages":[{"content":"x"},{"content":[{"cache_control":{"type":"e"}},{"cache_control":{}},5]}]}`},
		{"nested indexes", `{"drop_params":["m[1][0]"]}`, `{"m":[[1,2],[3,4]]}`, `{"m":[[1,2],[4]]}`},
		{"drop inside what was overridden", `{"override_params":{"a":{"x":1,"y":2}},"drop_params":["a.x"]}`, `{}`, `{"a":{"y":2}}`},
		{"parent and child", `{"drop_params":["a.b.c","a.b"]}`, `{"a":{"b":{"c":1},"d":2}}`, `{"a":{"d":2}}`},
		{"model without its saved provider", `{"override_params":{"model":"@s/m\"1"}}`, `{"model":"x"}`, `{"model":"m\"1"}`},
		{"default model", `{"default_params":{"model":"@s/m"}}`, `{}`, `{"model":"m"}`},
		{"key with escapes", `{"override_params":{"a\"b":1}}`, `{"a\"b":0}`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			leaf := compile(t, c.config, Strict).Leaves()[0]
			if leaf.IsUnchanged() {
				t.Fatal("the leaf has edits")
			}
			got, err := leaf.Apply([]byte("prefix"), []byte(c.body))
			if c.want == "" {
				if err == nil {
					t.Errorf("an ambiguous key must be refused, got %s", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != "prefix"+c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestApplyRefusesAnAmbiguousBody(t *testing.T) {
	leaf := compile(t, `{"override_params":{"temperature":0}}`, Strict).Leaves()[0]
	for _, body := range []string{`{"temperature":1,"temperature":2}`, `{"Temperature":1}`, `{"temp\u0065rature":1}`, `[]`} {
		if got, err := leaf.Apply(nil, []byte(body)); err == nil {
			t.Errorf("%s became %s", body, got)
		}
	}
}

func BenchmarkWalkFallback(b *testing.B) {
	tree := compile(b, fullExample, Strict)
	ctx := Context{Metadata: map[string]string{"plan": "pro"}}
	b.ReportAllocs()
	for b.Loop() {
		w := tree.Start(ctx)
		for {
			leaf, f := w.Next(Outcome{Status: 500})
			if f != nil {
				b.Fatal(f)
			}
			if leaf == nil {
				break
			}
		}
	}
}

func TestStreamsFollowsTheBodyThatTheLeafMakes(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		config    string
		requested *bool
		want      bool
	}{
		{`{"provider":"@a"}`, nil, false}, {`{"provider":"@a"}`, &yes, true}, {`{"provider":"@a"}`, &no, false},
		{`{"override_params":{"stream":true}}`, &no, true}, {`{"override_params":{"stream":true}}`, nil, true}, {`{"override_params":{"stream":false}}`, &yes, false},
		{`{"override_params":{"stream":null}}`, &yes, false},
		{`{"default_params":{"stream":true}}`, nil, true}, {`{"default_params":{"stream":true}}`, &no, false}, {`{"default_params":{"stream":false}}`, &yes, true},
		{`{"default_params":{"stream":true},"override_params":{"stream":false}}`, nil, false},
		{`{"drop_params":["stream"]}`, &yes, false}, {`{"override_params":{"stream":true},"drop_params":["stream"]}`, &yes, false},
		{`{"override_params":{"temperature":1}}`, &yes, true},
	} {
		if got := compile(t, c.config, Strict).Leaves()[0].Streams(c.requested); got != c.want {
			t.Errorf("%s: %v", c.config, got)
		}
	}
}
