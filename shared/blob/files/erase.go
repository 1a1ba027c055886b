package files

import (
	"context"
	"errors"
	"fmt"
	"os"

	"gateway/shared/blob"
)

var _ blob.Eraser = (*Bucket)(nil)

// blank is the content of erased ranges.
var blank [64 << 10]byte

// Erase writes zeros over stretches of an object in its file. The file may have other
// names, and others may append to it.
func (b *Bucket) Erase(ctx context.Context, key string, spans []blob.Span) error {
	if err := errors.Join(blob.CheckKey(key), ctx.Err()); err != nil {
		return err
	}
	f, err := b.root.OpenFile(key, os.O_WRONLY, 0)
	if err != nil {
		if notThere(err) {
			return nil
		}
		return fmt.Errorf("blob/files: erase of %s: %w", key, err)
	}
	if err := errors.Join(erase(f, spans), f.Close()); err != nil {
		return fmt.Errorf("blob/files: erase of %s: %w", key, err)
	}
	return nil
}

func erase(f *os.File, spans []blob.Span) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	for _, s := range spans {
		from, to, ok := s.Within(info.Size())
		for ok && from < to {
			n, err := f.WriteAt(blank[:min(to-from, int64(len(blank)))], from)
			if err != nil {
				return err
			}
			from += int64(n)
		}
	}
	return f.Sync() // so that erased bytes do not come back after a crash
}
