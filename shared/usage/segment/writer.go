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
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"gateway/shared/store"
	"gateway/shared/usage"
)

// Errors with which Options.OnBad is called.
var (
	ErrNoOwner = errors.New("segment: the record has no organisation or no id")
	ErrNoTime  = errors.New("segment: the record has no usable start")
)

// Records from before or after these years are taken for damaged ones.
var (
	earliest = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// group is the records that become one segment.
type groupKey struct {
	org  string
	hour int64
}

// Ingest keeps a batch of records: it makes one segment for each organisation and hour.
// Ingesting the same records again, in this or another batch, changes no answer. After an
// error the whole batch may be ingested again. A missing Start is filled in.
func (a *Archive) Ingest(ctx context.Context, records []usage.Record) error {
	groups := make(map[groupKey][]*usage.Record)
	held := 0
	for i := range records {
		r := &records[i]
		if err := repair(r); err != nil {
			a.o.OnBad(r.ID, err)
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

// maxPack is about how many bytes of bodies are gathered in memory at a time.
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

// repair refuses records that cannot be kept. It takes a missing start from the id. It
// turns texts into UTF-8, which the columns of files need: a provider's model may be any
// bytes.
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
		*text = mended(*text)
	}
	for key, value := range r.Metadata {
		if utf8.ValidString(key) && utf8.ValidString(value) {
			continue
		}
		whole := make(map[string]string, len(r.Metadata)) // the record's own map may be in use elsewhere
		for key, value := range r.Metadata {
			whole[mended(key)] = mended(value)
		}
		r.Metadata = whole
		break
	}
	return nil
}

func mended(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// byStart is the order of rows: Start to the microsecond, then id.
func byStart(x, y *usage.Record) int {
	if c := cmp.Compare(x.Start.UnixMicro(), y.Start.UnixMicro()); c != 0 {
		return c
	}
	return cmp.Compare(x.ID, y.ID)
}

// sameTime is how far apart, in microseconds, the starts of records with the same id may
// be. A record that repair makes for a request that died knows only the time in its id,
// which is in milliseconds.
const sameTime = 1000

// once removes, from records in order, every record whose id another record of the same
// millisecond already has.
func once(records []*usage.Record) []*usage.Record {
	kept := records[:0]
next:
	for _, r := range records {
		at := r.Start.UnixMicro() / sameTime
		for i := len(kept) - 1; i >= 0 && kept[i].Start.UnixMicro()/sameTime == at; i-- {
			if kept[i].ID == r.ID {
				continue next
			}
		}
		kept = append(kept, r)
	}
	return kept
}

// batch is the buffers of one ingestion, reused.
type batch struct {
	rows  []row
	arena []byte
	pack  []byte
}

var batches = spare[batch]{make: func() *batch { return new(batch) }}

// free keeps the buffers for the next batch, except large ones.
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
	records = once(records)
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
		if there.Current.String("name") != m.Name { // another name: the same batch came before; the same name: this write was repeated
			err = a.objects.drop(ctx, &m, false)
		}
	}
	if err != nil {
		return fmt.Errorf("segment: manifest: %w", err)
	}
	return a.noteDue(ctx, "H", k.org, k.hour)
}
