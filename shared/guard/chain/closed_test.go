package chain

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gateway/shared/guard"
	"gateway/shared/guard/basic"
	"gateway/shared/guard/judge"
)

// TestDenyFailsClosed: a local check of a hook that denies fails if it cannot decide, unless
// failOnError says otherwise. Having nothing to judge is no failure.
func TestDenyFailsClosed(t *testing.T) {
	t.Parallel()
	slow := strings.Repeat("a", 60) + "!"
	for name, c := range map[string]struct {
		raw, text string
		denied    bool
	}{
		"slow pattern":                  {`{"regexMatch":{"rule":"^(a+)+$","not":true},"deny":true}`, slow, true},
		"slow pattern of a replacement": {`{"regexReplace":{"rule":"/^(a+)+$/g"},"deny":true}`, slow, true},
		"slow pattern of metadata":      {`{"requiredMetadataKeyPairs":{"metadataPairs":{"team":"^(a+)+$"},"matchType":"regex"},"deny":true}`, slow, true},
		"slow, but allowed to fail":     {`{"regexMatch":{"rule":"^(a+)+$","not":true,"failOnError":false},"deny":true}`, slow, false},
		"slow, but not denying":         {`{"regexMatch":{"rule":"^(a+)+$","not":true}}`, slow, false},
		"bad pattern":                   {`{"regexMatch":{"rule":"("},"deny":true}`, "a", true},
		"bad parameters":                {`{"contains":{},"deny":true}`, "a", true},
		"nothing to judge":              {`{"regexMatch":{"rule":"x","not":true},"deny":true}`, "", false},
		"nothing, which must not be":    {`{"regexMatch":{"rule":"x","not":true,"failOnError":true},"deny":true}`, "", true},
		"unknown parameter":             {`{"contains":{"words":["x"],"operator":"none","word":["a"]},"deny":true}`, "a", true},
		"the same, not denying":         {`{"contains":{"words":["x"],"operator":"none","word":["a"]}}`, "a", false},
		"the same, allowed to fail":     {`{"contains":{"words":["x"],"operator":"none","word":["a"],"failOnError":false},"deny":true}`, "a", true},
		"of a vendor":                   {`{"lakera.guard":{"apiKey":"k","endpoint":"https://x.example"},"deny":true}`, "a", true},
		"known parameters":              {`{"contains":{"words":["x"],"operator":"none","scope":"all_messages","soft_deny_200":false},"deny":true}`, "a", false},
		"a panic":                       {`{"test.panics":{},"deny":true}`, "a", true},
	} {
		makers := basic.Makers()
		makers["test.panics"] = func(map[string]json.RawMessage) judge.Func {
			return func(context.Context, *judge.Subject) judge.Verdict { panic("test") }
		}
		in := call(c.text)
		in.Metadata["team"] = slow
		o := Hooks{NewCheckRegistry(makers).Prepare(guard.ReadHook(json.RawMessage(c.raw), true, false))}.Run(t.Context(), guard.Before, in)
		if o.Denied != c.denied {
			t.Errorf("%s: denied is %t: %+v", name, o.Denied, o.Results)
		}
	}
	late := Hooks{hook(`{"modelwhitelist":{"models":["other"]},"deny":true}`)}.Run(t.Context(), guard.After, &Call{Kind: "chatComplete", Response: []byte(`{}`), Now: time.Now})
	if late.Denied {
		t.Errorf("a check that is not for answers denies them: %+v", late.Results)
	}
}

// TestLocalChecksShareOneBudget: whatever the number of checks and hooks, they stop when the
// budget of their request is spent, and none begins after the client has left. No check but
// the first gets time here: each one uses all there is.
func TestLocalChecksShareOneBudget(t *testing.T) {
	t.Parallel()
	begun := 0
	makers := basic.Makers()
	makers["test.greedy"] = func(map[string]json.RawMessage) judge.Func {
		return func(ctx context.Context, _ *judge.Subject) judge.Verdict {
			for begun++; ctx.Err() == nil; time.Sleep(time.Millisecond) {
				continue
			}
			return judge.TooSlow()
		}
	}
	kit := NewCheckRegistry(makers)
	list := strings.TrimSuffix(strings.Repeat(`{"id":"test.greedy"},`, guard.MaxChecks), ",")
	many := func(more string) *Hook {
		return kit.Prepare(guard.ReadHook(json.RawMessage(`{"checks":[`+list+`],"deny":true`+more+`}`), true, false))
	}
	// Of a mixed hook, the local checks run beside those of other hooks.
	hooks := Hooks{many(""), many(`,"sequential":true`), kit.Prepare(guard.ReadHook(json.RawMessage(`{"checks":[`+list+`,{"id":"default.webhook"}],"deny":true}`), true, false))}
	in := call("a")
	in.Budget = guard.NewBudget()
	for _, phase := range []guard.Phase{guard.Before, guard.After} {
		in.Response = []byte(`{"choices":[{"message":{"content":"a"}}]}`)
		if o := hooks.Run(t.Context(), phase, in); !o.Denied || begun != 1 {
			t.Errorf("phase %d: %d checks were run, denied is %t", phase, begun, o.Denied)
		}
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	begun = 0
	if o := (hooks).Run(left, guard.Before, call("a")); !o.Denied || begun != 0 {
		t.Errorf("without a client %d checks were run, denied is %t", begun, o.Denied)
	}
}

// TestSearchesEndWithTheirContext: no search begins after the end of its context, in any
// function that searches.
func TestSearchesEndWithTheirContext(t *testing.T) {
	t.Parallel()
	over, end := context.WithCancel(t.Context())
	end()
	re, err := guard.CompilePattern("a")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := guard.CompileSchema([]byte(`{"items":{"pattern":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, search := range map[string]func(context.Context) error{
		"Match":    func(ctx context.Context) error { _, err := re.Match(ctx, "a"); return err },
		"Find":     func(ctx context.Context) error { _, err := re.Find(ctx, "a"); return err },
		"Replace":  func(ctx context.Context) error { _, _, err := re.Replace(ctx, "aa", "b", true); return err },
		"Validate": func(ctx context.Context) error { return schema.Validate(ctx, []any{"a", "a"}) },
	} {
		if err := search(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := search(over); err != guard.ErrTime {
			t.Errorf("%s after the end: %v", name, err)
		}
	}
}

// TestMisconfiguredChecksFailClosed: a check of a service that cannot be asked, because a required
// parameter is missing or its credentials are not usable, or that responds without a verdict, fails
// a hook that denies. An outage does not.
func TestMisconfiguredChecksFailClosed(t *testing.T) {
	t.Parallel()
	makers := map[string]judge.Maker{}
	down := func(map[string]json.RawMessage) judge.Func {
		return func(context.Context, *judge.Subject) judge.Verdict { return judge.Failed("Error", "no answer") }
	}
	n := 0
	for _, row := range guard.Table() {
		if row.Category != guard.Remote && row.Category != guard.Vendor || row.MissingParameters(nil) == nil {
			continue
		}
		n++
		makers[row.ID] = down
		for form, denied := range map[string]bool{`{"checks":[{"id":"%s"}],"deny":true}`: true, `{"checks":[{"id":"%s"}]}`: false, `{"checks":[{"id":"%s","parameters":{"failOnError":false}}],"deny":true}`: false} {
			raw := strings.ReplaceAll(form, "%s", row.ID)
			in := call("a")
			phase := guard.Before
			if row.Phase == guard.After {
				phase, in = guard.After, &Call{Kind: "chatComplete", Response: []byte(`{"choices":[{"message":{"content":"a"}}]}`), Now: time.Now}
			}
			if o := (Hooks{NewCheckRegistry(makers).Prepare(guard.ReadHook(json.RawMessage(raw), true, false))}).Run(t.Context(), phase, in); o.Denied != denied {
				t.Errorf("%s: denied is %t: %+v", raw, o.Denied, o.Results)
			}
		}
	}
	if n < 5 {
		t.Errorf("only %d checks have required parameters", n)
	}
	makers["test.credentials"] = func(map[string]json.RawMessage) judge.Func {
		return func(context.Context, *judge.Subject) judge.Verdict {
			return judge.Failed(judge.CredentialsError, "needs a key")
		}
	}
	makers["test.answered"] = func(map[string]json.RawMessage) judge.Func {
		return func(context.Context, *judge.Subject) judge.Verdict {
			return judge.Verdict{Err: &judge.Failure{Name: "VendorError", Answered: true}}
		}
	}
	makers["default.log"] = down
	for raw, denied := range map[string]bool{
		`{"test.credentials":{},"deny":true}`: true, `{"test.credentials":{"failOnError":false},"deny":true}`: false, `{"test.credentials":{}}`: false,
		`{"test.answered":{},"deny":true}`: true, `{"test.answered":{"failOnError":false},"deny":true}`: false, `{"test.answered":{}}`: false,
		`{"default.log":{"logURL":"https://log.example"},"deny":true}`: false,
	} {
		if o := (Hooks{NewCheckRegistry(makers).Prepare(guard.ReadHook(json.RawMessage(raw), true, false))}).Run(t.Context(), guard.Before, call("a")); o.Denied != denied {
			t.Errorf("%s: denied is %t: %+v", raw, o.Denied, o.Results)
		}
	}
}
