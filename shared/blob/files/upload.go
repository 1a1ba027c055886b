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
	"strconv"
	"strings"
	"time"

	"gateway/shared/blob"
)

var _ blob.Uploads = (*Bucket)(nil)

// uploads is how the directories that hold the parts of uploads are named, below partial.
const uploads = "upload-"

// uploadKept is how long an inactive upload is retained.
const uploadKept = 47 * time.Hour

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

// Abandon removes the parts.
func (b *Bucket) Abandon(ctx context.Context, key, id string) error {
	dir, err := b.parts(ctx, key, id)
	if errors.Is(err, blob.ErrNoUpload) {
		return nil
	}
	if err != nil {
		return err
	}
	return b.root.RemoveAll(dir)
}
