// Package files stores blobs as files in a directory, one file per object under the
// object's key. Writes are atomic: a temporary file is renamed into place.
//
// An object cannot have a key that is a directory of another's ("a" beside "a/b"): Put
// fails. No other process may write files below the directory.
package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"gateway/shared/blob"
)

// partial is the directory of files not yet renamed. Keys cannot begin with a
// dot, so it is never listed or read.
const partial = ".partial"

// Bucket is a blob.Bucket in a directory. Access goes through an os.Root: no
// key and no symbolic link leads out of it.
type Bucket struct {
	root    *os.Root
	durable bool
}

var _ blob.Bucket = (*Bucket)(nil)

// Option changes how a Bucket works.
type Option func(*Bucket)

// Durable makes Put wait until the object and its name are on the disk.
func Durable() Option { return func(b *Bucket) { b.durable = true } }

// Open opens the bucket in dir, which it creates if necessary. It removes temporary files
// of interrupted writes after an hour, and uploads after two days.
func Open(dir string, options ...Option) (*Bucket, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("blob/files: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("blob/files: %w", err)
	}
	b := &Bucket{root: root}
	for _, o := range options {
		o(b)
	}
	if err := root.MkdirAll(partial, 0o700); err != nil {
		root.Close()
		return nil, fmt.Errorf("blob/files: %w", err)
	}
	b.sweep(time.Now().Add(-time.Hour))
	return b, nil
}

// Close releases the directory.
func (b *Bucket) Close() error { return b.root.Close() }

func (b *Bucket) sweep(before time.Time) {
	entries, err := b.entries(partial)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil:
		case e.IsDir() && info.ModTime().Before(before.Add(-uploadRetention)):
			_ = b.root.RemoveAll(path.Join(partial, e.Name()))
		case !e.IsDir() && info.ModTime().Before(before):
			_ = b.root.Remove(path.Join(partial, e.Name()))
		}
	}
}

// Put writes an object atomically.
func (b *Bucket) Put(ctx context.Context, key string, body []byte) error {
	if err := errors.Join(blob.CheckKey(key), ctx.Err()); err != nil {
		return err
	}
	temp := path.Join(partial, rand.Text())
	if err := b.write(temp, body); err != nil {
		_ = b.root.Remove(temp)
		return fmt.Errorf("blob/files: put %s: %w", key, err)
	}
	if err := b.place(temp, key); err != nil {
		_ = b.root.Remove(temp)
		return fmt.Errorf("blob/files: put %s: %w", key, err)
	}
	return nil
}

func (b *Bucket) write(name string, body []byte) error {
	f, err := b.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err == nil && b.durable {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// place renames temp to key and makes its directories. Another goroutine's Delete may
// remove an empty directory in between; then it is made again.
func (b *Bucket) place(temp, key string) error {
	dir := path.Dir(key)
	for try := 0; ; try++ {
		if err := b.root.MkdirAll(dir, 0o700); err != nil {
			if errors.Is(err, fs.ErrNotExist) && try < 100 {
				continue
			}
			return err
		}
		err := b.root.Rename(temp, key)
		if errors.Is(err, fs.ErrNotExist) && try < 100 {
			continue
		}
		if err != nil || !b.durable {
			return err
		}
		return b.syncUp(dir)
	}
}

// syncUp puts the directory and its parents on the disk.
func (b *Bucket) syncUp(dir string) error {
	for {
		f, err := b.root.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
		if dir == "." {
			return nil
		}
		dir = path.Dir(dir)
	}
}

// Get reads an object of at most max bytes (0 means no limit).
func (b *Bucket) Get(ctx context.Context, key string, max int64) ([]byte, error) {
	f, size, err := b.open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if max > 0 && size > max {
		return nil, fmt.Errorf("%w: %s has %d bytes, %d allowed", blob.ErrTooLarge, key, size, max)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(f, body); err != nil {
		return nil, fmt.Errorf("blob/files: get %s: %w", key, err)
	}
	return body, nil
}

// Open streams length bytes from offset (length < 0 means to the end) and returns the
// size of the object.
func (b *Bucket) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, int64, error) {
	f, size, err := b.open(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	whole := offset == 0 && length < 0
	if offset < 0 || offset > size || offset == size && length != 0 && !whole {
		f.Close()
		return nil, size, fmt.Errorf("%w: %s has %d bytes, offset is %d", blob.ErrRange, key, size, offset)
	}
	if length < 0 {
		length = math.MaxInt64 - offset
	}
	return section{io.NewSectionReader(f, offset, length), f}, size, nil
}

type section struct {
	io.Reader
	io.Closer
}

func (b *Bucket) open(ctx context.Context, key string) (*os.File, int64, error) {
	if err := errors.Join(blob.CheckKey(key), ctx.Err()); err != nil {
		return nil, 0, err
	}
	f, err := b.root.Open(key)
	if err != nil {
		if notThere(err) {
			return nil, 0, fmt.Errorf("%w: %s", blob.ErrNotFound, key)
		}
		return nil, 0, fmt.Errorf("blob/files: open %s: %w", key, err)
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		f.Close()
		if err == nil {
			err = blob.ErrNotFound // a directory is no object
		}
		return nil, 0, fmt.Errorf("%w: %s", err, key)
	}
	return f, info.Size(), nil
}

// Delete removes an object and the directories that it leaves empty.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	if err := errors.Join(blob.CheckKey(key), ctx.Err()); err != nil {
		return err
	}
	info, err := b.root.Lstat(key)
	switch {
	case notThere(err) || err == nil && info.IsDir():
		return nil
	case err == nil:
		err = b.root.Remove(key)
	}
	if err != nil && !notThere(err) {
		return fmt.Errorf("blob/files: delete %s: %w", key, err)
	}
	for dir := path.Dir(key); dir != "."; dir = path.Dir(dir) {
		if b.root.Remove(dir) != nil { // not empty: it has other objects
			break
		}
	}
	return nil
}

// notThere reports whether an error means that the name is absent, which includes names
// below a file.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// List returns at most limit keys with the prefix that sort after the key after, in byte
// order.
func (b *Bucket) List(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	if limit <= 0 {
		return nil, nil
	}
	w := walk{bucket: b, prefix: prefix, after: after, limit: limit}
	start := ""
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		start = prefix[:i+1]
		if blob.CheckKey(prefix[:i]) != nil {
			return nil, nil // no key has such a prefix
		}
	}
	if err := w.dir(ctx, start); err != nil && !errors.Is(err, errFull) {
		return nil, fmt.Errorf("blob/files: list %s: %w", prefix, err)
	}
	return w.keys, nil
}

// errFull ends a walk that has enough keys.
var errFull = errors.New("full")

type walk struct {
	bucket        *Bucket
	prefix, after string
	limit         int
	keys          []string
}

// dir walks a directory in the byte order of the keys below it; at is "" or ends
// in a slash.
func (w *walk) dir(ctx context.Context, at string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := w.bucket.entries(path.Clean("./" + at))
	if notThere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		switch name := e.Name(); {
		case name[0] == '.':
		case e.IsDir():
			names = append(names, name+"/") // "a-b" comes before "a/b"
		case e.Type().IsRegular():
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if err := w.entry(ctx, at+name); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(ctx context.Context, key string) error {
	if !strings.HasSuffix(key, "/") {
		if key > w.after && strings.HasPrefix(key, w.prefix) {
			w.keys = append(w.keys, key)
			if len(w.keys) == w.limit {
				return errFull
			}
		}
		return nil
	}
	if w.after > key && !strings.HasPrefix(w.after, key) {
		return nil // everything below comes before after
	}
	if !strings.HasPrefix(key, w.prefix) && !strings.HasPrefix(w.prefix, key) {
		return nil
	}
	return w.dir(ctx, key)
}

func (b *Bucket) entries(dir string) ([]fs.DirEntry, error) {
	f, err := b.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}
