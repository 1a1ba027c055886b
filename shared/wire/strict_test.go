package wire

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/fault"
)

func TestCheckStrict(t *testing.T) {
	for _, c := range []struct{ name, body, field, message string }{
		{"object", `{"a":{"b":[1,{"c":null}]},"b":1}`, "", ""},
		{"array", `[{"a":1},{"a":1}]`, "", ""},
		{"scalar", ` "x" `, "", ""},
		{"keys that differ in case", `{"a":1,"A":2}`, "", ""},
		{"twice at the top", `{"name":1,"name":2}`, "name", "twice"},
		{"twice below", `{"t":[0,{"w":1,"w":2}]}`, "t[1].w", "twice"},
		{"twice by an escape", `{"t":{"ab":1,"\u0061b":2}}`, "t.ab", "twice"},
		{"not UTF-8", "{\"a\":\"\xff\"}", "a", "UTF-8"},
		{"empty", " ", "", "empty"},
		{"trailing", `{} {}`, "", "after the end"},
		{"cut", `{"a":[`, "a", "ends too early"},
		{"deep", `{"a":[[[[[]]]]]}`, "a[0][0][0][0]", "at most 5 deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckStrict([]byte(c.body), 5)
			if c.message == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			f := fault.From(err)
			if err == nil || f.Status() != 400 || f.Field != c.field || !strings.Contains(f.Message, c.message) {
				t.Errorf("got %v, want a 400 on %q with %q", err, c.field, c.message)
			}
		})
	}
	if err := CheckStrict([]byte(strings.Repeat("[", 1<<20)), 1000); !strings.Contains(fault.From(err).Message, "64") {
		t.Errorf("no caller may go above MaxDepth: %v", err)
	}
}

func TestPathAt(t *testing.T) {
	body := `{"a":1,"messages":[{"role":"user"},{"content":[{"type":"x"},{"b c":[5]}]}]}`
	for _, c := range []struct{ at, want string }{
		{`1,"mess`, "a"}, {`"user"`, "messages[0].role"}, {`"x"`, "messages[1].content[0].type"},
		{`5]`, `messages[1].content[1]["b c"][0]`}, {`{"a"`, ""}, {`[{"role`, "messages"},
	} {
		if got := PathAt([]byte(body), strings.Index(body, c.at)); got != c.want {
			t.Errorf("at %s: got %s, want %s", c.at, got, c.want)
		}
	}
	long := `{"` + strings.Repeat("k", 500) + `":1}`
	if got := PathAt([]byte(long), len(long)-2); len(got) > 64 {
		t.Errorf("a long key must be cut: %d bytes", len(got))
	}
}

// A key that comes twice is found however many others stand between, and however it is written.
func TestKeysTwiceAmongFewAndMany(t *testing.T) {
	for n := range 40 {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":{"k%d":%d},`, i, i, i)
		}
		if err := CheckStrict([]byte("{"+b.String()+`"last":0}`), 9); err != nil {
			t.Errorf("%d keys: %v", n, err)
		}
		for i := range n {
			if CheckStrict([]byte("{"+b.String()+fmt.Sprintf(`"\u006b%d":0}`, i)), 9) == nil {
				t.Errorf("%d keys: the key %d is taken twice", n, i)
			}
		}
	}
}
