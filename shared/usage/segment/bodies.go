package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// Bodies reads the sealed bodies of the records of one group.
type Bodies struct {
	file            *File
	gone            bool // they are not kept any more
	packs           *Strings
	offsets, length []int64
}

// Bodies opens the bodies of a group: where each is, and none of them yet.
func (f *File) Bodies(ctx context.Context, group int) (b *Bodies, err error) {
	b = &Bodies{file: f, gone: f.a.bodiesOver(&f.m)}
	if !b.gone {
		b.packs, b.offsets, b.length, err = f.bodyRefs(ctx, group)
	}
	return b, err
}

// Row reads the sealed bodies of one record; nil when it has none, or they are not
// kept any more. Those of a record with a Blob are there, not here.
func (b *Bodies) Row(ctx context.Context, row int) ([]byte, error) {
	if b.gone {
		return nil, nil
	}
	f, ref := b.file, bodyRef{b.packs.At(row), b.offsets[row], b.length[row]}
	switch {
	case ref.length == 0:
		return nil, nil
	case ref.pack != "":
		return f.a.fromPack(ctx, ref)
	case f.m.inBucket(bodiesObject):
		return f.a.fromPack(ctx, bodyRef{f.m.blobKey(bodiesObject), ref.offset, ref.length})
	}
	pack, err := f.a.object(ctx, &f.m, bodiesObject)
	if err != nil {
		return nil, err
	}
	if ref.offset+ref.length > int64(len(pack)) {
		return nil, fmt.Errorf("segment: bodies of %s are cut short", f.m.Name)
	}
	return pack[ref.offset : ref.offset+ref.length], nil
}

// fromPack reads bodies of a pack in the bucket: nil when they are blank, or the pack is
// gone. Both come of retention only, see thin; a merge leaves packs where they are.
func (a *Archive) fromPack(ctx context.Context, ref bodyRef) ([]byte, error) {
	b, err := a.readRange(ctx, ref.pack, ref.offset, ref.length)
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
