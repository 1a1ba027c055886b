// Package local wraps data keys with a master key from a file, for a gateway without a key
// service.
//
// The file contains one key a line, "gateway-master-key-1 <base64 of 32 bytes>". The first key
// wraps; all of them unwrap. To rotate, add a new line at the top. The file decrypts every
// sealed value, and without it none can be decrypted: back it up, but not with the data.
package local

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"gateway/shared/seal"
)

const (
	mark     = "gateway-master-key-1"
	keyBytes = 32
)

// Wrapper is a seal.Wrapper over a key file.
type Wrapper struct {
	first seal.KeyID
	keys  map[seal.KeyID]cipher.AEAD
}

var _ seal.Wrapper = (*Wrapper)(nil)

// Open reads the key file at path. If there is none, it is made with a new key, readable by
// its owner only. If several processes make it at once, one wins and all read its key. A
// file that others may read is rejected.
func Open(path string) (*Wrapper, error) {
	text, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = create(path); err == nil {
			text, err = read(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("seal/local: key file: %w", err)
	}
	return parse(text)
}

func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s is readable by other users (mode %o); change the mode to 0600", path, info.Mode().Perm())
	}
	return os.ReadFile(path)
}

// create makes the complete file or none, and never replaces one.
func create(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".master-key-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	_, err = fmt.Fprintf(f, "%s %s\n", mark, base64.StdEncoding.EncodeToString(key))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	// A link fails if the file exists by now; a rename would replace it.
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync() // not every file system supports it; the key is in the page cache anyway
	return d.Close()
}

func parse(text []byte) (*Wrapper, error) {
	w := &Wrapper{keys: map[seal.KeyID]cipher.AEAD{}}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		fields := strings.Fields(string(line))
		if len(fields) == 0 {
			continue
		}
		var key []byte
		var err error
		if len(fields) == 2 && fields[0] == mark {
			key, err = base64.StdEncoding.DecodeString(fields[1])
		}
		if err != nil || len(key) != keyBytes {
			return nil, fmt.Errorf("seal/local: line %d of the key file is not %q and the base64 of %d bytes", n, mark, keyBytes)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(append([]byte(mark), key...))
		id := seal.KeyID(sum[:])
		if len(w.keys) == 0 {
			w.first = id
		}
		w.keys[id] = aead
	}
	if len(w.keys) == 0 {
		return nil, errors.New("seal/local: the key file is empty")
	}
	return w, nil
}

// Generate makes a data key.
func (w *Wrapper) Generate(ctx context.Context, c seal.Context) (seal.DataKey, error) {
	if err := ctx.Err(); err != nil {
		return seal.DataKey{}, err
	}
	plain := make([]byte, keyBytes)
	_, _ = rand.Read(plain) // never fails
	wrapped := w.keys[w.first].Seal(nil, nil, plain, c.Append(nil))
	return seal.DataKey{Plain: plain, Wrapped: wrapped, Master: w.first}, nil
}

// Unwrap gives a plain data key.
func (w *Wrapper) Unwrap(ctx context.Context, c seal.Context, master seal.KeyID, wrapped []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	aead := w.keys[master]
	if aead == nil {
		return nil, fmt.Errorf("%w: master key %x is not in the key file", seal.ErrRefused, master)
	}
	plain, err := aead.Open(nil, nil, wrapped, c.Append(nil))
	if err != nil {
		return nil, seal.ErrRefused
	}
	return plain, nil
}
