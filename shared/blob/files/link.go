package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"gateway/shared/blob"
)

// Link makes a file an object without copying it. It is a hard link, so the file must be
// on the bucket's file system. Data appended to the file later is part of the object, and
// deleting one of the two leaves the other. Linking a file to its own object again
// succeeds; a key that belongs to another object returns fs.ErrExist.
func (b *Bucket) Link(ctx context.Context, key, file string) error {
	if err := errors.Join(blob.CheckKey(key), ctx.Err()); err != nil {
		return err
	}
	dir := path.Dir(key)
	if err := b.root.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("blob/files: link %s: %w", key, err)
	}
	err := os.Link(file, filepath.Join(b.root.Name(), filepath.FromSlash(key)))
	switch {
	case errors.Is(err, fs.ErrExist) && b.is(key, file):
		return nil
	case err != nil:
		return fmt.Errorf("blob/files: link %s: %w", key, err)
	case b.durable:
		return b.syncUp(dir)
	}
	return nil
}

// is reports whether an object is a link to the file.
func (b *Bucket) is(key, file string) bool {
	object, err := b.root.Stat(key)
	if err != nil {
		return false
	}
	info, err := os.Stat(file)
	return err == nil && os.SameFile(object, info)
}
