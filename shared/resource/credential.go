package resource

import (
	"context"
	"reflect"
	"sync/atomic"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

type credentialID struct {
	kind, hash string
	typ        reflect.Type
}

// credential is a known credential as it was under one View.
type credential struct {
	org   string
	view  uint64
	value any
}

// credentialPlace contains a known credential; nil once it is revoked.
type credentialPlace struct{ atomic.Pointer[credential] }

func (p *credentialPlace) get() *credential {
	if p == nil {
		return nil
	}
	return p.Load()
}

// LoadCredential gives the decoded row of a credential (store.Credential), found by the
// hash of a secret. ok is false when there is none. A known credential is valid as long as
// its organisation's View is, so a revoked or changed one is noticed within MaxStale. An
// unknown one is remembered as unknown for 1.5 s.
//
// The row must have "org". The caller checks the expiry, which needs no read.
func LoadCredential[T any](ctx context.Context, l *Loader, kind, hash string, decode func(store.Item) (T, error)) (T, bool, error) {
	var none T
	id := credentialID{kind, hash, reflect.TypeFor[T]()}
	place, _ := l.credentials.get(id)
	if known := place.get(); known != nil {
		v, err := l.Fresh(ctx, known.org)
		if err != nil {
			return none, false, err
		}
		if v.id == known.view {
			val, _ := known.value.(T)
			return val, true, nil
		}
	}
	for {
		unknown, asked := l.isUnknown(id)
		if unknown && place.get() == nil {
			return none, false, nil
		}
		// A View that is older than the read cannot be newer than the read data. If the View is
		// younger, the row must be read again.
		newest := l.views.Load()
		it, found, err := l.keys.Get(ctx, store.Credential(kind, hash), true)
		if err != nil {
			return none, false, fault.Unavailable(err)
		}
		if !found {
			l.forget(id, place, asked)
			return none, false, nil
		}
		org := it.String("org")
		v, err := l.Fresh(ctx, org)
		if err != nil {
			return none, false, err
		}
		if v.id > newest {
			continue
		}
		val, err := decode(it)
		if err != nil {
			return none, false, err
		}
		l.remember(id, &credential{org: org, view: v.id, value: val})
		return val, true, nil
	}
}

func (l *Loader) remember(id credentialID, c *credential) {
	if l.credentials.size() >= maxCredentials {
		l.credentials.clear()
	}
	place, _ := l.credentials.getOrPut(id, new(credentialPlace))
	place.Store(c)
}

// moment is the time of a read of a credential, and how often changes of this process had
// cleared the unknown credentials by then.
type moment struct {
	at      time.Time
	cleared uint64
}

// forget remembers that a credential is absent, for a moment, counted from before the read
// that did not find it. If this process has made a change since then, nothing is
// remembered: the change may have made the credential, and the read may not have seen it.
func (l *Loader) forget(id credentialID, place *credentialPlace, asked moment) {
	if place != nil {
		place.Store(nil)
	}
	l.unknownMu.Lock()
	defer l.unknownMu.Unlock()
	if l.cleared != asked.cleared {
		return
	}
	if len(l.unknown) >= maxUnknown {
		clear(l.unknown)
	}
	l.unknown[id] = asked.at.Add(unknownFor)
}

// isUnknown reports whether the credential is cached as absent. If it is not, the store is read
// now, and asked is for a later forget.
func (l *Loader) isUnknown(id credentialID) (unknown bool, asked moment) {
	l.unknownMu.Lock()
	defer l.unknownMu.Unlock()
	asked = moment{l.now(), l.cleared}
	until, ok := l.unknown[id]
	if !ok {
		return false, asked
	}
	if asked.at.Before(until) && until.Sub(asked.at) <= unknownFor {
		return true, asked
	}
	delete(l.unknown, id)
	return false, asked
}

// Keep stores a credential that belongs to no resource.
func (l *Loader) Keep(ctx context.Context, sc store.Scope, row store.Row) error {
	return l.r.Change(ctx, sc, func(tx *Tx) error { return tx.PutCredential(row) })
}
