package cache

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gateway/shared/store"
)

func TestWhatChangesAKey(t *testing.T) {
	base := mustKey(t, question())
	body := func(s string) func(*Query) { return func(q *Query) { q.Body = []byte(s) } }
	const messages = `"messages":[{"role":"user","content":"Where is Ulm?"}]`
	for name, change := range map[string]func(*Query){
		"organisation":     func(q *Query) { q.Scope.Org = "other" },
		"workspace":        func(q *Query) { q.Scope.Workspace = "ws-2" },
		"operation":        func(q *Query) { q.Operation = "complete" },
		"dialect":          func(q *Query) { q.Dialect = "anthropic.messages" },
		"leniency":         func(q *Query) { q.Lenient = true },
		"provider":         func(q *Query) { q.Provider = "azure-openai" },
		"saved provider":   func(q *Query) { q.Saved = "p-2" },
		"model":            func(q *Query) { q.Model = "gpt-4o" },
		"address":          func(q *Query) { q.URL += "?v=2" },
		"metadata value":   func(q *Query) { q.Metadata = map[string]string{"team": "red", "_user": "ann"} },
		"metadata name":    func(q *Query) { q.Metadata = map[string]string{"group": "blue", "_user": "ann"} },
		"less metadata":    func(q *Query) { q.Metadata = map[string]string{"team": "blue"} },
		"no metadata":      func(q *Query) { q.Metadata = nil },
		"namespace":        func(q *Query) { q.Namespace = "n" },
		"a parameter":      body(`{"model":"gpt-4o-mini",` + messages + `,"temperature":1}`),
		"one parameter":    body(`{"model":"gpt-4o-mini",` + messages + `,"temperature":0,"seed":1}`),
		"no parameter":     body(`{"model":"gpt-4o-mini",` + messages + `}`),
		"the user's words": body(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"where is Ulm?"}],"temperature":0}`),
		"inner order":      body(`{"model":"gpt-4o-mini","messages":[{"content":"Where is Ulm?","role":"user"}],"temperature":0}`),
		"inner stream":     body(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Where is Ulm?","stream":true}],"temperature":0}`),
		"user":             body(`{"model":"gpt-4o-mini",` + messages + `,"temperature":0,"user":"ann"}`),
	} {
		q := question()
		change(&q)
		if mustKey(t, q) == base {
			t.Errorf("%s does not change the key", name)
		}
	}
}

func TestWhatDoesNotChangeAKey(t *testing.T) {
	base := mustKey(t, question())
	for name, body := range map[string]string{
		"stream":      `{"model":"gpt-4o-mini","stream":true,"messages":[{"role":"user","content":"Where is Ulm?"}],"temperature":0}`,
		"no stream":   `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Where is Ulm?"}],"temperature":0,"stream":false}`,
		"options":     `{"model":"gpt-4o-mini","stream_options":{"include_usage":true},"stream":true,"messages":[{"role":"user","content":"Where is Ulm?"}],"temperature":0}`,
		"white space": "{\n \"model\" : \"gpt-4o-mini\", \"messages\": [ {\"role\": \"user\", \"content\":\"Where is Ulm?\"} ],\t\"temperature\": 0 }",
		"order":       `{"temperature":0,"messages":[{"role":"user","content":"Where is Ulm?"}],"model":"gpt-4o-mini"}`,
	} {
		q := question()
		q.Body = []byte(body)
		if mustKey(t, q) != base {
			t.Errorf("%s changes the key", name)
		}
	}
	q := question()
	q.Namespace = "n"
	named := mustKey(t, q)
	if q.Metadata = nil; mustKey(t, q) != named {
		t.Error("metadata counts beside a namespace")
	}
}

func TestBodiesWithoutAKey(t *testing.T) {
	for _, body := range []string{"", "[]", "null", "1", `"x"`, "{", `{"a":}`, `{"a":1}x`, "--b\r\n"} {
		q := question()
		q.Body = []byte(body)
		if _, err := q.Key(); err != ErrNotJSON {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// Texts cannot move from one member of a question into the next.
func TestKeysAreOfMembersNotOfTheirSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringOfN(rapid.RuneFrom([]rune("ab#%/")), 0, 4, -1)
		draw := func() Query {
			return Query{
				Scope:     store.Scope{Org: "o" + word.Draw(t, "org"), Workspace: word.Draw(t, "workspace")},
				Operation: word.Draw(t, "operation"), Provider: word.Draw(t, "provider"), Saved: word.Draw(t, "saved"), URL: word.Draw(t, "url"),
				Namespace: word.Draw(t, "namespace"), Metadata: rapid.MapOfN(word, word, 0, 2).Draw(t, "metadata"),
				Body: []byte(fmt.Sprintf(`{%q:%q}`, word.Draw(t, "name"), word.Draw(t, "value"))),
			}
		}
		a, b := draw(), draw()
		ka, err := a.Key()
		if err != nil {
			t.Fatal(err)
		}
		kb, err := b.Key()
		if err != nil {
			t.Fatal(err)
		}
		if a.Namespace != "" {
			a.Metadata = nil
		}
		if b.Namespace != "" {
			b.Metadata = nil
		}
		ja, _ := json.Marshal(a)
		jb, _ := json.Marshal(b)
		same := string(ja) == string(jb) || len(a.Metadata)+len(b.Metadata) == 0 && strings.ReplaceAll(string(ja), `{}`, "null") == strings.ReplaceAll(string(jb), `{}`, "null")
		if same != (ka == kb) {
			t.Fatalf("%s\n%s\nequal %v, keys equal %v", ja, jb, same, ka == kb)
		}
	})
}

func TestKeysOfRowsAndBlobs(t *testing.T) {
	for _, sc := range []store.Scope{here, {Org: "a/b", Workspace: "c#d%2F"}, {Org: "ä", Workspace: "w"}} {
		q := question()
		q.Scope = sc
		k := mustKey(t, q)
		if got, ok := ofBlob(k.blob()); !ok || got != k {
			t.Errorf("%v: the blob's name %s does not lead back", sc, k.blob())
		}
		if row := k.row(); !strings.HasPrefix(row.PK(), sc.Partition("CACHE").String()) || len(row.SK()) != 64 {
			t.Errorf("row %s %s", row.PK(), row.SK())
		}
	}
	for _, name := range []string{"", "cache/", "cache/a/b", "cache/a/b/zz", "cache//b/" + strings.Repeat("0", 64), "bodies/a/b/" + strings.Repeat("0", 64), "cache/%zz/b/" + strings.Repeat("0", 64)} {
		if _, ok := ofBlob(name); ok {
			t.Errorf("%q counts as an answer's", name)
		}
	}
}

func TestAge(t *testing.T) {
	for requested, want := range map[time.Duration]time.Duration{
		0: DefaultAge, -time.Second: DefaultAge, time.Second: MinAge, time.Minute: time.Minute, time.Hour: time.Hour,
		MaxAge: MaxAge, MaxAge + time.Second: MaxAge,
	} {
		if got := Age(requested); got != want {
			t.Errorf("Age(%v) = %v, want %v", requested, got, want)
		}
	}
}

func FuzzKey(f *testing.F) {
	f.Add([]byte(`{"model":"m","stream":true,"messages":[]}`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Add([]byte(`{"stre\u0061m":true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		q := question()
		q.Body = body
		k, err := q.Key()
		if (err == nil) != json.Valid(body) && err == nil {
			t.Fatalf("a key of %q, which is not JSON", body)
		}
		again, err2 := q.Key()
		if k != again || (err == nil) != (err2 == nil) {
			t.Fatal("two keys of one question")
		}
	})
}
