package expiry

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"gateway/shared/audit"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

var scope = store.Scope{Org: "o"}

// storeKey saves a key with its due rows.
func storeKey(t *testing.T, r *resource.Resources, id string, k *identity.Key) {
	t.Helper()
	err := r.Change(context.Background(), scope, func(tx *resource.Tx) error {
		rec := resource.Record{Scope: scope, Kind: identity.KindKey, ID: id, Name: id, Status: identity.StatusActive}
		var err error
		if rec.Body, err = json.Marshal(k); err != nil {
			return err
		}
		if err := tx.Create(&rec); err != nil {
			return err
		}
		for kind, at := range identity.DueTimes(k) {
			if err := resource.Schedule(tx, kind, at, rec.Ref()); err != nil {
				return err
			}
		}
		return identity.Stage(tx, &rec, k, "")
	})
	if err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, r *resource.Resources, id string) (resource.Record, identity.Key) {
	t.Helper()
	rec, ok, err := r.Get(context.Background(), scope, identity.KindKey, id)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	var k identity.Key
	if err := json.Unmarshal(rec.Body, &k); err != nil {
		t.Fatal(err)
	}
	return rec, k
}

func TestKeysFollowTheClock(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "t.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Date(2026, 11, 20, 10, 30, 0, 0, time.UTC)
	r := resource.New(s, resource.Clock(func() time.Time { return now }), resource.Embedded())
	ends := now.Add(time.Hour)
	raw, secret := identity.NewSecret()
	storeKey(t, r, "ending", &identity.Key{Type: identity.OrganisationService, Scopes: []string{"audit_logs.list"}, Secret: secret, ExpiresAt: &ends})
	rotated := identity.Key{Type: identity.OrganisationService, Scopes: []string{"audit_logs.list"}}
	old, oldSecret := identity.NewSecret()
	rotated.Secret = oldSecret
	if _, err := identity.Rotate(&rotated, now, identity.MinTransition); err != nil {
		t.Fatal(err)
	}
	storeKey(t, r, "rotated", &rotated)

	w := Worker{Resources: r}
	run := func() {
		t.Helper()
		if err := w.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	credential := func(raw string) bool {
		_, ok, err := s.Table(store.Keys).Get(context.Background(), identity.CredentialKey(identity.SecretOf(raw)), true)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	run()
	if rec, _ := load(t, r, "ending"); rec.Status != identity.StatusActive {
		t.Errorf("an hour before its end the key is %s", rec.Status)
	}
	if !credential(old) {
		t.Error("the old secret is gone within its transition")
	}
	now = now.Add(identity.MinTransition)
	run()
	if _, k := load(t, r, "rotated"); k.Previous != nil || credential(old) {
		t.Error("the old secret is still there after its transition")
	}
	now = ends
	run()
	run() // a second run finds nothing to do
	if rec, _ := load(t, r, "ending"); rec.Status != identity.StatusExpired || !credential(raw) {
		t.Errorf("past its end the key is %s", rec.Status)
	}
	left := 0
	for _, kind := range []string{identity.DueExpiry, identity.DueOldSecret} {
		err := r.EachDue(context.Background(), kind, now.Add(-24*time.Hour), now.Add(24*time.Hour), func(resource.Due) error { left++; return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	if left != 0 {
		t.Errorf("%d due rows are left", left)
	}
}

func TestRotationIsLeftOutWithinATransitionAndForEndedKeys(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC) // a Monday
	due := now
	policy := func() *identity.RotationPolicy { return &identity.RotationPolicy{Period: "weekly", NextAt: &due} }
	_, secret := identity.NewSecret()

	k := identity.Key{Secret: secret, Rotation: policy()}
	if raw := identity.RotateDue(&k, identity.StatusActive, now); raw == "" || identity.SecretOf(raw) != k.Secret || k.Previous == nil {
		t.Errorf("a due key was not rotated: %+v", k)
	}
	if k.Rotation.NextAt.Equal(now) || k.Rotation.NextAt.Weekday() != time.Monday {
		t.Errorf("next at %v", k.Rotation.NextAt)
	}

	turned := identity.Key{Secret: secret, Rotation: policy()}
	if _, err := identity.Rotate(&turned, now.Add(-time.Minute), identity.MinTransition); err != nil {
		t.Fatal(err)
	}
	turned.Rotation = policy()
	if raw := identity.RotateDue(&turned, identity.StatusActive, now); raw != "" || !turned.Rotation.NextAt.After(now) {
		t.Errorf("rotated within the transition of a manual rotation, or not planned again: %v", turned.Rotation.NextAt)
	}

	ended := now.Add(-time.Second)
	for name, k := range map[string]*identity.Key{
		"expired":   {Secret: secret, Rotation: policy(), ExpiresAt: &ended},
		"no policy": {Secret: secret},
		"later":     {Secret: secret, Rotation: &identity.RotationPolicy{PeriodDays: 3, NextAt: k.Rotation.NextAt}},
	} {
		if identity.RotateDue(k, identity.StatusActive, now) != "" || k.Secret != secret {
			t.Errorf("%s: rotated", name)
		}
	}
}

// Several workers run at once, with different clocks, after a long pause: each change is
// made once and is in the audit log once.
func TestWorkersAtATimeDoEachThingOnce(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "t.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Date(2026, 11, 20, 10, 30, 0, 0, time.UTC)
	at := func(d time.Duration) *resource.Resources {
		return resource.New(s, resource.Clock(func() time.Time { return now.Add(d) }))
	}
	r := at(0)
	ends := now.Add(time.Hour)
	_, secret := identity.NewSecret()
	storeKey(t, r, "ending", &identity.Key{Type: identity.OrganisationService, Scopes: []string{"audit_logs.list"}, Secret: secret, ExpiresAt: &ends})
	_, first := identity.NewSecret()
	rotated := identity.Key{Type: identity.OrganisationService, Scopes: []string{"audit_logs.list"}, Secret: first}
	if _, err := identity.Rotate(&rotated, now, identity.MinTransition); err != nil {
		t.Fatal(err)
	}
	storeKey(t, r, "rotated", &rotated)
	now = now.Add(40 * 24 * time.Hour)
	if err := s.Table(store.Control).Put(context.Background(), store.Row{Key: progress, Item: store.Item{"since": ends.Add(-3 * time.Hour).UnixMilli()}}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, apart := range []time.Duration{0, -20 * time.Minute, 15 * time.Minute, 0} {
		wg.Go(func() {
			w := Worker{Resources: at(apart)}
			for range 2 {
				if err := w.Run(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	events := map[string]int{}
	for shard := range resource.OutboxPartitions {
		page, err := s.Table(store.Control).Query(context.Background(), store.Query{Partition: resource.OutboxPartition(shard)})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Rows {
			var e audit.Entry
			if err := json.Unmarshal(resource.DecodeMessage(shard, row).Body, &e); err != nil {
				t.Fatal(err)
			}
			events[e.ResourceID+" "+e.Details["event"]+e.Details["status"]]++
		}
	}
	if len(events) != 2 || events["ending expired"] != 1 || events["rotated old_secret_expired"] != 1 {
		t.Errorf("the audit log contains %v", events)
	}
	if rec, _ := load(t, r, "ending"); rec.Status != identity.StatusExpired {
		t.Errorf("the key is %s", rec.Status)
	}
	if _, k := load(t, r, "rotated"); k.Previous != nil {
		t.Error("the old secret is still there")
	}
}
