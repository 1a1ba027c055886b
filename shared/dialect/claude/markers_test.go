package claude

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMarkersAreAdded(t *testing.T) {
	t.Parallel()
	const short, hour = `"cache_control":{"type":"ephemeral"}`, `"cache_control":{"type":"ephemeral","ttl":"1h"}`
	for name, c := range map[string]struct {
		body, want string
		hour       bool
	}{
		"texts":     {`{"system":"Be brief","messages":[{"role":"user","content":"Hi"}]}`, `{"system":[{"type":"text","text":"Be brief",` + short + `}],"messages":[{"role":"user","content":[{"type":"text","text":"Hi",` + short + `}]}]}`, false},
		"an hour":   {`{"system":"S","messages":[{"role":"user","content":"Hi"}]}`, `{"system":[{"type":"text","text":"S",` + hour + `}],"messages":[{"role":"user","content":[{"type":"text","text":"Hi",` + hour + `}]}]}`, true},
		"blocks":    {`{"system":[{"type":"text","text":"a"}, {"type":"text","text":"b"}],"messages":[{"role":"user","content":[{"type":"text","text":"Hi"} , {"type":"image","source":{}}]}]}`, `{"system":[{"type":"text","text":"a"}, {` + short + `,"type":"text","text":"b"}],"messages":[{"role":"user","content":[{"type":"text","text":"Hi"} , {` + short + `,"type":"image","source":{}}]}]}`, false},
		"tools":     {`{"tools":[{"name":"a"},{"name":"b"}],"messages":[]}`, `{"tools":[{"name":"a"},{` + short + `,"name":"b"}],"messages":[]}`, false},
		"later":     {`{"tools":[{"name":"b","defer_loading":true}],"messages":[]}`, "", false},
		"its own":   {`{"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}],"tools":[{"name":"a"}],"messages":[{"role":"user","content":"Hi"}]}`, `{"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}],"tools":[{"name":"a"}],"messages":[{"role":"user","content":[{"type":"text","text":"Hi",` + short + `}]}]}`, true},
		"the last":  {`{"messages":[{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]}]}`, "", false},
		"at four":   {`{"messages":[{"role":"user","content":[{"type":"text","text":"1",` + short + `},{"type":"text","text":"2",` + short + `},{"type":"text","text":"3",` + short + `},{"type":"text","text":"4",` + short + `},{"type":"text","text":"5"}]}]}`, "", false},
		"of itself": {`{` + short + `,"system":"S","messages":[{"role":"user","content":"Hi"}]}`, "", false},
		"thinking":  {`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"y"}]}]}`, "", false},
		"empty":     {`{"system":"","messages":[{"role":"user","content":[{"type":"text","text":""}]}]}`, "", false},
		"nothing":   {`{"model":"m"}`, "", false},
		"odd":       {`{"system":5,"tools":{},"messages":[5]}`, "", false},
		"in a text": {`{"messages":[{"role":"user","content":"a \"cache_control\" b"}]}`, `{"messages":[{"role":"user","content":[{"type":"text","text":"a \"cache_control\" b",` + short + `}]}]}`, false},
	} {
		want := c.want
		if want == "" {
			want = c.body
		}
		if got := string(AddCacheMarkers([]byte(c.body), c.hour)); got != want {
			t.Errorf("%s:\n%s, want\n%s", name, got, want)
		}
	}
}

// Whatever a conversation holds: there are never more than four markers, only markers are
// added, and what comes before the last message stays the same when the conversation
// continues.
func TestMarkersPreserveThePrefix(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		block := func(marks *int) string {
			b := `{"type":"text","text":` + quoted(rapid.String().Draw(t, "text"))
			if *marks > 0 && rapid.Bool().Draw(t, "marked") {
				b += `,"cache_control":{"type":"ephemeral"}`
				*marks--
			}
			return b + `}`
		}
		marks := rapid.IntRange(0, MaxMarkers).Draw(t, "marks")
		system := `"system":[` + block(&marks) + `],`
		var turns []string
		for range rapid.IntRange(1, 5).Draw(t, "turns") {
			turns = append(turns, `{"role":"user","content":[`+block(&marks)+`]}`)
		}
		body := func(n int) string { return `{` + system + `"messages":[` + strings.Join(turns[:n], ",") + `]}` }
		whole := AddCacheMarkers([]byte(body(len(turns))), rapid.Bool().Draw(t, "hour"))
		if !json.Valid(whole) || bytes.Count(whole, markerKey) > max(MaxMarkers, strings.Count(body(len(turns)), string(markerKey))) {
			t.Fatalf("%s", whole)
		}
		if bare(whole) != bare([]byte(body(len(turns)))) {
			t.Fatalf("more than markers was changed:\n%s\n%s", whole, body(len(turns)))
		}
	})
}

func quoted(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// bare is a body without markers.
func bare(body []byte) string {
	var v any
	_ = json.Unmarshal(body, &v)
	var strip func(v any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			delete(v, "cache_control")
			for _, inner := range v {
				strip(inner)
			}
		case []any:
			for _, inner := range v {
				strip(inner)
			}
		}
	}
	strip(v)
	raw, _ := json.Marshal(v)
	return string(raw)
}

func FuzzMark(f *testing.F) {
	f.Add([]byte(`{"system":"a","tools":[{"name":"b"}],"messages":[{"role":"user","content":[{"type":"text","text":"c"}]}]}`))
	f.Add([]byte(`{"messages":[{"content":"x"} ]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got := AddCacheMarkers(body, len(body)%2 == 0)
		if json.Valid(body) && !json.Valid(got) {
			t.Errorf("%s became %s", body, got)
		}
		if n := bytes.Count(body, markerKey); bytes.Count(got, markerKey) > max(n, MaxMarkers) {
			t.Errorf("%s became %s", body, got)
		}
	})
}
