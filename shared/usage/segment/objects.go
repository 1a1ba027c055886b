package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"gateway/shared/blob"
	"gateway/shared/store"
)

// objects stores the bytes of segments: small ones in rows of the store, others in the
// bucket.
type objects struct {
	table  store.Table
	bucket blob.Bucket
	inline int  // objects of at most this size are in the store
	files  bool // records of past hours are in the bucket, however few
}

// ErrGone is returned for an object that was deleted: its segment was merged while a
// reader had its manifest. The reader must list again.
var ErrGone = errors.New("segment: the object is gone")

// get reads an object of a segment.
func (o *objects) get(ctx context.Context, m *Manifest, k kind) ([]byte, error) {
	if m.inBucket(k) {
		b, err := o.bucket.Get(ctx, m.blobKey(k), 0)
		if errors.Is(err, blob.ErrNotFound) {
			err = ErrGone
		}
		if err != nil {
			return nil, fmt.Errorf("segment: %s of %s: %w", k, m.Name, err)
		}
		return b, nil
	}
	item, ok, err := o.table.Get(ctx, m.objectKey(k), true)
	if err == nil && !ok {
		err = ErrGone
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
		err = ErrGone
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
	case errors.Is(err, ErrGone):
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
