package files

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gateway/shared/blob"
	"gateway/shared/testkit/blobtest"
)

func open(t testing.TB, dir string, o ...Option) *Bucket {
	t.Helper()
	b, err := Open(dir, o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func TestContract(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Bucket { return open(t, t.TempDir()) })
}

func TestContractDurable(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Bucket { return open(t, t.TempDir(), Durable()) })
}

func TestObjectsSurviveReopeningAndOldLeftoversDoNot(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	if err := b.Put(context.Background(), "a/b", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	old, fresh := filepath.Join(dir, partial, "old"), filepath.Join(dir, partial, "fresh")
	for _, name := range []string{old, fresh} {
		if err := os.WriteFile(name, []byte("cut off"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	b.Close()
	b = open(t, dir)
	if got, err := b.Get(context.Background(), "a/b", 0); err != nil || string(got) != "kept" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the old leftover is still there: %v", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("a write under way was removed: %v", err)
	}
}

func TestALinkOutOfTheDirectoryIsNotFollowed(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b := open(t, dir)
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Get(context.Background(), "link/secret", 0); err == nil {
		t.Errorf("read %q", got)
	}
	if err := b.Put(context.Background(), "link/new", nil); err == nil {
		t.Error("wrote through the link")
	}
}

func TestAnObjectCannotBeADirectoryOfAnother(t *testing.T) {
	b := open(t, t.TempDir())
	ctx := context.Background()
	if err := b.Put(ctx, "a/b", nil); err != nil {
		t.Fatal(err)
	}
	if b.Put(ctx, "a", nil) == nil || b.Put(ctx, "a/b/c", nil) == nil {
		t.Error("both were kept")
	}
	if keys, err := b.List(ctx, "", "", 10); err != nil || len(keys) != 1 {
		t.Errorf("%v, %v", keys, err)
	}
}

func BenchmarkPut4KB(b *testing.B) {
	bucket := open(b, b.TempDir())
	body := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if err := bucket.Put(context.Background(), "a/b/c", body); err != nil {
			b.Fatal(err)
		}
	}
}
