package jsonfield

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/chat"
	"gateway/shared/wire"
)

func TestCacheMarker(t *testing.T) {
	for body, want := range map[string]struct {
		c   chat.Cache
		err string
	}{
		`{"type":"ephemeral"}`:            {chat.CacheShort, ""},
		`{"type":"ephemeral","ttl":"5m"}`: {chat.Cache5m, ""},
		`{"ttl":"1h","type":"ephemeral"}`: {chat.Cache1h, ""},
		`{"ttl":null}`:                    {chat.CacheShort, ""},
		`"ephemeral"`:                     {chat.NoCache, ""},
		`{"ttl":"2h"}`:                    {chat.CacheShort, "ttl must be 5m or 1h"},
	} {
		d := wire.NewDecoder([]byte(body))
		got := CacheMarker(d)
		if err := d.End(); got != want.c || (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%s: %v, %v; want %v, %q", body, got, err, want.c, want.err)
		}
	}
}

func TestThinkingPreservesAbsentFields(t *testing.T) {
	r := chat.Reasoning{Thinking: chat.ThinkingAdaptive}
	d := wire.NewDecoder([]byte(`{"budget_tokens":1024,"display":"omitted","type":null}`))
	Thinking(d, &r)
	want := chat.Reasoning{Thinking: chat.ThinkingAdaptive, Budget: chat.Some(int64(1024)), Display: "omitted"}
	if diff := cmp.Diff(want, r); diff != "" || d.End() != nil {
		t.Errorf("%v (-want +got):\n%s", d.Err(), diff)
	}
}

func TestOfFunctionPreservesUnknownFieldsAndTheSchema(t *testing.T) {
	body := []byte(`{"name":"n","description":"","input_schema":{"b" :1, "a":2},"strict":false,"x":[1, 2]}`)
	d := wire.NewDecoder(body)
	var got chat.Tool
	for key := range d.Object {
		OfFunction(d, key, "input_schema", &got)
	}
	if err := d.End(); err != nil {
		t.Fatal(err)
	}
	for i := range body { // nothing may alias the body, which is used again
		body[i] = 'x'
	}
	want := chat.Tool{
		Name: "n", Description: chat.Some(""), Schema: []byte(`{"b" :1, "a":2}`), Strict: chat.Some(false),
		Extra: []chat.Field{{Name: "x", Raw: []byte(`[1, 2]`)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMissingNamesTheObject(t *testing.T) {
	d := wire.NewDecoder([]byte(`{"tools":[{"type":"x"}]}`))
	for range d.Object {
		for range d.Array {
			whole := *d
			d.Skip()
			Missing(d, &whole, "name")
		}
	}
	if err := d.End(); err == nil || !strings.Contains(err.Error(), "tools[0] must have name") {
		t.Errorf("%v", err)
	}
}
