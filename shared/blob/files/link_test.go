package files_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"gateway/shared/blob/files"
)

func TestLinkedFileIsAnObjectThatGrowsAndOutlivesIt(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	b, err := files.Open(filepath.Join(dir, "blobs"), files.Durable())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	name, other := filepath.Join(dir, "journal"), filepath.Join(dir, "other")
	for file, text := range map[string]string{name: "one", other: "else"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time there is nothing left to do
		if err := b.Link(ctx, "packs/a", name); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Link(ctx, "packs/a", other); !errors.Is(err, fs.ErrExist) {
		t.Errorf("another file under the same key: %v", err)
	}
	if err := b.Link(ctx, "../a", name); err == nil {
		t.Error("a key led out of the bucket")
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("two")
	if err := errors.Join(err, f.Close(), os.Remove(name)); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Get(ctx, "packs/a", 0); string(got) != "onetwo" || err != nil {
		t.Errorf("%q %v", got, err)
	}
}
