package chain

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gateway/shared/guard"
	"gateway/shared/guard/basic"
)

func hook(raw string) *Hook {
	return NewCheckRegistry(basic.Makers()).Prepare(guard.ReadHook(json.RawMessage(raw), true, false))
}

func call(text string) *Call {
	body, _ := json.Marshal(map[string]any{"model": "m", "messages": []any{map[string]string{"role": "user", "content": text}}})
	return &Call{Kind: "chatComplete", Model: "m", Request: body, Metadata: map[string]string{"team": "ads"}, Now: time.Now}
}

func TestVerdictsOfHooks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		raw, text           string
		verdict, deny, data bool
	}{
		"passes":               {`{"contains":{"words":["a"]}}`, "a", true, false, true},
		"fails":                {`{"contains":{"words":["b"]}}`, "a", false, false, true},
		"denies":               {`{"contains":{"words":["b"]},"deny":true}`, "a", false, true, true},
		"an error passes":      {`{"regexMatch":{"rule":"("}}`, "a", true, false, false},
		"an error that counts": {`{"regexMatch":{"rule":"(","failOnError":true},"deny":true}`, "a", false, true, false},
		"slow patterns end":    {`{"regexMatch":{"rule":"^(a+)+$"}}`, strings.Repeat("a", 60) + "!", true, false, false},
		"model":                {`{"modelwhitelist":{"models":["m"]}}`, "a", true, false, true},
		"metadata":             {`{"requiredMetadataKeys":{"metadataKeys":["user"]}}`, "a", false, false, true},
		"switched off":         {`{"contains":{"words":["b"],"is_enabled":false}}`, "a", true, false, true},
	} {
		o := Hooks{hook(c.raw)}.Run(context.Background(), guard.Before, call(c.text))
		r := o.Results[0]
		if r.Verdict != c.verdict || o.Denied != c.deny || r.Deny != c.deny || c.data && len(r.Checks) > 0 && r.Checks[0].Data == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestChangesAreCombined(t *testing.T) {
	t.Parallel()
	one, two := `"default.regexReplace":{"rule":"a","redactText":"1"}`, `"x":{"id":"default.regexReplace","rule":"b","redactText":"2"}`
	for name, c := range map[string]struct {
		hooks Hooks
		want  string
	}{
		"side by side they add up": {Hooks{hook(`{` + one + `,` + two + `}`)}, "1 2"},
		"one by one they add up":   {Hooks{hook(`{"sequential":true,` + one + `,` + two + `}`)}, "1 2"},
		"two hooks add up":         {Hooks{hook(`{` + one + `}`), hook(`{` + two + `}`)}, "1 2"},
	} {
		o := c.hooks.Run(context.Background(), guard.Before, call("a b"))
		if !strings.Contains(string(o.Body), fmt.Sprintf("%q", c.want)) || !o.Results[0].Transformed {
			t.Errorf("%s: %s", name, o.Body)
		}
	}
}

func BenchmarkFiveChecks(b *testing.B) {
	h := Hooks{hook(`{"contains":{"words":["forbidden"],"operator":"none"},"wordCount":{"maxWords":100000},"characterCount":{"maxCharacters":1000000},"regexMatch":{"rule":"hunter[0-9]","not":true},"modelwhitelist":{"models":["m"]}}`)}
	for _, size := range []int{1 << 10, 100 << 10} {
		c := call(strings.Repeat("some words of text ", size/19))
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if o := h.Run(context.Background(), guard.Before, c); o.Denied || o.Failed {
					b.Fatal("failed")
				}
			}
		})
	}
}

// TestStreamModeOfHooks: a hook that denies judges them in a window unless it says
// otherwise, and holds them if the window cannot do what it must.
func TestStreamModeOfHooks(t *testing.T) {
	t.Parallel()
	const match = `"regexMatch":{"rule":"a","not":true}`
	for raw, want := range map[string]guard.When{
		`{` + match + `}`:                                             guard.StreamAfter,
		`{` + match + `,"deny":true}`:                                 guard.StreamWindow,
		`{` + match + `,"onFail":"block"}`:                            guard.StreamWindow,
		`{` + match + `,"deny":true,"stream":"after"}`:                guard.StreamAfter,
		`{` + match + `,"deny":true,"stream":"hold"}`:                 guard.StreamHold,
		`{` + match + `,"stream":"window"}`:                           guard.StreamWindow,
		`{` + match + `,"deny":true,"soft_deny_200":true}`:            guard.StreamHold,
		`{"wordCount":{},"deny":true}`:                                guard.StreamHold,
		`{"some-vendor.scan":{},"deny":true}`:                         guard.StreamHold,
		`{"regexMatch":{"rule":"a","scope":"reasoning"},"deny":true}`: guard.StreamHold,
	} {
		if got := hook(raw).Streams(); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}
