package files

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gateway/shared/blob"
)

var _ blob.Uploads = (*Bucket)(nil)

// uploads is how the directories that hold the parts of uploads are named, below partial.
const uploads = "upload-"

// uploadRetention is how long an inactive upload is retained.
const uploadRetention = 47 * time.Hour

// Begin starts an upload. Its parts are in a separate directory until it is complete.
func (b *Bucket) Begin(ctx context.Context, key, _ string) (string, error) {
	if err := errors.Join(blob.CheckKey(key), ctx.Err()); err != nil {
		return "", err
	}
	id := rand.Text()
	if err := b.root.Mkdir(path.Join(partial, uploads+id), 0o700); err != nil {
		return "", fmt.Errorf("blob/files: begin %s: %w", key, err)
	}
	return id, nil
}

// parts is the directory of an upload.
func (b *Bucket) parts(ctx context.Context, key, id string) (string, error) {
	if err := errors.Join(blob.CheckKey(key), ctx.Err()); err != nil {
		return "", err
	}
	if id == "" || strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return "", fmt.Errorf("%w: %s", blob.ErrNoUpload, key)
	}
	dir := path.Join(partial, uploads+id)
	if _, err := b.root.Stat(dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = blob.ErrNoUpload
		}
		return "", fmt.Errorf("%w: %s", err, key)
	}
	return dir, nil
}

// Part puts a part; its tag is the SHA-256 of its bytes.
func (b *Bucket) Part(ctx context.Context, key, id string, n int, body []byte) (string, error) {
	dir, err := b.parts(ctx, key, id)
	if err != nil {
		return "", err
	}
	temp := path.Join(partial, rand.Text())
	if err := b.write(temp, body); err != nil {
		_ = b.root.Remove(temp)
		return "", fmt.Errorf("blob/files: part %d of %s: %w", n, key, err)
	}
	sum := sha256.Sum256(body)
	tag := hex.EncodeToString(sum[:])
	if err := b.root.Rename(temp, path.Join(dir, strconv.Itoa(n)+"-"+tag)); err != nil {
		_ = b.root.Remove(temp)
		return "", fmt.Errorf("blob/files: part %d of %s: %w", n, key, err)
	}
	return tag, nil
}

// Complete copies the parts into one file, which is then renamed into place.
func (b *Bucket) Complete(ctx context.Context, key, id string, tags []string) error {
	dir, err := b.parts(ctx, key, id)
	if err != nil {
		return err
	}
	temp := path.Join(partial, rand.Text())
	if err = b.join(ctx, temp, dir, tags); err == nil {
		err = b.place(temp, key)
	}
	if err != nil {
		_ = b.root.Remove(temp)
		return fmt.Errorf("blob/files: complete %s: %w", key, err)
	}
	return b.root.RemoveAll(dir)
}

func (b *Bucket) join(ctx context.Context, temp, dir string, tags []string) error {
	out, err := b.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	for i, tag := range tags {
		if err = ctx.Err(); err != nil {
			break
		}
		if err = b.append(out, path.Join(dir, strconv.Itoa(i+1)+"-"+path.Base("/"+tag))); err != nil {
			break
		}
	}
	if err == nil && b.durable {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

func (b *Bucket) append(out io.Writer, part string) error {
	in, err := b.root.Open(part)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return blob.ErrNoUpload
		}
		return err
	}
	defer in.Close()
	_, err = io.Copy(out, in)
	return err
}

// Abort removes the parts.
func (b *Bucket) Abort(ctx context.Context, key, id string) error {
	dir, err := b.parts(ctx, key, id)
	if errors.Is(err, blob.ErrNoUpload) {
		return nil
	}
	if err != nil {
		return err
	}
	return b.root.RemoveAll(dir)
}

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
		from, to, ok := s.Clamp(info.Size())
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
