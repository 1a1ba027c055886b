package signin_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/store"
	"gateway/shared/store/dynamo"
	"gateway/shared/store/sqlite"
	"gateway/shared/tenant"
	"gateway/shared/testkit/dynamotest"
)

var org = store.Scope{Org: "o1"}

// process is one of several over a store.
type process struct {
	*signin.Sessions
	resources *resource.Resources
}

type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time       { return time.UnixMilli(c.at.Load()).UTC() }
func (c *clock) pass(d time.Duration) { c.at.Add(d.Milliseconds()) }

func processes(t *testing.T) (a, b process, c *clock) {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return over(s, s)
}

// over are processes with a store each, of the same rows.
func over(one, other store.Store) (a, b process, c *clock) {
	c = &clock{}
	c.at.Store(time.Now().UnixMilli())
	open := func(s store.Store) process {
		r := resource.New(s, resource.Clock(c.now))
		return process{signin.New(resource.NewLoader(r), r), r}
	}
	return open(one), open(other), c
}

func (p process) begin(t *testing.T, user string) (token string, s *signin.Session) {
	t.Helper()
	s = &signin.Session{Org: org.Org, User: user, Method: signin.ByOIDC}
	if err := p.resources.Change(context.Background(), org, func(tx *resource.Tx) (err error) {
		token, err = signin.Begin(tx, s)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return token, s
}

func (p process) settings(t *testing.T, s tenant.Settings) {
	t.Helper()
	if err := p.resources.Change(context.Background(), org, func(tx *resource.Tx) error {
		return tenant.AmendOrganisation(tx, org, "t", func(o *tenant.Organisation) error { o.Settings = s; return nil })
	}); err != nil {
		t.Fatal(err)
	}
}

func (p process) want(t *testing.T, what, token string, there bool) {
	t.Helper()
	_, _, err := p.Find(context.Background(), token)
	if there != (err == nil) || err != nil && fault.From(err).Status() != 401 {
		t.Errorf("%s: %v", what, err)
	}
}

func TestASessionEndsInEveryProcess(t *testing.T) {
	t.Parallel()
	a, b, c := processes(t)
	endsIn(t, a, b, c)
}

// The same where each process has connections separate to a DynamoDB.
func TestASessionEndsInEveryProcessOnDynamoDB(t *testing.T) {
	t.Parallel()
	endpoint := dynamotest.Start(t)
	var same dynamo.Options
	one := dynamotest.Open(t, endpoint, func(o *dynamo.Options) { same = dynamo.Options{Prefix: o.Prefix, Config: dynamotest.Config(endpoint)} })
	other, err := dynamo.New(same)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := over(one, other)
	endsIn(t, a, b, c)
}

func endsIn(t *testing.T, a, b process, c *clock) {
	t.Helper()
	token, s := a.begin(t, "u1")
	a.want(t, "begun here", token, true)
	b.want(t, "begun there", token, true)
	if err := a.resources.Change(context.Background(), org, func(tx *resource.Tx) error { signin.End(tx, s); return nil }); err != nil {
		t.Fatal(err)
	}
	a.want(t, "ended here", token, false)
	c.pass(2 * time.Second)
	b.want(t, "ended there, two seconds later", token, false)
	b.want(t, "no token", "gs-x", false)
	b.want(t, "an unknown one", "gs-"+strings.Repeat("A", 43), false)
}

func TestSessionsExpireByAgeAndIdleTime(t *testing.T) {
	t.Parallel()
	a, b, c := processes(t)
	ctx := context.Background()
	token, s := a.begin(t, "u1")
	b.want(t, "at first", token, true)
	c.pass(signin.Idle - time.Second)
	a.want(t, "idle for less", token, true)
	if err := a.Touch(ctx, s); err != nil {
		t.Fatal(err)
	}
	c.pass(2 * time.Second)
	b.want(t, "a sign of life in another process", token, true)
	c.pass(signin.Idle)
	b.want(t, "idle", token, false)
	a.want(t, "idle", token, false)

	token, s = a.begin(t, "u1")
	for range 20 {
		c.pass(signin.TTL / 20)
		_ = a.Touch(ctx, s)
	}
	a.want(t, "at its end", token, false)

	a.settings(t, tenant.Settings{MaxSessionTTL: 3600, MaxIdleTime: 1800})
	token, s = a.begin(t, "u1")
	c.pass(29 * time.Minute)
	b.want(t, "as the settings let it", token, true)
	c.pass(time.Minute)
	b.want(t, "idle by the settings", token, false)
	if err := a.Touch(ctx, s); err != nil {
		t.Fatal(err)
	}
	b.want(t, "seen in time", token, true)
	c.pass(29 * time.Minute)
	b.want(t, "before the end that the settings give", token, true)
	a.settings(t, tenant.Settings{MaxSessionTTL: 900, MaxIdleTime: 1800})
	c.pass(2 * time.Second)
	b.want(t, "a shorter time holds for those that there are", token, false)
	if all, err := a.Of(ctx, org.Org, "u1"); err != nil || len(all) != 0 {
		t.Errorf("%d sessions are listed, %v", len(all), err)
	}
}

// However often a session is used, a sign of life is written once a minute.
func TestTouchWritesOnceAMinute(t *testing.T) {
	t.Parallel()
	a, _, c := processes(t)
	ctx := context.Background()
	token, begun := a.begin(t, "u1")
	written := func() time.Time {
		t.Helper()
		it, ok, err := a.resources.Store().Table(store.Control).Get(ctx, org.Partition().Key("SESSION", "u1", begun.ID), true)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return time.UnixMilli(it.Int("seen")).UTC()
	}
	use := func() {
		t.Helper()
		of, _, err := a.Find(ctx, token)
		if err == nil {
			err = a.Touch(ctx, of)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c.pass(2 * time.Minute)
	use()
	first := written()
	if !first.Equal(c.now()) {
		t.Fatalf("the use at %v is not written: %v", c.now(), first)
	}
	for range 5 {
		c.pass(10 * time.Second)
		use()
	}
	if got := written(); !got.Equal(first) {
		t.Errorf("a use within the minute is written: %v", got)
	}
	c.pass(10 * time.Second)
	use()
	if got := written(); !got.Equal(c.now()) {
		t.Errorf("a use after a minute is not written: %v", got)
	}
}

func TestEndAllTakesSeveralTransactions(t *testing.T) {
	t.Parallel()
	a, _, _ := processes(t)
	var current *signin.Session
	for range 100 {
		_, current = a.begin(t, "u1")
	}
	other, _ := a.begin(t, "u11")
	rounds := 0
	for more := true; more; rounds++ {
		if err := a.resources.Change(context.Background(), org, func(tx *resource.Tx) (err error) {
			more, err = a.EndAll(tx, org.Org, "u1", current.ID)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := a.Of(context.Background(), org.Org, "u1")
	if err != nil || len(all) != 1 || all[0].ID != current.ID || rounds < 3 {
		t.Errorf("%d sessions are left after %d rounds, %v", len(all), rounds, err)
	}
	a.want(t, "another user's", other, true)
}

// What is stored opens nothing: neither the token nor its write token is in a row.
func TestSessionTokenIsNotStored(t *testing.T) {
	t.Parallel()
	a, _, _ := processes(t)
	token, s := a.begin(t, "u1")
	page, err := a.resources.Store().Table(store.Control).Query(context.Background(), store.Query{Partition: org.Partition(), Prefix: "SESSION#"})
	if err != nil || len(page.Rows) != 1 {
		t.Fatal(len(page.Rows), err)
	}
	raw, err := json.Marshal(page.Rows[0].Item)
	if err != nil || strings.Contains(string(raw), token) || strings.Contains(string(raw), signin.WriteToken(token)) || !strings.Contains(string(raw), s.ID) {
		t.Errorf("%s", raw)
	}
}
