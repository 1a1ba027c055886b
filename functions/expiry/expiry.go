// Package expiry is the worker that applies time-based changes to API keys and invitations: it
// removes old secrets at the end of their transition, rotates keys with a rotation policy,
// marks expired keys and invitations, and sends notices a day in advance. Requests check expiry
// themselves; the worker makes it visible.
//
// The new secret of a rotated key is sealed in its record until a user with the permission to
// rotate it collects it, once; the old one works until then or until its transition ends.
package expiry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gateway/shared/audit"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/notice"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// Limits on how far a run looks back for due entries: to the last recorded run, but not further
// than this.
const (
	firstLookBack = 7 * 24 * time.Hour
	lookBack      = 400 * 24 * time.Hour
	overlap       = 2 * time.Hour // rows of the current hour may still be added
)

// progress is the row in which runs note how far they have come, so that a
// process that was stopped for long misses nothing.
var progress = store.System("KEYS-DUE").Key("PROGRESS")

// Worker does the due work of keys and invitations.
type Worker struct {
	Resources *resource.Resources
	Sealer    seal.Sealer // seals new secrets until they are collected
	// since is where the next run starts to look; runs that follow one another
	// need not walk the past again.
	since time.Time
}

// Run does everything that is due now.
func (w *Worker) Run(ctx context.Context) error {
	now := w.Resources.Now()
	from, err := w.from(ctx, now)
	if err != nil {
		return err
	}
	jobs := []struct {
		kind string
		do   func(context.Context, resource.Due, time.Time) error
	}{
		{identity.DueOldSecret, w.ofKey(dropOldSecret)},
		{identity.DueRotation, w.ofKey(w.rotate)},
		{identity.DueExpiry, w.ofKey(markExpired)},
		{membership.DueInvite, w.expireInvite},
	}
	for _, j := range jobs {
		err := w.Resources.EachDue(ctx, j.kind, from, now, func(d resource.Due) error {
			if d.At.After(now) {
				return nil
			}
			if err := j.do(ctx, d, now); err != nil {
				return err
			}
			return w.Resources.Done(ctx, d)
		})
		if err != nil {
			return fmt.Errorf("expiry: %s: %w", j.kind, err)
		}
	}
	if err := w.warn(ctx, now); err != nil {
		return err
	}
	since := now.Add(-overlap)
	if since.Truncate(time.Hour).After(w.since.Truncate(time.Hour)) {
		row := store.Row{Key: progress, Item: store.Item{"since": since.UnixMilli()}}
		if err := w.Resources.Store().Table(store.Control).Put(ctx, row); err != nil {
			return fmt.Errorf("expiry: %w", err)
		}
	}
	w.since = since
	return nil
}

// from is where this run starts to look.
func (w *Worker) from(ctx context.Context, now time.Time) (time.Time, error) {
	if !w.since.IsZero() {
		return w.since, nil
	}
	it, ok, err := w.Resources.Store().Table(store.Control).Get(ctx, progress, true)
	if err != nil {
		return time.Time{}, fmt.Errorf("expiry: %w", err)
	}
	from := now.Add(-firstLookBack)
	if at := time.UnixMilli(it.Int("since")); ok && at.Before(from) {
		from = at
	}
	if oldest := now.Add(-lookBack); from.Before(oldest) {
		from = oldest
	}
	return from, nil
}

// job changes a key; false when there is nothing to do.
type job func(ctx context.Context, tx *resource.Tx, rec *resource.Record, k *identity.Key, now time.Time) (bool, error)

// ofKey is a job as the worker runs it.
func (w *Worker) ofKey(do job) func(context.Context, resource.Due, time.Time) error {
	return func(ctx context.Context, d resource.Due, now time.Time) error { return w.change(ctx, d, now, do) }
}

// change applies one job to a key, if it is still there and still due.
func (w *Worker) change(ctx context.Context, d resource.Due, now time.Time, do job) error {
	return w.Resources.Change(ctx, d.Of.Scope, func(tx *resource.Tx) error {
		rec, ok, err := tx.Get(d.Of.Scope, identity.KindKey, d.Of.ID)
		if err != nil || !ok {
			return err
		}
		var before, k identity.Key // two, since a policy is changed in place
		if err := errors.Join(json.Unmarshal(rec.Body, &before), json.Unmarshal(rec.Body, &k)); err != nil {
			return fmt.Errorf("expiry: key %s: %w", rec.ID, err)
		}
		if changed, err := do(ctx, tx, &rec, &k, now); err != nil || !changed {
			return err
		}
		if err := identity.Reschedule(tx, rec.Ref(), &before, &k); err != nil {
			return err
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
// has ended, and reports it in the audit log.
func dropOldSecret(_ context.Context, tx *resource.Tx, rec *resource.Record, k *identity.Key, now time.Time) (bool, error) {
	if k.Previous == nil || k.Previous.ExpiresAt == nil || k.Previous.ExpiresAt.After(now) {
		return false, nil
	}
	old := k.Previous.Masked
	k.Previous = nil
	return true, audit.Append(tx, audit.Entry{
		ResourceType: k.Type.ScopeFamily(), Action: audit.Update, ResourceID: rec.ID, WorkspaceID: rec.Scope.Workspace, StatusCode: 200,
		Details: map[string]string{"api_key_id": rec.ID, "event": "old_secret_expired", "old_key_masked": old},
	})
}

// rotate gives a key its policy's new secret, and reports it in the audit log.
func (w *Worker) rotate(ctx context.Context, tx *resource.Tx, rec *resource.Record, k *identity.Key, now time.Time) (bool, error) {
	due := k.Rotation != nil && k.Rotation.NextAt != nil && !k.Rotation.NextAt.After(now)
	old := k.Secret.Masked
	raw := identity.RotateDue(k, rec.Status, now)
	if raw == "" {
		return due, nil // the next time may have been planned
	}
	if err := rec.SetSecret(ctx, w.Sealer, identity.UncollectedSecret, []byte(raw)); err != nil {
		return false, err
	}
	until := k.Previous.ExpiresAt.Format(time.RFC3339)
	if err := stageNotice(tx, k.Notice(rec, notice.KeyRotated, "was rotated; the old secret works until "+until, map[string]string{"rotation_mode": "auto", "transition_expires_at": until})); err != nil {
		return false, err
	}
	return true, audit.Append(tx, audit.Entry{
		ResourceType: k.Type.ScopeFamily(), Action: audit.Rotate, ResourceID: rec.ID, WorkspaceID: rec.Scope.Workspace, StatusCode: 200,
		Details: map[string]string{
			"api_key_id": rec.ID, "rotation_mode": "auto", "old_key_masked": old,
			"transition_expires_at": until,
		},
	})
}

// markExpired gives a key past its expiry the status expired, and reports it in
// the audit log.
func markExpired(_ context.Context, tx *resource.Tx, rec *resource.Record, k *identity.Key, now time.Time) (bool, error) {
	if rec.Status != identity.StatusActive || identity.Live(rec.Status, k, now) != identity.StatusExpired {
		return false, nil
	}
	rec.Status = identity.StatusExpired
	if err := stageNotice(tx, k.Notice(rec, notice.KeyExpired, "has expired", nil)); err != nil {
		return false, err
	}
	return true, audit.Append(tx, audit.Entry{
		ResourceType: k.Type.ScopeFamily(), Action: audit.Update, ResourceID: rec.ID, WorkspaceID: rec.Scope.Workspace,
		StatusCode: 200, Details: map[string]string{"api_key_id": rec.ID, "status": identity.StatusExpired},
	})
}

// ahead is how long in advance users are notified.
const ahead = 24 * time.Hour

// stageNotice stages a notice within a change.
func stageNotice(tx *resource.Tx, e notice.Event) error {
	a, err := notice.Stage(e, tx.Now())
	if err == nil {
		tx.Do(a, nil)
	}
	return err
}

// warnings are the advance notices about a key: the due entry, the notice, the text around the
// time, and the detail with the time.
var warnings = []struct{ due, kind, before, after, detail string }{
	{identity.DueOldSecret, notice.OldSecretExpiring, "is open with its old secret until ", " only", "transition_expires_at"},
	{identity.DueRotation, notice.KeyRotationDue, "is rotated at ", "", "next_rotation_at"},
	{identity.DueExpiry, notice.KeyExpiring, "expires at ", "", "expires_at"},
}

// warn sends notices for what happens within a day, once: the due entry is marked with the
// notice.
func (w *Worker) warn(ctx context.Context, now time.Time) error {
	for _, of := range warnings {
		err := w.warnOf(ctx, now, of.due, func(d resource.Due) (e notice.Event, ok bool, err error) {
			rec, k, ok, err := w.key(ctx, d)
			if !ok || of.due == identity.DueOldSecret && announced(k, d) {
				return e, false, err
			}
			at := stamp(d)
			details := map[string]string{of.detail: at}
			if of.due == identity.DueOldSecret {
				details["old_key_masked"] = k.Previous.Masked
			}
			return k.Notice(rec, of.kind, of.before+at+of.after, details), true, nil
		})
		if err != nil {
			return err
		}
	}
	return w.warnOf(ctx, now, membership.DueInvite, func(d resource.Due) (notice.Event, bool, error) { return w.inviteEnds(ctx, d) })
}

// announced reports whether a transition is shorter than the advance notice: its end was
// announced when the key was rotated.
func announced(k *identity.Key, d resource.Due) bool {
	return k.RotatedAt == nil || d.At.Sub(*k.RotatedAt) <= ahead
}

func (w *Worker) warnOf(ctx context.Context, now time.Time, due string, noticeOf func(resource.Due) (notice.Event, bool, error)) error {
	err := w.Resources.EachDue(ctx, due, now, now.Add(ahead), func(d resource.Due) error {
		if d.Noted || !d.At.After(now) {
			return nil
		}
		e, needed, err := noticeOf(d)
		if err != nil || !needed {
			return err
		}
		a, err := notice.Stage(e, now)
		if err != nil {
			return err
		}
		_, err = w.Resources.MarkDue(ctx, d, a)
		return err
	})
	if err != nil {
		return fmt.Errorf("expiry: notices of %s: %w", due, err)
	}
	return nil
}

// key reads the key of a due row, if it lives and is still due then.
func (w *Worker) key(ctx context.Context, d resource.Due) (*resource.Record, *identity.Key, bool, error) {
	rec, ok, err := w.Resources.Get(ctx, d.Of.Scope, identity.KindKey, d.Of.ID)
	if err != nil || !ok {
		return nil, nil, false, err
	}
	k := new(identity.Key)
	if err := json.Unmarshal(rec.Body, k); err != nil {
		return nil, nil, false, fmt.Errorf("key %s: %w", rec.ID, err)
	}
	at, due := identity.DueTimes(k)[d.Kind]
	return &rec, k, due && at.UnixMilli() == d.At.UnixMilli() && identity.Live(rec.Status, k, w.Resources.Now()) == identity.StatusActive, nil
}

func stamp(d resource.Due) string { return d.At.UTC().Format(time.RFC3339) }

func (w *Worker) inviteEnds(ctx context.Context, d resource.Due) (e notice.Event, ok bool, err error) {
	rec, ok, err := w.Resources.Get(ctx, d.Of.Scope, membership.KindInvite, d.Of.ID)
	if err != nil || !ok {
		return e, false, err
	}
	i, err := membership.DecodeInvite(rec)
	if err != nil || rec.Archived() || i.StateAt(w.Resources.Now()) != membership.Pending || i.ExpiresAt.UnixMilli() != d.At.UnixMilli() {
		return e, false, err
	}
	return invited(i, &rec, notice.InviteExpiring, "The invitation of "+i.Email+" expires at "+stamp(d)), true, nil
}

// invited is an event about an invite, for the user who sent it.
func invited(i *membership.Invite, rec *resource.Record, kind, summary string) notice.Event {
	e := i.Notice(rec, kind, summary)
	if i.InvitedBy != "" {
		e.Audience.Users = []string{i.InvitedBy}
	}
	return e
}

// expireInvite writes down that the time of an invitation is over.
func (w *Worker) expireInvite(ctx context.Context, d resource.Due, _ time.Time) error {
	return w.Resources.Change(ctx, d.Of.Scope, func(tx *resource.Tx) error {
		rec, ok, err := tx.Get(d.Of.Scope, membership.KindInvite, d.Of.ID)
		if err != nil || !ok || rec.Archived() {
			return err
		}
		i, err := membership.DecodeInvite(rec)
		if err != nil {
			return err
		}
		if due, err := membership.Expire(tx, &rec, i); err != nil || !due {
			return err
		}
		if err := stageNotice(tx, invited(i, &rec, notice.InviteExpired, "The invitation of "+i.Email+" has expired")); err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{
			ResourceType: "organisation_users", Action: audit.Update, ResourceID: rec.ID, StatusCode: 200,
			Details: map[string]string{"invite_id": rec.ID, "status": membership.Expired},
		})
	})
}
