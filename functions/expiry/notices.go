package expiry

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gateway/shared/audit"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/notice"
	"gateway/shared/resource"
)

// ahead is how long in advance users are notified.
const ahead = 24 * time.Hour

// tell stages a notice within a change.
func tell(tx *resource.Tx, e notice.Event) error {
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
			if !ok || of.due == identity.DueOldSecret && toldBefore(k, d) {
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

// toldBefore reports whether a transition is shorter than the advance notice: its end was
// announced when the key was rotated.
func toldBefore(k *identity.Key, d resource.Due) bool {
	return k.RotatedAt == nil || d.At.Sub(*k.RotatedAt) <= ahead
}

func (w *Worker) warnOf(ctx context.Context, now time.Time, due string, say func(resource.Due) (notice.Event, bool, error)) error {
	err := w.Resources.EachDue(ctx, due, now, now.Add(ahead), func(d resource.Due) error {
		if d.Noted || !d.At.After(now) {
			return nil
		}
		e, still, err := say(d)
		if err != nil || !still {
			return err
		}
		a, err := notice.Stage(e, now)
		if err != nil {
			return err
		}
		_, err = w.Resources.Note(ctx, d, a)
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

// invited is an event about an invite, for whoever sent it.
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
		if err := tell(tx, invited(i, &rec, notice.InviteExpired, "The invitation of "+i.Email+" has expired")); err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{
			ResourceType: "organisation_users", Action: audit.Update, ResourceID: rec.ID, StatusCode: 200,
			Details: map[string]string{"invite_id": rec.ID, "status": membership.Expired},
		})
	})
}
