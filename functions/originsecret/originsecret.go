// Package originsecret is the worker that rotates the secret by which CloudFront authenticates
// to the functions and the container. Each run performs the step that is due; a step starts
// only after the previous one has reached every process:
//
//	in use     current                the edge sends it; after Interval, or on request, a next one is created
//	announced  current and next       both are accepted; after Wait the next one becomes the current one
//	switched   current and previous   the edge is configured to send the current one; once all of it does,
//	                                  and after Wait, the previous one is retired
//
// At most two secrets are accepted, and the one that any part of the edge still sends is always
// among them. The next run completes a run that failed or died between two writes.
package originsecret

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gateway/shared/host/originauth"
	"gateway/shared/store"
)

// Standard times of rotations.
const (
	Interval = 90 * 24 * time.Hour
	Wait     = 10 * time.Minute // longer than any process goes by what it has read
)

// Secret is the value in the secret store. The template of the edge reads current.
type Secret struct {
	Current  string    `json:"current"`
	Previous string    `json:"previous"`
	Next     string    `json:"next,omitempty"`
	Since    time.Time `json:"since,omitzero"`   // of the last step
	Rotated  time.Time `json:"rotated,omitzero"` // when current was made, or seen first
}

// Vault stores the secret.
type Vault interface {
	Load(context.Context) (Secret, error)
	Save(context.Context, Secret) error
}

// Edge sends the secret.
type Edge interface {
	// OriginValues are the values that its origins are configured with; settled when every
	// part of it sends them.
	OriginValues(context.Context) (values []string, settled bool, err error)
	// Send configures all origins with a value.
	Send(ctx context.Context, value string) error
}

// Rotation replaces the secret. Two that run at a time do no harm.
type Rotation struct {
	Vault Vault
	Edge  Edge
	Store store.Store
	Now   func() time.Time // nil: time.Now
}

// Run performs the step that is due.
func (r *Rotation) Run(ctx context.Context) error { return r.run(ctx, false) }

// Begin starts a rotation regardless of the secret's age, for a secret that may have leaked;
// later runs complete it.
func (r *Rotation) Begin(ctx context.Context) error { return r.run(ctx, true) }

func (r *Rotation) run(ctx context.Context, begin bool) error {
	now := time.Now
	if r.Now != nil {
		now = r.Now
	}
	s, err := r.Vault.Load(ctx)
	if err == nil && s.Current == "" {
		err = errors.New("the secret has no current value")
	}
	if err == nil {
		err = r.step(ctx, s, now().UTC().Truncate(time.Second), begin)
	}
	if err != nil {
		return fmt.Errorf("originsecret: %w", err)
	}
	return nil
}

// step performs one step. The tables are written before the secret store, so that a failure in
// between leaves only a secret that is accepted but unknown to any client.
func (r *Rotation) step(ctx context.Context, s Secret, now time.Time, begin bool) error {
	ring, err := originauth.Load(ctx, r.Store, true)
	if err != nil {
		return err
	}
	if s.Rotated.IsZero() {
		s.Rotated = now
	}
	if want := ring.WithSecrets(s.Current, s.Previous, s.Next); !want.Equal(ring) {
		if err := want.Save(ctx, r.Store); err != nil {
			return err
		}
		s.Since = now // from now on processes hear of it
		if err := r.Vault.Save(ctx, s); err != nil {
			return err
		}
		ring = want
	}
	waited := now.Sub(s.Since) >= Wait
	switch {
	case s.Next != "":
		if !waited {
			return nil
		}
		return r.swap(ctx, s, now)
	case s.Previous != "":
		return r.retire(ctx, s, ring, now, waited)
	}
	if _, err := r.correct(ctx, s); err != nil {
		return err
	}
	if !begin && now.Sub(s.Rotated) < Interval {
		return nil
	}
	s.Next, s.Since = rand.Text()+rand.Text(), now
	if err := ring.WithSecrets(s.Current, s.Next).Save(ctx, r.Store); err != nil {
		return err
	}
	slog.Info("a new origin secret is announced")
	return r.Vault.Save(ctx, s)
}

// swap makes the next secret the one to send. A deployment from here on sends it.
func (r *Rotation) swap(ctx context.Context, s Secret, now time.Time) error {
	s = Secret{Current: s.Next, Previous: s.Current, Since: now, Rotated: now}
	if err := r.Vault.Save(ctx, s); err != nil {
		return err
	}
	slog.Info("the edge is configured to send the new origin secret")
	return r.Edge.Send(ctx, s.Current)
}

// retire ends a rotation once nothing sends the previous secret any more.
func (r *Rotation) retire(ctx context.Context, s Secret, ring originauth.Ring, now time.Time, waited bool) error {
	settled, err := r.correct(ctx, s)
	if err != nil || !settled {
		return errors.Join(err, r.postpone(ctx, s, now))
	}
	if !waited {
		return nil
	}
	s.Previous, s.Since = "", now
	if err := ring.WithSecrets(s.Current).Save(ctx, r.Store); err != nil {
		return err
	}
	slog.Info("the former origin secret is retired")
	return r.Vault.Save(ctx, s)
}

// postpone starts the wait again, because requests that were sent with the previous secret
// are still under way.
func (r *Rotation) postpone(ctx context.Context, s Secret, now time.Time) error {
	s.Since = now
	return r.Vault.Save(ctx, s)
}

// correct has the edge send the current secret where it does not; settled when all
// of it does.
func (r *Rotation) correct(ctx context.Context, s Secret) (settled bool, err error) {
	sent, settled, err := r.Edge.OriginValues(ctx)
	if err != nil {
		return false, err
	}
	for _, v := range sent {
		if v != s.Current {
			return false, r.Edge.Send(ctx, s.Current)
		}
	}
	return settled, nil
}
