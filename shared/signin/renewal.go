package signin

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// Times of sessions that depend on renewal by their identity provider.
const (
	RenewEvery = time.Hour       // of use
	renewAgain = 5 * time.Minute // after the provider was unreachable
	renewLate  = time.Hour       // how long after the due time a session is rejected without renewal
	renewLease = time.Minute     // longer than a request
	waitEach   = 100 * time.Millisecond
)

// ErrNotRenewed is returned when a provider does not renew a sign-in.
var ErrNotRenewed = errors.New("the identity provider does not renew the sign-in")

// Renewable is the data for renewing a sign-in at a provider. It is stored sealed with the
// session and deleted with it.
type Renewable struct {
	Token  string
	Sealer seal.Sealer
}

// Renewal renews sessions at identity providers, in a process that may do so.
type Renewal struct {
	Sealer seal.Sealer
	// NextToken returns the token for the next renewal, which may be the same, or ErrNotRenewed if
	// the provider has ended the sign-in. Other errors do not affect the session.
	NextToken func(ctx context.Context, of *Session, token string) (next string, err error)
	// Ended stages the record of a session that the provider has ended.
	Ended func(tx *resource.Tx, of *Session) error
}

// binding returns the seal binding of a session's token.
func (s *Session) binding() seal.Binding {
	k := s.place()
	return seal.Binding{Org: s.Org, Table: string(store.Control), PK: k.PK(), SK: k.SK() + "#renewal"}
}

// renewable adds the renewal data of a session to its row.
func (s *Session) renewable(ctx context.Context, it store.Item) error {
	sealed, err := s.Renewable.Sealer.Seal(ctx, s.binding(), []byte(s.Renewable.Token))
	if err != nil {
		return fault.Unavailable(err)
	}
	it["renewal"], it["lease"], it["rev"] = sealed, int64(0), int64(1)
	return nil
}

// errLate returns the fault for an overdue session, in a process that cannot renew.
func errLate() error {
	return fault.New(fault.Unauthorized, "", "The identity provider has to confirm the session: call GET /auth/self, then this again")
}

// renewIfDue renews a session at its identity provider, once in RenewEvery of use and by one
// process at a time. Other calls continue in the meantime, unless the renewal is overdue.
func (s *Sessions) renewIfDue(ctx context.Context, of *Session) error {
	if of.Due.IsZero() || s.resources.Now().Before(s.dueOf(of)) {
		return nil
	}
	deadline := time.Now().Add(renewLease)
	for {
		it, ok, err := s.resources.Store().Table(store.Control).Get(ctx, of.place(), true)
		if err != nil {
			return fault.Unavailable(err)
		}
		if !ok {
			return Ended()
		}
		now, due := s.resources.Now(), time.UnixMilli(it.Int("due"))
		if s.noteDue(of, due); now.Before(due) {
			return nil
		}
		late := now.Sub(due) >= renewLate
		switch {
		case s.Renewal == nil && late:
			return errLate()
		case s.Renewal == nil:
			return nil
		}
		mine, err := s.lease(ctx, of, it.Int("rev"), now)
		switch {
		case err != nil:
			return err
		case mine: // a rotated token must be stored even if the caller disconnects
			return s.renew(context.WithoutCancel(ctx), of, it)
		case !late:
			return nil
		case time.Now().After(deadline):
			return errLate()
		}
		select {
		case <-time.After(waitEach):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// change writes the row of a session, unless it was changed since rev.
func (s *Sessions) change(ctx context.Context, of *Session, rev int64, u store.Update) (done bool, err error) {
	u.Key, u.If = of.place(), append(u.If, store.IfEqual(store.At("rev"), rev))
	_, _, err = s.resources.Store().Table(store.Control).Update(ctx, u)
	if _, other := store.AsCondition(err); other {
		return false, nil
	}
	if err != nil {
		return false, fault.Unavailable(err)
	}
	return true, nil
}

// lease acquires the right to renew. It returns false if another process has it or has renewed.
func (s *Sessions) lease(ctx context.Context, of *Session, rev int64, now time.Time) (bool, error) {
	return s.change(ctx, of, rev, store.Update{
		Set: []store.Assign{{Path: store.At("lease"), Value: now.Add(renewLease).UnixMilli()}},
		If:  []store.Cond{store.IfAtMost(store.At("lease"), now.UnixMilli())},
	})
}

// renew renews at the provider and stores the result.
func (s *Sessions) renew(ctx context.Context, of *Session, it store.Item) error {
	rev, next := it.Int("rev"), ""
	token, err := s.Renewal.Sealer.Open(ctx, of.binding(), it.Bytes("renewal"))
	if err == nil {
		next, err = s.Renewal.NextToken(ctx, of, string(token))
	}
	if errors.Is(err, ErrNotRenewed) {
		return s.endUnrenewed(ctx, of)
	}
	if err != nil {
		slog.Warn("an identity provider could not be asked to renew a session", "organisation_id", of.Org, "session_id", of.ID, "error", err)
		return s.scheduleRenewal(ctx, of, rev, renewAgain)
	}
	sealed, err := s.Renewal.Sealer.Seal(ctx, of.binding(), []byte(next))
	if err != nil {
		return fault.Unavailable(err)
	}
	return s.scheduleRenewal(ctx, of, rev, RenewEvery, store.Assign{Path: store.At("renewal"), Value: sealed})
}

// scheduleRenewal stores the time of the next renewal, together with set.
func (s *Sessions) scheduleRenewal(ctx context.Context, of *Session, rev int64, after time.Duration, set ...store.Assign) error {
	due := s.resources.Now().Add(after)
	set = append(set, store.Assign{Path: store.At("due"), Value: due.UnixMilli()}, store.Assign{Path: store.At("lease"), Value: int64(0)})
	done, err := s.change(ctx, of, rev, store.Update{Set: set, Add: []store.Increment{{Path: store.At("rev"), By: 1}}})
	switch {
	case err != nil:
		return err
	case !done:
		return Ended() // it has ended in the meantime
	}
	s.noteDue(of, due)
	return nil
}

// endUnrenewed ends a session that the provider does not renew.
func (s *Sessions) endUnrenewed(ctx context.Context, of *Session) error {
	if err := s.resources.Change(ctx, store.Scope{Org: of.Org}, func(tx *resource.Tx) error {
		End(tx, of)
		return s.Renewal.Ended(tx, of)
	}); err != nil {
		return err
	}
	return Ended()
}

// dueOf returns when the session must be renewed, as far as this process knows.
func (s *Sessions) dueOf(of *Session) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.due[of.hash]; ok {
		return at
	}
	return of.Due
}

func (s *Sessions) noteDue(of *Session, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.due) >= maxSeen {
		clear(s.due)
	}
	s.due[of.hash] = at
}
