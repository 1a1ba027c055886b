package replay

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

func newCalls(t *testing.T) (*Calls, *time.Time) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	now := time.Now()
	return &Calls{Table: s.Table(store.Control), Now: func() time.Time { return now }}, &now
}

func TestTheFirstAnswerIsReturnedToTheSameCallOnly(t *testing.T) {
	calls, now := newCalls(t)
	first := Call{Org: "o", Credential: "gw-a", Method: "POST", Target: "/configs", Body: []byte(`{"name":"a"}`)}
	_, run, err := calls.Begin(t.Context(), first, "1")
	if err != nil || run == nil {
		t.Fatal(run, err)
	}
	if _, _, err := calls.Begin(t.Context(), first, "2"); !errors.Is(err, ErrRunning) {
		t.Errorf("while it runs: %v", err)
	}
	const secret = "gw-shown-once"
	if err := run.End(t.Context(), Response{Status: 200, Body: []byte(secret), Records: []Record{{"APIKEY", "w", "id", 1}}}); err != nil {
		t.Fatal(err)
	}
	got, again, err := calls.Begin(t.Context(), first, "3")
	if err != nil || again != nil || string(got.Body) != secret || got.Records[0].ID != "id" {
		t.Fatalf("%+v %v", got, err)
	}
	row, _, err := calls.Table.Get(t.Context(), first.rowKey(), true)
	if err != nil || bytes.Contains(row.Bytes("answer"), []byte("shown")) {
		t.Errorf("stored in plain text: %v", err)
	}
	for what, change := range map[string]func(*Call){
		"caller": func(c *Call) { c.Credential = "gw-b" }, "path": func(c *Call) { c.Target = "/prompts" }, "body": func(c *Call) { c.Body = []byte(`{"name":"b"}`) },
		"organization": func(c *Call) { c.Org = "p" }, "method": func(c *Call) { c.Method = "PUT" }, "key": func(c *Call) { c.Key = "k" },
	} {
		other := first
		change(&other)
		if got, run, err := calls.Begin(t.Context(), other, "4"); got != nil || run == nil || err != nil {
			t.Errorf("another %s: %v %v", what, got, err)
		}
	}
	*now = now.Add(Window + time.Second)
	if got, run, err := calls.Begin(t.Context(), first, "5"); got != nil || run == nil || err != nil {
		t.Errorf("after the window: %v %v", got, err)
	}
}

func TestKeyedCallsAreHeldToTheirBodyForADay(t *testing.T) {
	calls, now := newCalls(t)
	c := Call{Org: "o", Credential: "gw-a", Method: "POST", Target: "/configs", Key: "k", Body: []byte("1")}
	_, run, err := calls.Begin(t.Context(), c, "1")
	if err != nil {
		t.Fatal(err)
	}
	if err := run.End(t.Context(), Response{Status: 200}); err != nil {
		t.Fatal(err)
	}
	other := c
	other.Body = []byte("2")
	if _, _, err := calls.Begin(t.Context(), other, "2"); !errors.Is(err, ErrOtherBody) {
		t.Errorf("%v", err)
	}
	*now = now.Add(KeyedWindow - time.Second)
	if got, _, err := calls.Begin(t.Context(), c, "3"); got == nil || err != nil {
		t.Errorf("within a day: %v %v", got, err)
	}
	*now = now.Add(2 * time.Second)
	if got, run, err := calls.Begin(t.Context(), other, "4"); got != nil || run == nil || err != nil {
		t.Errorf("after a day: %v %v", got, err)
	}
}

func TestARunThatDiedOrFailedMayBeMadeAgain(t *testing.T) {
	calls, now := newCalls(t)
	c := Call{Org: "o", Credential: "gw-a", Method: "POST", Target: "/configs"}
	_, died, err := calls.Begin(t.Context(), c, "1")
	if err != nil {
		t.Fatal(err)
	}
	*now = now.Add(maxRun + time.Second)
	_, run, err := calls.Begin(t.Context(), c, "2")
	if err != nil || run == nil {
		t.Fatal(err)
	}
	if err := died.Discard(t.Context()); err != nil { // it is another's by now
		t.Fatal(err)
	}
	if _, _, err := calls.Begin(t.Context(), c, "3"); !errors.Is(err, ErrRunning) {
		t.Errorf("%v", err)
	}
	if err := run.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, run, err := calls.Begin(t.Context(), c, "4"); err != nil || run == nil {
		t.Errorf("%v", err)
	}
}
