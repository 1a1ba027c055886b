package expiry

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/app/notices"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/notice"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/seal/local"
	"gateway/shared/store"
	"gateway/shared/store/dynamo"
	"gateway/shared/store/sqlite"
	"gateway/shared/testkit/dynamotest"
)

// onEach runs a test on SQLite and on a DynamoDB.
func onEach(t *testing.T, f func(t *testing.T, s store.Store)) {
	t.Run("sqlite", func(t *testing.T) {
		s, err := sqlite.Open(filepath.Join(t.TempDir(), "t.db"), sqlite.Options{Clock: thatDay})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		f(t, s)
	})
	t.Run("dynamo", func(t *testing.T) {
		f(t, dynamotest.Open(t, dynamotest.Start(t), func(o *dynamo.Options) { o.Clock = thatDay }))
	})
}

// thatDay is the time of the stores, whatever day the tests run on.
func thatDay() time.Time { return time.Date(2026, 11, 20, 10, 30, 0, 0, time.UTC) }

// clock is a time that a test moves, and that workers see apart.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) at(apart time.Duration) func() time.Time {
	return func() time.Time {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.now.Add(apart)
	}
}

func (c *clock) later(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// mails records sent mails, by address and subject.
type mails struct {
	mu   sync.Mutex
	sent map[string]int
}

func (m *mails) Send(_ context.Context, mail notice.Mail) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, to := range mail.To {
		m.sent[to+": "+mail.Subject]++
	}
	return nil
}

// take returns the mails since the last call, with counts.
func (m *mails) take() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.sent
	m.sent = map[string]int{}
	return out
}

// crew are several workers over one store, with clocks apart.
type crew struct {
	store   store.Store
	clock   *clock
	mails   *mails
	seal    seal.Sealer
	main    *resource.Resources
	keys    []*Worker
	workers []*notice.Worker
}

func newCrew(t *testing.T, s store.Store) *crew {
	t.Helper()
	master, err := local.Open(filepath.Join(t.TempDir(), "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	c := &crew{store: s, clock: &clock{now: time.Date(2026, 11, 20, 10, 30, 0, 0, time.UTC)}, mails: &mails{sent: map[string]int{}}, seal: seal.New(master, nil)}
	c.main = resource.New(s, resource.Clock(c.clock.at(0)))
	for _, apart := range []time.Duration{0, -30 * time.Second, 25 * time.Second} {
		now := c.clock.at(apart)
		r := resource.New(s, resource.Clock(now))
		c.keys = append(c.keys, &Worker{Resources: r, Sealer: c.seal})
		c.workers = append(c.workers, &notice.Worker{Store: s, Directory: &notices.Directory{Resources: r, Sealer: c.seal}, Mailer: c.mails, Now: now})
	}
	return c
}

// run has all processes do all tasks at once, twice each.
func (c *crew) run(t *testing.T) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range c.keys {
		wg.Go(func() {
			for range 2 {
				if err := c.keys[i].Run(context.Background()); err != nil {
					t.Error(err)
				}
				if err := c.workers[i].Run(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	c.clock.later(time.Minute) // a worker with a later clock has raised events that one with an earlier clock has not seen
	if err := c.workers[0].Run(context.Background()); err != nil {
		t.Error(err)
	}
}

func (c *crew) change(t *testing.T, f func(tx *resource.Tx) error) {
	t.Helper()
	if err := c.main.Change(context.Background(), scope, f); err != nil {
		t.Fatal(err)
	}
}

func (c *crew) user(t *testing.T, email, role string) (id string) {
	t.Helper()
	c.change(t, func(tx *resource.Tx) error {
		rec, err := membership.Create(tx, scope, &membership.User{Email: email, Role: role}, "")
		if err == nil {
			id = rec.ID
		}
		return err
	})
	return id
}

// expectMails fails the test unless exactly these mails were sent, once each. Ends of subjects are not
// compared.
func (c *crew) expectMails(t *testing.T, want ...string) {
	t.Helper()
	got := c.mails.take()
	for _, w := range want {
		found := false
		for subject, n := range got {
			if strings.HasPrefix(subject, w) {
				if found = true; n != 1 {
					t.Errorf("%q went %d times", subject, n)
				}
				delete(got, subject)
			}
		}
		if !found {
			t.Errorf("nobody got %q", w)
		}
	}
	if len(got) > 0 {
		t.Errorf("nobody should have got %q", slices.Sorted(maps.Keys(got)))
	}
}

// Three workers run concurrently, with different clocks. The users concerned are notified once:
// a day before a key is rotated, when it is rotated, and before and when a key expires. Each
// rotation happens once.
func TestUsersAreNotifiedBeforeAndAfter(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s store.Store) {
		c := newCrew(t, s)
		c.user(t, "chief@example.com", membership.Owner)
		c.user(t, "other@example.com", membership.Member)
		owner := c.user(t, "owner@example.com", membership.Member)
		start := c.clock.at(0)()
		ends := start.Add(100 * time.Hour)
		_, first := identity.NewSecret()
		storeKey(t, c.main, "ending", &identity.Key{Type: identity.OrganisationService, UserID: owner, Scopes: []string{"audit_logs.list"}, Secret: first, ExpiresAt: &ends, AlertEmails: []string{"team@example.com"}})
		next := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC) // the Monday
		_, second := identity.NewSecret()
		storeKey(t, c.main, "turning", &identity.Key{Type: identity.OrganisationService, Scopes: []string{"audit_logs.list"}, Secret: second,
			Rotation: &identity.RotationPolicy{Period: "weekly", NextAt: &next, TransitionMS: (48 * time.Hour).Milliseconds()}})

		c.run(t)
		c.expectMails(t)
		c.clock.later(next.Add(-23 * time.Hour).Sub(c.clock.at(0)()))
		c.run(t)
		c.expectMails(t, `chief@example.com: The API key "turning" is rotated at 2026-11-23T00:00:00Z`)
		c.clock.later(next.Add(time.Hour).Sub(c.clock.at(0)()))
		c.run(t)
		c.expectMails(t, `chief@example.com: The API key "turning" was rotated; the old secret works until`)
		if _, k := load(t, c.main, "turning"); k.Previous == nil || k.Previous.Hash != second.Hash || !k.Rotation.NextAt.Equal(next.AddDate(0, 0, 7)) {
			t.Errorf("rotated to %+v", k)
		}
		c.clock.later(28 * time.Hour)
		c.run(t)
		c.expectMails(t, `chief@example.com: The API key "turning" is open with its old secret until`,
			`chief@example.com: The API key "ending" expires at`, `owner@example.com: The API key "ending" expires at`, `team@example.com: The API key "ending" expires at`)
		c.clock.later(ends.Sub(c.clock.at(0)()) + time.Hour)
		c.run(t)
		c.expectMails(t, `chief@example.com: The API key "ending" has expired`, `owner@example.com: The API key "ending" has expired`, `team@example.com: The API key "ending" has expired`)
	})
}

// No worker ran for three weeks: the key is rotated once, not once for each missed time, and no
// notice is sent about the past.
func TestWhatWasMissedIsCaughtUpWithOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s store.Store) {
		c := newCrew(t, s)
		chief := c.user(t, "chief@example.com", membership.Owner)
		next := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
		_, secret := identity.NewSecret()
		storeKey(t, c.main, "turning", &identity.Key{Type: identity.OrganisationService, Scopes: []string{"audit_logs.list"}, Secret: secret, Rotation: &identity.RotationPolicy{Period: "weekly", NextAt: &next}})
		invite(t, c, "late@example.com", chief)
		c.run(t)
		c.expectMails(t)
		c.clock.later(21 * 24 * time.Hour)
		c.run(t)
		c.expectMails(t, `chief@example.com: The API key "turning" was rotated`, `chief@example.com: The invitation of late@example.com has expired`)
		if _, k := load(t, c.main, "turning"); k.Previous == nil || k.Previous.Hash != secret.Hash || !k.Rotation.NextAt.After(c.clock.at(0)()) {
			t.Errorf("rotated to %+v", k)
		}
	})
}

func invite(t *testing.T, c *crew, email, by string) (id, token string) {
	t.Helper()
	c.change(t, func(tx *resource.Tx) error {
		rec := resource.Record{Scope: scope, Kind: membership.KindInvite, ID: resource.NewID()}
		form := membership.Invite{Email: email, Role: membership.Admin, InvitedBy: by}
		var err error
		if token, err = membership.PrepareInvite(tx, &rec, &form); err != nil {
			return err
		}
		if rec.Body, err = json.Marshal(&form); err != nil {
			return err
		}
		id = rec.ID
		return tx.Create(&rec)
	})
	return id, token
}

// An invitation expires: its sender is notified a day before and at that time. Its link becomes
// invalid, and it can be sent again.
func TestInvitationsExpire(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s store.Store) {
		c := newCrew(t, s)
		chief := c.user(t, "chief@example.com", membership.Owner)
		id, token := invite(t, c, "new@example.com", chief)
		c.clock.later(membership.InviteTTL - 20*time.Hour)
		c.run(t)
		c.expectMails(t, "chief@example.com: The invitation of new@example.com expires at")
		if _, _, err := membership.OfToken(context.Background(), s, token); err != nil {
			t.Errorf("before its end: %v", err)
		}
		c.clock.later(20 * time.Hour)
		c.run(t)
		c.expectMails(t, "chief@example.com: The invitation of new@example.com has expired")
		if _, _, err := membership.OfToken(context.Background(), s, token); err == nil {
			t.Error("the link of an expired invitation is found")
		}
		state := func() (resource.Record, *membership.Invite) {
			rec, ok, err := c.main.Get(context.Background(), scope, membership.KindInvite, id)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			i, err := membership.DecodeInvite(rec)
			if err != nil {
				t.Fatal(err)
			}
			return rec, i
		}
		if rec, i := state(); i.State != membership.Expired || rec.Archived() {
			t.Errorf("%+v", i)
		}
		c.change(t, func(tx *resource.Tx) error {
			rec, i := state()
			if _, err := membership.Renew(tx, &rec, i); err != nil {
				return err
			}
			var err error
			if rec.Body, err = json.Marshal(i); err != nil {
				return err
			}
			return tx.Update(&rec)
		})
		c.run(t)
		if _, i := state(); i.StateAt(c.clock.at(0)()) != membership.Pending {
			t.Errorf("sent again it is %s", i.State)
		}
		c.clock.later(membership.InviteTTL)
		c.run(t)
		c.expectMails(t, "chief@example.com: The invitation of new@example.com has expired")
	})
}
