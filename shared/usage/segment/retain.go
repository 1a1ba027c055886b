package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gateway/shared/blob"
	"gateway/shared/store"
)

const oneDay = 24 * time.Hour

// expired reports whether the retention of a day, given by its first hour, has ended.
func expired(day int64, retention time.Duration, now time.Time) bool {
	return retention > 0 && !now.Before(time.Unix((day+24)*hourSeconds, 0).Add(retention))
}

// bodiesExpired reports whether the bodies of a segment are deleted or due for deletion.
func (a *Archive) bodiesExpired(m *Manifest) bool {
	return expired(m.Hour-m.Hour%24, a.o.Retention.Bodies, a.o.Clock())
}

// markRetention marks a day of an organization as subject to retention: one mark for its
// bodies (B), one for its records (R).
func (a *Archive) markRetention(ctx context.Context, org string, day int64) error {
	rows := make([]store.Row, 0, 4)
	for _, sort := range [...]string{"B", "R"} {
		rows = append(rows, store.Row{Key: dueRows().Key(sort, fmt.Sprintf("%08d", day), org), Item: store.Item{"org": org, "hour": day}})
	}
	rows = append(rows, orgRow(org))
	if expired(day, oneDay, a.o.Clock()) { // this day may already have been thinned for a workspace
		rows = append(rows, store.Row{Key: lateNote(org, day), Item: store.Item{"hour": day, "note": a.o.Clock().UnixNano()}})
	}
	if err := a.table.PutMany(ctx, rows); err != nil {
		return fmt.Errorf("segment: retention: %w", err)
	}
	return nil
}

// expirer deletes expired data at a given time.
type expirer struct {
	archive *Archive
	now     time.Time
}

// Retain deletes expired data; call it about once an hour. If it runs out of time, the
// next call continues.
func (a *Archive) Retain(ctx context.Context) error {
	e, retention := expirer{a, a.o.Clock()}, a.o.Retention
	return errors.Join(
		e.eachExpired(ctx, "B", retention.Bodies, e.bodies),
		e.eachExpired(ctx, "R", retention.Records, e.records),
		e.journal(ctx),
		thinner{a}.thinAll(ctx, e.now),
	)
}

// eachExpired calls expire for the marks of expired days.
func (a expirer) eachExpired(ctx context.Context, sort string, retention time.Duration, expire func(context.Context, string, int64) error) error {
	if retention == 0 {
		return nil
	}
	last := a.now.Add(-retention-oneDay).Unix() / hourSeconds
	q := store.Query{Partition: dueRows(), From: sort + "#", To: fmt.Sprintf("%s#%08d#~", sort, last)}
	for row, err := range store.Rows(ctx, a.archive.table, q) {
		if err != nil {
			return fmt.Errorf("segment: retention: %w", err)
		}
		org, day := row.Item.String("org"), row.Item.Int("hour")
		if !expired(day, retention, a.now) {
			continue
		}
		if err := expire(ctx, org, day); err != nil {
			return err
		}
		if err := a.archive.table.Delete(ctx, row.Key); err != nil {
			return fmt.Errorf("segment: retention: %w", err)
		}
	}
	return nil
}

func (a *Archive) ofDay(ctx context.Context, org string, day int64) ([]Manifest, error) {
	return a.list(ctx, org, hourKey(day), hourKey(day+23)+"#~", func(*Manifest) bool { return true })
}

// bodies deletes all bodies of an organization's day. Segments of a day only refer to
// packs of the same day.
func (a expirer) bodies(ctx context.Context, org string, day int64) error {
	list, err := a.archive.ofDay(ctx, org, day)
	if err != nil {
		return err
	}
	for i := range list {
		if m := &list[i]; m.bodies && !m.inBucket(bodiesObject) {
			if err := a.archive.table.Delete(ctx, m.objectKey(bodiesObject)); err != nil {
				return fmt.Errorf("segment: retention: %w", err)
			}
		}
	}
	place := url.PathEscape(org) + time.Unix(day*hourSeconds, 0).UTC().Format("/2006/01/02/")
	return errors.Join(a.archive.objects.clear(ctx, "segments/"+string(bodiesObject)+"/"+place), a.archive.objects.clear(ctx, "bodies/"+place))
}

// records removes the manifests of a day; sweep deletes their objects when no reader
// needs them.
func (a expirer) records(ctx context.Context, org string, day int64) error {
	if err := a.bodies(ctx, org, day); err != nil {
		return err
	}
	list, err := a.archive.ofDay(ctx, org, day)
	if err != nil {
		return err
	}
	for len(list) > 0 {
		part := list[:min(len(list), maxInputs)]
		list = list[len(part):]
		actions := make([]store.Action, 0, len(part)+1)
		left := make([]string, 0, len(part))
		for i := range part {
			actions = append(actions, store.Action{Table: store.Usage, Delete: &store.Delete{Key: part[i].key()}})
			left = append(left, part[i].deletionNote())
		}
		actions = append(actions, a.archive.scheduleDeletion(org, part[0].ID+"r", left))
		if err := a.archive.store.Transact(ctx, actions...); err != nil {
			return fmt.Errorf("segment: retention: %w", err)
		}
	}
	return nil
}

// deletionNote encodes what sweep needs to know about a segment that is no longer listed.
func (m *Manifest) deletionNote() string {
	return m.Name + "/" + m.blobs + "/" + strconv.FormatInt(m.Hour, 10) + "/" + strconv.FormatBool(m.bodies)
}

// scheduleDeletion records objects for sweep to delete.
func (a *Archive) scheduleDeletion(org, id string, left []string) store.Action {
	return store.Action{Table: store.Usage, Put: &store.Put{Row: store.Row{
		Key:  dueRows().Key("G", fmt.Sprintf("%014d", a.o.Clock().UnixMilli()), id),
		Item: store.Item{"org": org, "left": strings.Join(left, "\n")},
	}}}
}

// journalPacks is the prefix under which a process on one machine stores the bodies of
// its journal. They are ordered by the day on which a file was linked, which is never
// before the day of its events.
const journalPacks = "bodies/journal/"

func (a expirer) journal(ctx context.Context) error {
	if a.archive.o.Retention.Bodies == 0 {
		return nil
	}
	first := journalPacks + a.now.Add(-a.archive.o.Retention.Bodies-oneDay).UTC().Format("2006/01/02/")
	for {
		keys, err := a.archive.bucket.List(ctx, journalPacks, "", listPart)
		if err != nil {
			return fmt.Errorf("segment: retention: %w", err)
		}
		for _, key := range keys {
			if key >= first {
				return nil
			}
			if err := a.archive.bucket.Delete(ctx, key); err != nil {
				return fmt.Errorf("segment: retention: %w", err)
			}
		}
		if len(keys) < listPart {
			return nil
		}
	}
}

// objects stores the bytes of segments: small ones in rows of the store, others in the
// bucket.
type objects struct {
	table  store.Table
	bucket blob.Bucket
	inline int  // objects of at most this size are in the store
	files  bool // records of past hours are in the bucket, however few
}

// ErrDeleted is returned for an object that was deleted: its segment was merged while a
// reader had its manifest. The reader must list again.
var ErrDeleted = errors.New("segment: the object is gone")

// get reads an object of a segment.
func (o *objects) get(ctx context.Context, m *Manifest, k kind) ([]byte, error) {
	if m.inBucket(k) {
		b, err := o.bucket.Get(ctx, m.blobKey(k), 0)
		if errors.Is(err, blob.ErrNotFound) {
			err = ErrDeleted
		}
		if err != nil {
			return nil, fmt.Errorf("segment: %s of %s: %w", k, m.Name, err)
		}
		return b, nil
	}
	item, ok, err := o.table.Get(ctx, m.objectKey(k), true)
	if err == nil && !ok {
		err = ErrDeleted
	}
	if err != nil {
		return nil, fmt.Errorf("segment: %s of %s: %w", k, m.Name, err)
	}
	return item.Bytes("b"), nil
}

// put writes the objects and sets the manifest's fields about them.
func (o *objects) put(ctx context.Context, m *Manifest, objects map[kind][]byte) error {
	var rows []store.Row
	m.blobs = ""
	for _, k := range [...]kind{dataObject, cubeObject, bodiesObject} {
		b, ok := objects[k]
		switch {
		case !ok:
		case len(b) <= o.inline && !(k == dataObject && o.files && m.Tier >= TierHour):
			rows = append(rows, store.Row{Key: m.objectKey(k), Item: store.Item{"b": b}})
		default:
			if err := o.bucket.Put(ctx, m.blobKey(k), b); err != nil {
				return fmt.Errorf("segment: %s of %s: %w", k, m.Name, err)
			}
			m.blobs += string(k[0])
		}
	}
	_, m.bodies = objects[bodiesObject]
	m.Size, m.cube = int64(len(objects[dataObject])), int64(len(objects[cubeObject]))
	if len(rows) == 0 {
		return nil
	}
	if err := o.table.PutMany(ctx, rows); err != nil {
		return fmt.Errorf("segment: objects of %s: %w", m.Name, err)
	}
	return nil
}

// drop deletes a segment's objects. With keepPack it retains a pack of bodies in the
// bucket, because later segments refer to it.
func (o *objects) drop(ctx context.Context, m *Manifest, keepPack bool) error {
	for _, k := range [...]kind{dataObject, cubeObject, bodiesObject} {
		var err error
		switch {
		case k == bodiesObject && (!m.bodies || keepPack && m.inBucket(k)):
		case m.inBucket(k):
			err = o.bucket.Delete(ctx, m.blobKey(k))
		default:
			err = o.table.Delete(ctx, m.objectKey(k))
		}
		if err != nil {
			return fmt.Errorf("segment: delete %s of %s: %w", k, m.Name, err)
		}
	}
	return nil
}

// part reads a byte range of an object in the bucket.
func (o *objects) part(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	r, _, err := o.bucket.Open(ctx, key, offset, length)
	if errors.Is(err, blob.ErrNotFound) {
		err = ErrDeleted
	}
	if err != nil {
		return nil, fmt.Errorf("segment: %w", err)
	}
	defer r.Close()
	b := make([]byte, length)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("segment: %w", err)
	}
	return b, nil
}

// bodies reads bodies from a pack in the bucket; nil if they were overwritten with zeros
// or the pack is deleted. Only retention does that (see thin); merges leave packs in
// place.
func (o *objects) bodies(ctx context.Context, ref bodyRef) ([]byte, error) {
	b, err := o.part(ctx, ref.pack, ref.offset, ref.length)
	switch {
	case errors.Is(err, ErrDeleted):
		return nil, nil
	case err != nil:
		return nil, err
	case len(bytes.TrimLeft(b, "\x00")) == 0:
		return nil, nil
	}
	return b, nil
}

// listPart is the number of keys listed at a time.
const listPart = 500

// clear deletes all objects under a prefix of the bucket.
func (o *objects) clear(ctx context.Context, prefix string) error {
	for {
		keys, err := o.bucket.List(ctx, prefix, "", listPart)
		if err != nil {
			return fmt.Errorf("segment: retention: %w", err)
		}
		for _, key := range keys {
			if err := o.bucket.Delete(ctx, key); err != nil {
				return fmt.Errorf("segment: retention: %w", err)
			}
		}
		if len(keys) < listPart {
			return nil
		}
	}
}
