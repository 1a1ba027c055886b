package ownership

import (
	"context"
	"testing"
	"time"

	"gateway/shared/pricing"
	"gateway/shared/store"
)

func TestBatchesThatHaveEnded(t *testing.T) {
	t.Parallel()
	const usage = `"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2}}`
	for _, c := range []struct {
		answer       string
		ok           bool
		tells, known bool
		model        string
	}{
		{`{"id":"b","status":"completed","model":"m",` + usage + `}`, true, true, true, "m"},
		{`{"id":"b","status":"cancelled",` + usage + `}`, true, true, true, ""},
		{`{"id":"b","status":"expired"}`, true, false, false, ""},
		{`{"id":"b","status":"failed","usage":null}`, true, false, false, ""},
		{`{"id":"b","status":"failed","usage":{}}`, true, true, false, ""},
		{`{"id":"b","status":"completed","usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":2}}}`, true, true, false, ""},
		{`{"id":"b","status":"in_progress",` + usage + `}`, false, false, false, ""},
		{`{"status":"completed"}`, false, false, false, ""},
		{`{"id":1,"status":"completed"}`, false, false, false, ""},
		{`[]`, false, false, false, ""},
	} {
		b, ok := EndedBatch([]byte(c.answer))
		if ok != c.ok || b.ReportsUsage != c.tells || b.Known != c.known || b.Model != c.model || ok && b.ID != "b" {
			t.Errorf("%s: %+v %v", c.answer, b, ok)
		}
		if cached, _ := b.Usage.Get(pricing.CacheRead); b.Known && (b.Usage.OutputTokens() != 5 || b.Usage.TotalTokens() != 15 || cached != 4) {
			t.Errorf("%s: %+v", c.answer, b.Usage)
		}
	}
}

// The number of rows tells how long the prompts of a batch are, if its usage is a sum.
func TestEndedBatchesStateTheirRows(t *testing.T) {
	t.Parallel()
	for counts, want := range map[string]int64{`{"total":9,"completed":7,"failed":2}`: 7, `{"total":9}`: 0, `7`: 0, `null`: 0, `{"completed":"7"}`: 0} {
		b, ok := EndedBatch([]byte(`{"id":"b","object":"batch","status":"completed","usage":{"input_tokens":10,"output_tokens":5},"request_counts":` + counts + `}`))
		if !ok || !b.Known || b.Rows != want {
			t.Errorf("%s: %+v", counts, b)
		}
	}
}

func TestOneRequestClaimsAnEnd(t *testing.T) {
	t.Parallel()
	now := time.Now()
	o := newOwners(t, &now)
	a, b := store.Scope{Org: "o", Workspace: "a"}, store.Scope{Org: "o", Workspace: "b"}
	for _, c := range []struct {
		sc    store.Scope
		place string
		first bool
	}{
		{a, "openai", true}, {a, "openai", false}, {b, "openai", true}, {a, "groq", true},
		{a.Organisation(), "integration", true}, {b.Organisation(), "integration", false},
	} {
		if there, err := o.Claimed(t.Context(), c.sc, c.place, "batch"); err != nil || there == c.first {
			t.Errorf("%v %s: claimed %v %v", c.sc, c.place, there, err)
		}
		if first, err := o.Claim(t.Context(), c.sc, c.place, "batch", "request"); err != nil || first != c.first {
			t.Errorf("%v %s: %v %v", c.sc, c.place, first, err)
		}
	}
}

// Work that two integrations with one credential both see ends once, even if an older claim is
// stored below one of them.
func TestOneCredentialClaimsAnEndOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	o := newOwners(t, &now)
	sc := store.Scope{Org: "o"}
	if first, err := o.Claim(t.Context(), sc, "one", "old", "r"); err != nil || !first {
		t.Fatal(first, err)
	}
	for _, c := range []struct {
		places []string
		id     string
		first  bool
	}{
		{[]string{"print", "one"}, "batch", true}, {[]string{"print", "other"}, "batch", false}, {[]string{"print", "one"}, "batch", false},
		{[]string{"changed", "one"}, "batch", false}, {[]string{"print", "one"}, "old", false}, {[]string{"print", "other"}, "old", false},
		{[]string{"third"}, "batch", true},
	} {
		if first, err := o.ClaimAt(t.Context(), sc, c.places, c.id, "request"); err != nil || first != c.first {
			t.Errorf("%v %s: %v %v", c.places, c.id, first, err)
		}
	}
}

func TestAListIsDivided(t *testing.T) {
	t.Parallel()
	now := time.Now()
	o := newOwners(t, &now)
	a, b := store.Scope{Org: "o", Workspace: "a"}, store.Scope{Org: "o", Workspace: "b"}
	w := &TenantIsolation{Enabled: true, Shared: true, Places: []string{"print"}}
	for id, sc := range map[string]store.Scope{"a1": a, "a2": a, "b1": b} {
		if err := o.Record(t.Context(), sc, w.Places, "x", id); err != nil {
			t.Fatal(err)
		}
	}
	for list, want := range map[string]Part{
		`{"data":[{"id":"a1"},{"id":"b1"},{"id":"a2"},{"id":"none"}],"first_id":"a1","last_id":"none","has_more":true}`: {
			[]byte(`{"data":[{"id":"a1"},{"id":"a2"}],"first_id":"a1","last_id":"a2","has_more":true}`), 2, "none", true},
		`{"data":[{"id":"b1"}],"first_id":"b1","last_id":"b1","has_more":false}`: {
			[]byte(`{"data":[],"first_id":null,"last_id":null,"has_more":false}`), 0, "b1", false},
		`{"data":[]}`: {[]byte(`{"data":[]}`), 0, "", false},
	} {
		got, err := o.Divide(t.Context(), a, w, []byte(list))
		if err != nil || string(got.List) != string(want.List) || got.Entries != want.Entries || got.Last != want.Last || got.More != want.More {
			t.Errorf("%s: %s %+v %v", list, got.List, got, err)
		}
	}
	for _, list := range []string{`[]`, `{"files":[]}`, `{"data":{}}`, `{"data":["a1"]}`} {
		if got, err := o.Divide(t.Context(), a, w, []byte(list)); err == nil {
			t.Errorf("%s is divided: %s", list, got.List)
		}
	}
}

func TestWhatAStreamTellsIsNotedOnce(t *testing.T) {
	t.Parallel()
	var noted []string
	w := Watch(IDKinds{Created: true}, func(ids ...string) error { noted = append(noted, ids...); return nil })
	for _, event := range []string{`{"type":"response.created","response":{"id":"r"}}`, `{"type":"response.in_progress","response":{"id":"r"}}`, `{"id":"t","object":"thread"}`} {
		if err := w.Feed([]byte("data: " + event + "\n\n")); err != nil {
			t.Fatal(err)
		}
	}
	if len(noted) != 2 || noted[0] != "r" || noted[1] != "t" {
		t.Errorf("%q", noted)
	}
	if err := (*Watcher)(nil).Feed([]byte("data: {}\n\n")); err != nil {
		t.Error(err)
	}
}

func TestChatsThatAreKept(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"store":true}`: true, `{"store":false}`: false, `{"store":"true"}`: false, `{"x":{"store":true}}`: false, `{"stored":true}`: false, `{}`: false,
	} {
		if StoresChat([]byte(body)) != want {
			t.Errorf("%s: %v", body, !want)
		}
	}
}

func TestResponsesThatAreStillBeingMade(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{
		`{"object":"response","status":"queued","output":[]}`:                true,
		`{"object":"response","status":"in_progress"}`:                       true,
		`{"object":"response","status":"in_progress","output":[{"id":"m"}]}`: false,
		`{"object":"response","status":"completed","output":[]}`:             false,
		`{"object":"response","output":[]}`:                                  false,
		`{"object":"chat.completion","status":"queued"}`:                     false,
		`{"object":"response","status":1}`:                                   false,
		`["response"]`:                                                       false,
	} {
		if IsEmptyInProgress([]byte(answer)) != want {
			t.Errorf("%s: %v", answer, !want)
		}
	}
	const made, making = `{"object":"response","status":"incomplete"}`, `{"object":"response","status":"in_progress","output":[]}`
	event := func(response string) string { return `data: {"response":` + response + "}\n\n" }
	for stream, want := range map[string]string{
		event(making) + event(made):                      made,
		event(making) + event(made) + "data: [DONE]\n\n": made,
		event(made) + "data: {\"delta\":\"x\"}\n\n":      "",
		event(making): "",
		event(`[]`):   "",
		"":            "",
	} {
		if got := string(LastResponse([]byte(stream))); got != want {
			t.Errorf("%q: %q", stream, got)
		}
	}
}

// twice is a table with a client that repeats every write, as after a lost response.
type twice struct{ store.Table }

func (t twice) Put(ctx context.Context, row store.Row, cond ...store.Cond) error {
	if err := t.Table.Put(ctx, row, cond...); err != nil {
		return err
	}
	return t.Table.Put(ctx, row, cond...)
}

func TestAClaimThatIsWrittenTwiceIsOne(t *testing.T) {
	t.Parallel()
	now := time.Now()
	o := newOwners(t, &now)
	o.Table = twice{o.Table}
	sc := store.Scope{Org: "o", Workspace: "a"}
	for i, want := range []bool{true, false} {
		if first, err := o.Claim(t.Context(), sc, "openai", "batch", "request"); err != nil || first != want {
			t.Errorf("claim %d: %v %v", i, first, err)
		}
	}
}
