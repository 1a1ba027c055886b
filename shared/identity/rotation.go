package identity

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"gateway/shared/fault"
	"gateway/shared/resource"
)

// MinTransition is the minimum and default time during which the old and the new secret of a
// rotated key are both valid.
const MinTransition = 30 * time.Minute

// RotationPolicy configures automatic rotation of a key at 00:00 UTC.
type RotationPolicy struct {
	Period       string     `json:"rotation_period,omitempty" doc:"weekly (Monday) or monthly (the 1st)."`
	PeriodDays   int        `json:"rotation_period_days,omitempty" doc:"1 to 365; excludes rotation_period."`
	NextAt       *time.Time `json:"next_rotation_at,omitempty" doc:"The next rotation."`
	NextSent     string     `json:"next_sent,omitempty"` // the client's text of next_rotation_at
	TransitionMS int64      `json:"key_transition_period_ms,omitempty" doc:"How long the old and the new key are both valid: at least 30 minutes, less than the period."`
}

// Validate returns all errors of the policy.
func (p *RotationPolicy) Validate(now time.Time) []fault.Detail {
	var d []fault.Detail
	bad := func(field, format string, args ...any) {
		d = append(d, fault.Detail{Field: "rotation_policy." + field, Message: fmt.Sprintf(format, args...)})
	}
	if p.Period != "" && p.Period != "weekly" && p.Period != "monthly" {
		bad("rotation_period", "must be weekly or monthly")
	}
	if p.Period != "" && p.PeriodDays != 0 {
		bad("rotation_period_days", "cannot be given together with rotation_period")
	}
	if p.PeriodDays < 0 || p.PeriodDays > 365 {
		bad("rotation_period_days", "must be 1 to 365")
	}
	if p.Period == "" && p.PeriodDays == 0 && p.NextAt == nil {
		bad("rotation_period", "one of rotation_period, rotation_period_days and next_rotation_at is required")
	}
	if p.NextAt != nil && !Midnight(*p.NextAt).After(now) {
		bad("next_rotation_at", "must be in the future (00:00 UTC of the day counts)")
	}
	if t := p.TransitionMS; t != 0 {
		if time.Duration(t)*time.Millisecond < MinTransition {
			bad("key_transition_period_ms", "must be at least %d", MinTransition.Milliseconds())
		} else if length := p.length(); length > 0 && t >= length.Milliseconds() {
			bad("key_transition_period_ms", "must be less than the rotation period")
		}
	}
	return d
}

// length returns the shortest period of the policy; 0 for a single date.
func (p *RotationPolicy) length() time.Duration {
	const day = 24 * time.Hour
	switch {
	case p.Period == "weekly":
		return 7 * day
	case p.Period == "monthly":
		return 28 * day
	}
	return time.Duration(p.PeriodDays) * day
}

// Transition returns how long the old and the new secret are both valid.
func (p *RotationPolicy) Transition() time.Duration {
	if p == nil || p.TransitionMS == 0 {
		return MinTransition
	}
	return time.Duration(p.TransitionMS) * time.Millisecond
}

// AllowsTransition checks the transition of a manual rotation against the policy.
func (p *RotationPolicy) AllowsTransition(d time.Duration) bool {
	return p == nil || p.length() == 0 || d < p.length()
}

// Next returns the first rotation after now, or nil.
func (p *RotationPolicy) Next(now time.Time) *time.Time {
	if p.NextAt != nil && Midnight(*p.NextAt).After(now) {
		t := Midnight(*p.NextAt)
		return &t
	}
	today := Midnight(now)
	var t time.Time
	switch {
	case p.Period == "weekly":
		t = today.AddDate(0, 0, 7-(int(today.Weekday())+6)%7)
	case p.Period == "monthly":
		t = time.Date(today.Year(), today.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	case p.PeriodDays > 0:
		t = today.AddDate(0, 0, p.PeriodDays)
	default:
		return nil
	}
	return &t
}

// Midnight returns 00:00 UTC of the time's UTC day.
func Midnight(t time.Time) time.Time {
	y, m, d := t.UTC().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// Rotate gives the key a new secret; the old one stays valid for transition. It fails while an
// earlier secret is still valid: a key has at most two.
func Rotate(k *Key, now time.Time, transition time.Duration) (raw string, err error) {
	if k.InTransition(now) {
		return "", fault.Newf(fault.Conflict, "id", "the previous secret is still valid until %s; rotate again after that, or choose with during_transition whether to replace the new secret or to end the previous one", k.Previous.ExpiresAt.UTC().Format(time.RFC3339))
	}
	until := now.Add(transition).UTC().Truncate(time.Millisecond)
	old := k.Secret
	old.ExpiresAt = &until
	k.Previous = &old
	raw, k.Secret = NewSecret()
	at := now.UTC().Truncate(time.Millisecond)
	k.RotatedAt = &at
	if k.Rotation != nil {
		k.Rotation.NextAt = k.Rotation.Next(now)
	}
	return raw, nil
}

// InTransition reports whether an earlier secret is still valid.
func (k *Key) InTransition(now time.Time) bool {
	return k.Previous != nil && k.Previous.ExpiresAt != nil && k.Previous.ExpiresAt.After(now)
}

// Replace gives a key in transition another new secret in place of the last one, which becomes
// invalid. The earlier secret and its end stay: the response with the last secret was lost.
func Replace(k *Key) (raw string) {
	raw, k.Secret = NewSecret()
	return raw
}

// UncollectedSecret is the name under which the raw secret of an automatic rotation is sealed
// in the key's record until it is collected.
const UncollectedSecret = "rotated"

// RotateDue rotates a key if its policy is due, and schedules the next rotation. raw is empty
// if the key was not rotated: because its policy has changed, the key has ended, or the
// transition of a manual rotation has not ended, in which case this rotation is skipped.
func RotateDue(k *Key, status string, now time.Time) (raw string) {
	p := k.Rotation
	if p == nil || p.NextAt == nil || p.NextAt.After(now) || Live(status, k, now) != StatusActive {
		return ""
	}
	raw, err := Rotate(k, now, p.Transition())
	if err != nil {
		p.NextAt = p.Next(now)
		return ""
	}
	return raw
}

// Reschedule updates the due lists from the earlier and the current key; nil for a key that
// does not exist.
func Reschedule(tx *resource.Tx, ref resource.Ref, was, is *Key) error {
	before, after := DueTimes(was), DueTimes(is)
	for kind, at := range before {
		if now, same := after[kind]; same && now.Equal(at) {
			continue
		}
		if err := resource.Unschedule(tx, kind, at, ref); err != nil {
			return err
		}
	}
	for kind, at := range after {
		if err := resource.Schedule(tx, kind, at, ref); err != nil {
			return err
		}
	}
	return nil
}

// Kinds of the due lists of the key worker.
const (
	DueExpiry    = "KEYEXPIRY"    // a key passes its expires_at
	DueRotation  = "KEYROTATION"  // a policy's next rotation is due
	DueOldSecret = "KEYOLDSECRET" // a transition ends
)

// DueTimes returns the due times of a key; none for nil.
func DueTimes(k *Key) map[string]time.Time {
	due := make(map[string]time.Time)
	if k == nil {
		return due
	}
	if k.ExpiresAt != nil {
		due[DueExpiry] = *k.ExpiresAt
	}
	if k.Rotation != nil && k.Rotation.NextAt != nil {
		due[DueRotation] = *k.Rotation.NextAt
	}
	if k.Previous != nil && k.Previous.ExpiresAt != nil {
		due[DueOldSecret] = *k.Previous.ExpiresAt
	}
	return due
}

// kindConfig is the kind of configs. A key may name one as its default.
const kindConfig resource.Kind = "CONFIG"

// Retire archives a key within a transaction: it becomes invalid, and its rows are deleted. It
// takes at most RowsOfKey rows.
func Retire(tx *resource.Tx, rec *resource.Record) error {
	var k Key
	if err := json.Unmarshal(rec.Body, &k); err != nil {
		return fmt.Errorf("identity: key %s: %w", rec.ID, err)
	}
	if name := k.Defaults.ConfigID; name != "" {
		cfg, ok, err := tx.Get(rec.Scope, kindConfig, name)
		if err != nil {
			return err
		}
		if ok {
			if err := tx.RemoveUse(cfg.Ref(), rec.Ref()); err != nil {
				return err
			}
		}
	}
	if err := Reschedule(tx, rec.Ref(), &k, nil); err != nil {
		return err
	}
	StageDelete(tx, rec, &k)
	return tx.Archive(rec)
}

// Fields of suspended keys: the user and the former status.
const (
	suspendedFor = "suspended"
	suspendedAs  = "suspended_as"
)

// Suspend retires a key so that Restore can restore it.
func Suspend(tx *resource.Tx, rec *resource.Record) error {
	fields := map[string]string{suspendedFor: rec.Fields["user"], suspendedAs: rec.Status}
	maps.Copy(fields, rec.Fields)
	rec.Fields = fields
	return Retire(tx, rec)
}

// Suspended returns the user for whom a key is suspended, from its list row, or "".
func Suspended(row *resource.Row) string { return row.Fields[suspendedFor] }

// Restore restores a suspended key. It takes at most RowsOfKey rows.
func Restore(tx *resource.Tx, rec *resource.Record, workspaceSlug string) error {
	var k Key
	if err := json.Unmarshal(rec.Body, &k); err != nil {
		return fmt.Errorf("identity: key %s: %w", rec.ID, err)
	}
	rec.Status = rec.Fields[suspendedAs]
	delete(rec.Fields, suspendedFor)
	delete(rec.Fields, suspendedAs)
	if name := k.Defaults.ConfigID; name != "" {
		cfg, ok, err := tx.Get(rec.Scope, kindConfig, name)
		if err != nil {
			return err
		}
		if ok && !cfg.Archived() {
			if err := tx.Use(cfg.Ref(), rec.Ref()); err != nil {
				return err
			}
		} else {
			k.Defaults.ConfigID = ""
			if rec.Body, err = json.Marshal(&k); err != nil {
				return fmt.Errorf("identity: encode key: %w", err)
			}
		}
	}
	if err := tx.Update(rec); err != nil {
		return err
	}
	if err := Reschedule(tx, rec.Ref(), nil, &k); err != nil {
		return err
	}
	return Stage(tx, rec, &k, workspaceSlug)
}

// RowsOfKey is the maximum number of rows for creating or retiring a key.
const RowsOfKey = 14
