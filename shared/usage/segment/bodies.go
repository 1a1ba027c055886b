package segment

import (
	"context"
	"fmt"
)

// Bodies reads the sealed bodies of the records of one group.
type Bodies struct {
	file            *File
	gone            bool // the bodies are deleted
	packs           *Strings
	offsets, length []int64
}

// Bodies reads the locations of a group's bodies, but not the bodies.
func (f *File) Bodies(ctx context.Context, group int) (b *Bodies, err error) {
	b = &Bodies{file: f, gone: f.a.bodiesExpired(&f.m)}
	if !b.gone {
		b.packs, b.offsets, b.length, err = f.bodyRefs(ctx, group)
	}
	return b, err
}

// Row returns the sealed bodies of one record; nil if it has none or they were deleted.
// If the record has a Blob, its bodies are there.
func (b *Bodies) Row(ctx context.Context, row int) ([]byte, error) {
	if b.gone {
		return nil, nil
	}
	f, ref := b.file, bodyRef{b.packs.At(row), b.offsets[row], b.length[row]}
	switch {
	case ref.length == 0:
		return nil, nil
	case ref.pack != "":
		return f.a.objects.bodies(ctx, ref)
	case f.m.inBucket(bodiesObject):
		return f.a.objects.bodies(ctx, bodyRef{f.m.blobKey(bodiesObject), ref.offset, ref.length})
	}
	pack, err := f.a.objects.get(ctx, &f.m, bodiesObject)
	if err != nil {
		return nil, err
	}
	if ref.offset+ref.length > int64(len(pack)) {
		return nil, fmt.Errorf("segment: bodies of %s are truncated", f.m.Name)
	}
	return pack[ref.offset : ref.offset+ref.length], nil
}
