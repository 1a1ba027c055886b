// Package lastused records when API keys were last used, to the minute. The workers that
// store usage write one row per key and minute at most, so that requests write nothing.
package lastused

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"gateway/shared/store"
	"gateway/shared/usage"
)

const (
	// precision is the unit of recorded times.
	precision = time.Minute
	// lifetime is how long the time of a key that is no longer used is kept.
	lifetime = 400 * 24 * time.Hour
	// maxKnown limits the keys that a process remembers.
	maxKnown = 20_000
)

// attrAt is the start of the minute, in Unix seconds.
var attrAt = store.At("at")

// rowKey returns the key of the row of an API key, in the usage table.
func rowKey(org, keyID string) store.Key {
	return store.Scope{Org: org}.Partition().Key("KEYUSED", keyID)
}

// Recorder records uses of keys. It is safe for concurrent use.
type Recorder struct {
	table store.Table

	mu    sync.Mutex
	known map[store.Key]int64 // recorded by this process
}

// NewRecorder returns a Recorder that writes to s.
func NewRecorder(s store.Store) *Recorder {
	return &Recorder{table: s.Table(store.Usage), known: make(map[store.Key]int64)}
}

// Record records the keys of requests. Signed tokens are no keys and are not recorded. A
// failure is logged: the next request with the key repairs it.
func (r *Recorder) Record(ctx context.Context, records []usage.Record) {
	for key, at := range r.latest(records) {
		if err := write(ctx, r.table, key, at); err != nil {
			slog.Warn("the last use of a key is not recorded", "error", err.Error())
			continue
		}
		r.mu.Lock()
		if len(r.known) >= maxKnown {
			clear(r.known)
		}
		r.known[key] = max(at, r.known[key])
		r.mu.Unlock()
	}
}

// latest returns the last minute of each key, without what is recorded already.
func (r *Recorder) latest(records []usage.Record) map[store.Key]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[store.Key]int64)
	for i := range records {
		of := &records[i]
		if of.Org == "" || of.KeyID == "" || of.KeyType == signedToken {
			continue
		}
		key, at := rowKey(of.Org, of.KeyID), of.Start.Truncate(precision).Unix()
		if at > r.known[key] && at > out[key] {
			out[key] = at
		}
	}
	return out
}

// signedToken is the type of keys of identity.SignedToken.
const signedToken = "jwt"

// write sets the time of a row unless it has a later one.
func write(ctx context.Context, t store.Table, key store.Key, at int64) error {
	expires := time.Unix(at, 0).Add(lifetime)
	_, _, err := t.Update(ctx, store.Update{Key: key, Set: []store.Assign{{Path: attrAt, Value: at}}, If: []store.Cond{store.IfAtMost(attrAt, at)}, Expires: expires})
	failed, refused := store.AsCondition(err)
	if !refused || failed.Current != nil {
		if refused {
			return nil
		}
		return err
	}
	err = t.Put(ctx, store.Row{Key: key, Item: store.Item{attrAt.Attr: at}, Expires: expires}, store.IfAbsent())
	if _, refused := store.AsCondition(err); refused {
		return nil // another worker was faster by a moment
	}
	return err
}

// Times returns when keys were last used, by their ids; keys that were not are missing.
func Times(ctx context.Context, s store.Store, org string, keyIDs []string) (map[string]time.Time, error) {
	keys := make([]store.Key, len(keyIDs))
	for i, id := range keyIDs {
		keys[i] = rowKey(org, id)
	}
	rows, err := s.Table(store.Usage).GetMany(ctx, keys)
	if err != nil {
		return nil, err
	}
	out := make(map[string]time.Time, len(rows))
	for i, id := range keyIDs {
		if row, ok := rows[keys[i]]; ok {
			out[id] = time.Unix(row.Int(attrAt.Attr), 0).UTC()
		}
	}
	return out, nil
}
