// Package expiry is the worker that brings API keys up to date with the clock:
// keys past their expires_at are marked, secrets whose transition has ended are
// removed. Requests check both times themselves; the worker makes them visible.
package expiry

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gateway/shared/audit"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// lookBack is how far back a run looks for what earlier runs have missed.
const lookBack = 7 * 24 * time.Hour

// Worker does the due work of keys.
type Worker struct {
	Resources *resource.Resources
	// since is where the next run starts to look; runs that follow one another
	// need not walk the past again.
	since time.Time
}

// Run does everything that is due now.
func (w *Worker) Run(ctx context.Context) error {
	now := w.Resources.Now()
	from := w.since
	if from.IsZero() {
		from = now.Add(-lookBack)
	}
	jobs := []struct {
		kind string
		do   func(*resource.Tx, *resource.Record, *identity.Key, time.Time) bool
	}{
		{identity.DueOldSecret, dropOldSecret},
		{identity.DueExpiry, markExpired},
	}
	for _, j := range jobs {
		err := w.Resources.EachDue(ctx, j.kind, from, now, func(d resource.Due) error {
			if d.At.After(now) {
				return nil
			}
			if err := w.change(ctx, d, now, j.do); err != nil {
				return err
			}
			return w.Resources.Done(ctx, d)
		})
		if err != nil {
			return fmt.Errorf("expiry: %s: %w", j.kind, err)
		}
	}
	// Rows of the current hour may still be added; start there again.
	w.since = now.Add(-2 * time.Hour)
	return nil
}

// change applies one job to a key, if it is still there and still due.
func (w *Worker) change(ctx context.Context, d resource.Due, now time.Time, do func(*resource.Tx, *resource.Record, *identity.Key, time.Time) bool) error {
	return w.Resources.Change(ctx, d.Of.Scope, func(tx *resource.Tx) error {
		rec, ok, err := tx.Get(d.Of.Scope, identity.KindKey, d.Of.ID)
		if err != nil || !ok {
			return err
		}
		var k identity.Key
		if err := json.Unmarshal(rec.Body, &k); err != nil {
			return fmt.Errorf("expiry: key %s: %w", rec.ID, err)
		}
		before := k
		if !do(tx, &rec, &k, now) {
			return nil
		}
		if rec.Body, err = json.Marshal(&k); err != nil {
			return fmt.Errorf("expiry: key %s: %w", rec.ID, err)
		}
		if err := tx.Update(&rec); err != nil {
			return err
		}
		slug, err := workspaceSlug(tx, rec.Scope)
		if err != nil {
			return err
		}
		var gone []identity.Secret
		if before.Previous != nil && k.Previous == nil {
			gone = append(gone, *before.Previous)
		}
		return identity.Stage(tx, &rec, &k, slug, gone...)
	})
}

func workspaceSlug(tx *resource.Tx, sc store.Scope) (string, error) {
	if sc.Workspace == "" {
		return "", nil
	}
	ws, _, err := tx.Get(sc.Organisation(), tenant.KindWorkspace, sc.Workspace)
	return ws.Slug, err
}

// dropOldSecret removes the secret before the last rotation once its transition
// has ended.
func dropOldSecret(_ *resource.Tx, _ *resource.Record, k *identity.Key, now time.Time) bool {
	if k.Previous == nil || k.Previous.ExpiresAt == nil || k.Previous.ExpiresAt.After(now) {
		return false
	}
	k.Previous = nil
	return true
}

// markExpired gives a key past its expiry the status expired, and says so in
// the audit log.
func markExpired(tx *resource.Tx, rec *resource.Record, k *identity.Key, now time.Time) bool {
	if rec.Status != identity.StatusActive || identity.Live(rec.Status, k, now) != identity.StatusExpired {
		return false
	}
	rec.Status = identity.StatusExpired
	_ = audit.Append(tx, audit.Entry{ // its form is fixed: it cannot fail to encode
		ResourceType: "api_keys", Action: audit.Update, ResourceID: rec.ID, WorkspaceID: rec.Scope.Workspace,
		StatusCode: 200, Details: map[string]string{"api_key_id": rec.ID, "status": identity.StatusExpired},
	})
	return true
}
