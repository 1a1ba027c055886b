package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gateway/shared/blob"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// removal selects the records to remove when a segment is rewritten: those beyond their
// workspace's retention. It collects the locations of their bodies.
type removal struct {
	over  func(workspace string) bool
	packs map[string][]blob.Span // byte ranges of packs in the bucket
	blobs []string               // keys of blobs, each with the bodies of one record
}

// takes reports whether the reader's current record is removed.
func (o *removal) takes(from *recordReader, r *usage.Record) bool {
	if !o.over(r.Workspace) {
		return false
	}
	if r.Blob != "" {
		o.blobs = append(o.blobs, r.Blob)
	}
	i := from.from + from.at
	pack, span := from.packs.At(i), blob.Span{Offset: from.offsets[i], Length: from.lengths[i]}
	if pack == "" && from.m.inBucket(bodiesObject) {
		pack = from.m.blobKey(bodiesObject)
	}
	if span.Length > 0 && pack != "" { // a pack in the store is deleted with its segment
		o.packs[pack] = append(o.packs[pack], span)
	}
	return true
}

// erase deletes the bodies. It overwrites them in packs shared with other records and
// deletes a pack without any others.
func (o *removal) erase(ctx context.Context, b blob.Bucket) error {
	for _, key := range o.blobs {
		if err := b.Delete(ctx, key); err != nil {
			return fmt.Errorf("segment: retention: %w", err)
		}
	}
	for key, spans := range o.packs {
		if err := blob.Erase(ctx, b, key, spans); err != nil {
			return fmt.Errorf("segment: retention: %w", err)
		}
		if strings.HasPrefix(key, journalPacks) {
			continue // it belongs to many organizations, and may still be written to
		}
		rest, err := b.Get(ctx, key, 0)
		if err == nil && len(bytes.TrimLeft(rest, "\x00")) == 0 {
			err = b.Delete(ctx, key)
		}
		if err != nil && !errors.Is(err, blob.ErrNotFound) {
			return fmt.Errorf("segment: retention: %w", err)
		}
	}
	return nil
}

// errChanged is returned for a segment that was merged while it was being rewritten.
var errChanged = errors.New("segment: the segment was merged meanwhile")

// thin replaces a segment by one without the records beyond their workspace's retention.
// Bodies are deleted first. If the process dies after that, it leaves records that are
// invisible and that the next run finds. If it dies before the swap, it leaves
// unreferenced objects.
func (a thinner) thin(ctx context.Context, m *Manifest, over func(workspace string) bool) error {
	cube, err := a.archive.Cube(ctx, m)
	if err != nil {
		return err
	}
	workspaces, any := cube.Cells.Dims[Workspace], false
	for i := 0; i < cube.Cells.N && !any; i++ {
		any = over(workspaces.At(i))
	}
	if !any {
		return nil
	}
	w := &merger{a: a.archive, cube: newCubeBuilder(), e: smallEncoders.Get().(*encoder), seen: make(map[string]struct{}), out: &removal{over: over, packs: make(map[string][]blob.Span)}}
	defer smallEncoders.Put(w.e)
	w.e.reset()
	id, err := w.run(ctx, []Manifest{*m})
	if err != nil {
		return err
	}
	if err := w.out.erase(ctx, a.archive.bucket); err != nil {
		return err
	}
	next := Manifest{Org: m.Org, ID: id, Tier: m.Tier, Hour: m.Hour, Min: w.min, Max: w.max, Records: w.records, Created: m.Created}
	if next.key() == m.key() {
		return fmt.Errorf("segment: retention: %s is unchanged", m.Name)
	}
	_, standing, err := a.archive.table.Get(ctx, next.key(), true)
	if err != nil {
		return fmt.Errorf("segment: retention: %w", err)
	}
	actions := []store.Action{
		{Table: store.Usage, Delete: &store.Delete{Key: m.key(), If: []store.Cond{store.IfEqual(store.At("name"), m.Name)}}},
		a.archive.scheduleDeletion(m.Org, m.ID+"t", []string{m.deletionNote()}),
	}
	made := w.records > 0 && !standing
	if made {
		if err := w.save(ctx, &next); err != nil {
			return err
		}
		actions = append(actions, store.Action{Table: store.Usage, Put: &store.Put{Row: store.Row{Key: next.key(), Item: next.item()}, If: []store.Cond{store.IfAbsent()}}})
	}
	err = a.archive.store.Transact(ctx, actions...)
	if _, lost := store.AsCondition(err); lost || errors.Is(err, store.ErrContended) {
		return a.afterLoss(ctx, m, &next, made)
	}
	if err != nil {
		return fmt.Errorf("segment: retention: %w", err)
	}
	return nil
}

// afterLoss returns the outcome of a rejected swap: either this same swap succeeded
// before, or another process has merged the segment.
func (a thinner) afterLoss(ctx context.Context, m, next *Manifest, made bool) error {
	if _, there, err := a.archive.table.Get(ctx, m.key(), true); err != nil {
		return fmt.Errorf("segment: retention: %w", err)
	} else if !there && !made {
		return nil
	}
	if !made {
		return errChanged
	}
	item, _, err := a.archive.table.Get(ctx, next.key(), true)
	if err != nil {
		return fmt.Errorf("segment: retention: %w", err)
	}
	if item.String("name") == next.Name {
		return nil
	}
	return errors.Join(errChanged, a.archive.objects.drop(ctx, next, false))
}

// maxThin limits how often a day is listed again when it is merged concurrently.
const maxThin = 3

// thinDay thins the segments of an organization's day.
func (a thinner) thinDay(ctx context.Context, org string, day int64, retention *usage.WorkspaceRetention, now time.Time) error {
	gone := func(workspace string) bool { return expiredAfter(day, retention.Days(workspace), now) }
	var err error
	for range maxThin {
		var list []Manifest
		if list, err = a.archive.ofDay(ctx, org, day); err != nil {
			return err
		}
		changed := false
		for i := range list {
			if err = a.thin(ctx, &list[i], gone); errors.Is(err, ErrDeleted) || errors.Is(err, errChanged) {
				changed = true
				continue
			}
			if err != nil {
				return err
			}
		}
		if !changed {
			return nil
		}
	}
	return err
}

// expiredAfter is expired with a number of days; 0 means never.
func expiredAfter(day int64, days int, now time.Time) bool {
	return expired(day, time.Duration(days)*oneDay, now)
}

// ruleText returns a text that identifies the rules.
func ruleText(retention *usage.WorkspaceRetention) string {
	parts := []string{fmt.Sprint(retention.Standard)}
	for ws, days := range retention.Of {
		parts = append(parts, fmt.Sprintf("%s=%d", ws, days))
	}
	slices.Sort(parts[1:])
	return strings.Join(parts, ",")
}
