// Package feedback stores clients' ratings of responses, by the trace of the request and
// by time.
//
// Rows of the usage table, in the partition FEEDBACK of a workspace:
//
//	ID#<id>                 the keys of the other two
//	TRACE#<hash>#<id>       the feedback, for the logs of its trace
//	AT#<milliseconds>#<id>  the feedback, for aggregates over time
//
// The three are written together. A trace need not exist: its request may still be in
// progress. Feedback is stored as long as records of the day on which it was given: for
// the installation's retention, by the rows' expiry, and for its workspace's if that is
// shorter; see Retain.
package feedback

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// Feedback is one rating.
type Feedback struct {
	ID       string          `json:"id"`
	Trace    string          `json:"trace_id" min:"1" max:"256"`
	Value    int64           `json:"value" min:"-10" max:"10"`
	Weight   float64         `json:"weight" max:"1"`
	Metadata json.RawMessage `json:"metadata,omitempty"` // an object; nil if none
	Key      string          `json:"api_key_id,omitempty"`
	Created  time.Time       `json:"created_at"`
	Updated  time.Time       `json:"last_updated_at"`
}

// Limits of feedback.
const (
	MaxTrace    = 256     // characters
	MaxMetadata = 8 << 10 // bytes
	LeastValue  = -10
	MostValue   = 10
)

// Weighted returns the value multiplied by its weight.
func (f *Feedback) Weighted() float64 { return float64(f.Value) * f.Weight }

// Store reads and writes feedback.
type Store struct {
	store       store.Store
	table       store.Table
	now         func() time.Time
	retention   time.Duration
	retentionOf RetentionFunc
	marked      sync.Map // scopes with a row of notedWorkspaces that this process has written
}

// RetentionFunc returns the current log retention of workspaces.
type RetentionFunc func(context.Context, store.Scope) (usage.WorkspaceRetention, error)

// New returns a Store. keep is the maximum retention of feedback; 0 means forever. kept
// may be nil if no workspace has a shorter retention.
func New(s store.Store, now func() time.Time, retention time.Duration, retentionOf RetentionFunc) *Store {
	return &Store{store: s, table: s.Table(store.Usage), now: now, retention: retention, retentionOf: retentionOf}
}

// partition returns the partition of a workspace.
func partition(sc store.Scope) store.Partition { return sc.Partition("FEEDBACK") }

func hash(trace string) string {
	sum := sha256.Sum256([]byte(trace))
	return hex.EncodeToString(sum[:16])
}

func keys(sc store.Scope, id, traceHash, at string) (byID, byTrace, byTime store.Key) {
	p := partition(sc)
	return p.Key("ID", id), p.Key("TRACE", traceHash, id), p.Key("AT", at, id)
}

func timeKey(t time.Time) string { return fmt.Sprintf("%013d", t.UnixMilli()) }

// perWrite is the number of feedbacks in one transaction.
const perWrite = store.MaxTransactActions / 3

// Add stores feedbacks and sets their times. If a write fails, earlier feedbacks remain
// stored; the error states how many.
func (s *Store) Add(ctx context.Context, sc store.Scope, all []Feedback) error {
	if err := s.markWorkspace(ctx, sc); err != nil {
		return unavailable(err)
	}
	now := s.now().UTC().Truncate(time.Millisecond)
	for done := 0; done < len(all); done += perWrite {
		part := all[done:min(done+perWrite, len(all))]
		var actions []store.Action
		for i := range part {
			f := &part[i]
			f.Created, f.Updated = now, now
			put, err := s.puts(sc, f)
			if err != nil {
				return err
			}
			actions = append(actions, put...)
		}
		if err := s.store.Transact(ctx, actions...); err != nil {
			return fault.Unavailable(fmt.Errorf("feedback: %d of %d are stored: %w", done, len(all), err))
		}
	}
	return nil
}

func (s *Store) puts(sc store.Scope, f *Feedback, conds ...store.Cond) ([]store.Action, error) {
	body, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("feedback: encode: %w", err)
	}
	var expires time.Time
	if s.retention > 0 {
		expires = f.Created.Add(s.retention)
	}
	traceHash, at := hash(f.Trace), timeKey(f.Created)
	byID, byTrace, byTime := keys(sc, f.ID, traceHash, at)
	whole := store.Item{"body": body}
	var out []store.Action
	for _, row := range []store.Row{{Key: byID, Item: store.Item{"trace": traceHash, "at": at}}, {Key: byTrace, Item: whole}, {Key: byTime, Item: whole}} {
		row.Expires = expires
		out = append(out, store.Action{Table: store.Usage, Put: &store.Put{Row: row, If: conds}})
	}
	return out, nil
}

// Change is an update; nil leaves a field unchanged.
type Change struct {
	Value    int64
	Weight   *float64
	Metadata *json.RawMessage
}

// Update changes a feedback; ok is false if the workspace has none with this id.
func (s *Store) Update(ctx context.Context, sc store.Scope, id string, ch Change) (ok bool, err error) {
	byID, _, _ := keys(sc, id, "", "")
	at, ok, err := s.table.Get(ctx, byID, true)
	if err != nil || !ok {
		return false, unavailable(err)
	}
	_, byTrace, _ := keys(sc, id, at.String("trace"), at.String("at"))
	item, ok, err := s.table.Get(ctx, byTrace, true)
	if err != nil || !ok {
		return false, unavailable(err)
	}
	f, err := decode(item)
	if err != nil {
		return false, err
	}
	if first, err := s.first(ctx, sc); err != nil || f.Created.Before(first) {
		return false, err
	}
	f.Value, f.Updated = ch.Value, s.now().UTC().Truncate(time.Millisecond)
	if ch.Weight != nil {
		f.Weight = *ch.Weight
	}
	if ch.Metadata != nil {
		f.Metadata = *ch.Metadata
	}
	actions, err := s.puts(sc, f, store.IfPresent())
	if err != nil {
		return false, err
	}
	var gone *store.ConditionError
	if err := s.store.Transact(ctx, actions...); errors.As(err, &gone) {
		return false, nil // it expired meanwhile
	} else if err != nil {
		return false, unavailable(err)
	}
	return true, nil
}

func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fault.Unavailable(err)
}

func decode(item store.Item) (*Feedback, error) {
	f := new(Feedback)
	if err := json.Unmarshal(item.Bytes("body"), f); err != nil {
		return nil, fmt.Errorf("feedback: stored: %w", err)
	}
	return f, nil
}

// maxOfTrace is the maximum number of feedbacks read for a trace.
const maxOfTrace = 100

// OfTrace returns the feedbacks of a trace, at most a hundred.
func (s *Store) OfTrace(ctx context.Context, sc store.Scope, trace string) ([]Feedback, error) {
	if trace == "" {
		return nil, nil
	}
	first, err := s.first(ctx, sc)
	if err != nil {
		return nil, err
	}
	var out []Feedback
	err = s.each(ctx, store.Query{Partition: partition(sc), Prefix: "TRACE#" + hash(trace) + "#", Limit: maxOfTrace}, func(f *Feedback) bool {
		if f.Trace == trace && !f.Created.Before(first) {
			out = append(out, *f)
		}
		return len(out) < maxOfTrace
	})
	return out, err
}

// Between passes the feedbacks of a time range to yield, oldest first, until it returns
// false. to is exclusive.
func (s *Store) Between(ctx context.Context, sc store.Scope, from, to time.Time, yield func(*Feedback) bool) error {
	first, err := s.first(ctx, sc)
	if err != nil {
		return err
	}
	if from.Before(first) {
		from = first
	}
	if !from.Before(to) {
		return nil
	}
	return s.each(ctx, store.Query{Partition: partition(sc), From: "AT#" + timeKey(from), To: "AT#" + timeKey(to)}, yield)
}

// each passes the feedbacks of a query to yield, over all pages.
func (s *Store) each(ctx context.Context, q store.Query, yield func(*Feedback) bool) error {
	for row, err := range store.Rows(ctx, s.table, q) {
		if err != nil {
			return unavailable(err)
		}
		f, err := decode(row.Item)
		if err != nil {
			return err
		}
		if !yield(f) {
			return nil
		}
	}
	return nil
}
