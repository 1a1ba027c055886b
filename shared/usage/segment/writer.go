package segment

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"gateway/shared/store"
	"gateway/shared/usage"
)

// Errors passed to Options.OnRejected.
var (
	ErrNoOwner = errors.New("segment: the record has no organization or no id")
	ErrNoTime  = errors.New("segment: the record has no usable start")
)

// Records outside of these years are considered damaged.
var (
	earliest = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// groupKey identifies the records that form one segment.
type groupKey struct {
	org  string
	hour int64
}

// Ingest stores a batch of records as one segment per organization and hour. It is idempotent,
// also for records in different batches. After an error the entire batch may be ingested again.
// A missing Start is derived from the id.
func (a *Archive) Ingest(ctx context.Context, records []usage.Record) error {
	groups := make(map[groupKey][]*usage.Record)
	held := 0
	for i := range records {
		r := &records[i]
		if err := repair(r); err != nil {
			a.o.OnRejected(r.ID, err)
			continue
		}
		k := groupKey{r.Org, r.Start.UnixMicro() / Hour}
		groups[k] = append(groups[k], r)
		if held += len(r.Bodies); held >= maxPack {
			if err := a.ingestAll(ctx, groups); err != nil {
				return err
			}
			clear(groups)
			held = 0
		}
	}
	return a.ingestAll(ctx, groups)
}

// maxPack is the approximate size of bodies that are collected in memory at a time.
const maxPack = 4 << 20

func (a *Archive) ingestAll(ctx context.Context, groups map[groupKey][]*usage.Record) error {
	var errs []error
	for k, group := range groups {
		if err := a.ingest(ctx, k, group); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// repair rejects records that cannot be stored, sets a missing start from the id, and
// makes texts valid UTF-8, as the columns of files require: a provider's model may be
// arbitrary bytes.
func repair(r *usage.Record) error {
	if r.Org == "" || r.ID == "" {
		return ErrNoOwner
	}
	if r.Start.Before(earliest) || r.Start.After(latest) {
		id, err := ulid.ParseStrict(r.ID)
		if err != nil || id.Timestamp().Before(earliest) || id.Timestamp().After(latest) {
			return ErrNoTime
		}
		r.Start = id.Timestamp().UTC()
	}
	for _, text := range [...]*string{
		&r.KeyID, &r.KeyType, &r.UserID, &r.EndUser, &r.TraceID, &r.SpanID, &r.ParentSpanID, &r.Endpoint, &r.RequestModel, &r.Model, &r.Provider, &r.ProviderSlug,
		&r.IntegrationID, &r.ConfigSlug, &r.PromptSlug, &r.Mode, &r.OptionIndex, &r.CacheStatus, &r.FinishReason, &r.ErrorCode, &r.Agent.Session, &r.Agent.ID, &r.Agent.Parent,
	} {
		*text = validUTF8(*text)
	}
	for key, value := range r.Metadata {
		if utf8.ValidString(key) && utf8.ValidString(value) {
			continue
		}
		copied := make(map[string]string, len(r.Metadata)) // the record's own map may be in use elsewhere
		for key, value := range r.Metadata {
			copied[validUTF8(key)] = validUTF8(value)
		}
		r.Metadata = copied
		break
	}
	return nil
}

func validUTF8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// byStart orders rows by Start to the microsecond, then by id.
func byStart(x, y *usage.Record) int {
	if c := cmp.Compare(x.Start.UnixMicro(), y.Start.UnixMicro()); c != 0 {
		return c
	}
	return cmp.Compare(x.ID, y.ID)
}

// sameTime is the maximum difference, in microseconds, between the starts of records with
// the same id. A record that repair creates for a request that died only has the time in
// its id, in milliseconds.
const sameTime = 1000

// deduplicate removes, from sorted records, those with the id of an earlier record of the
// same millisecond.
func deduplicate(records []*usage.Record) []*usage.Record {
	unique := records[:0]
next:
	for _, r := range records {
		at := r.Start.UnixMicro() / sameTime
		for i := len(unique) - 1; i >= 0 && unique[i].Start.UnixMicro()/sameTime == at; i-- {
			if unique[i].ID == r.ID {
				continue next
			}
		}
		unique = append(unique, r)
	}
	return unique
}

// batch holds the reusable buffers of one ingestion.
type batch struct {
	rows  []row
	arena []byte
	pack  []byte
}

var batches = spare[batch]{make: func() *batch { return new(batch) }}

// free returns the buffers for reuse, except large ones.
func (b *batch) free() {
	clear(b.rows) // so that no record stays in memory
	if cap(b.pack) > maxInline {
		b.pack = nil
	}
	if cap(b.arena) > maxSpare {
		b.rows, b.arena = nil, nil
	}
	batches.put(b)
}

func (a *Archive) ingest(ctx context.Context, k groupKey, records []*usage.Record) error {
	slices.SortFunc(records, byStart)
	records = deduplicate(records)
	b := batches.get()
	defer b.free()
	b.rows, b.arena, b.pack = b.rows[:0], b.arena[:0], b.pack[:0]
	size := 0
	for _, r := range records {
		size += len(r.Bodies)
	}
	b.rows, b.pack = slices.Grow(b.rows, len(records)), slices.Grow(b.pack, size)
	cube, hash := newCubeBuilder(), sha256.New()
	for _, r := range records {
		ref := bodyRef{r.Pack.Key, r.Pack.Offset, r.Pack.Length}
		if len(r.Bodies) > 0 {
			ref = bodyRef{offset: int64(len(b.pack)), length: int64(len(r.Bodies))}
			b.pack = append(b.pack, r.Bodies...)
		}
		b.rows = append(b.rows, row{})
		b.arena = b.rows[len(b.rows)-1].fill(r, ref, b.arena)
		cube.add(r)
		hash.Write([]byte(r.ID))
		hash.Write([]byte{0})
	}
	m := Manifest{Org: k.org, ID: hex.EncodeToString(hash.Sum(nil)[:16]), Tier: TierBatch, Hour: k.hour,
		Min: b.rows[0].Start, Max: b.rows[len(b.rows)-1].Start, Records: int64(len(b.rows)), Created: a.o.Clock()}
	if err := m.rename(); err != nil {
		return err
	}
	cubeBytes, err := cube.encode()
	if err != nil {
		return fmt.Errorf("segment: cube: %w", err)
	}
	objects := map[kind][]byte{cubeObject: cubeBytes}
	if len(b.pack) > 0 {
		objects[bodiesObject] = b.pack
	}
	err = encodeBatch(b.rows, len(b.arena), a.o.Inline, func(file []byte) error {
		objects[dataObject] = file
		return a.objects.put(ctx, &m, objects)
	})
	if err != nil {
		return err
	}
	err = a.table.Put(ctx, store.Row{Key: m.key(), Item: m.item()}, store.IfAbsent())
	if there, known := store.AsCondition(err); known {
		err = nil
		if there.Current.String("name") != m.Name { // another name: the batch was ingested before; the same name: this write was repeated
			err = a.objects.drop(ctx, &m, false)
		}
	}
	if err != nil {
		return fmt.Errorf("segment: manifest: %w", err)
	}
	return a.markDue(ctx, "H", k.org, k.hour)
}

// spare holds one expensive object for the next user. A sync.Pool would lose it, because
// garbage is collected between two batches.
type spare[T any] struct {
	one  atomic.Pointer[T]
	make func() *T
}

func (s *spare[T]) get() *T {
	if v := s.one.Swap(nil); v != nil {
		return v
	}
	return s.make()
}

// put stores v; of several objects used concurrently only the last one is retained.
func (s *spare[T]) put(v *T) { s.one.Store(v) }

// maxSpare is the maximum size of a batch's memory that is retained.
const maxSpare = 1 << 20
