package local

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gateway/shared/seal"
	"gateway/shared/testkit/sealtest"
)

func open(t testing.TB, path string) *Wrapper {
	t.Helper()
	w, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestContract(t *testing.T) {
	dir := t.TempDir()
	sealtest.Run(t, sealtest.Harness{
		Open:    func(t *testing.T) seal.Wrapper { return open(t, filepath.Join(dir, "master.key")) },
		Foreign: func(t *testing.T) seal.Wrapper { return open(t, filepath.Join(t.TempDir(), "other.key")) },
	})
}

func TestTheKeyFileIsMadeOnceAndForItsOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "master.key")
	ids := make([]seal.KeyID, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			w, err := Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = w.first
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("different keys: %x", ids)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("%d files beside the key, %v", len(left)-1, err)
	}
}

func TestBadKeyFilesAreRefused(t *testing.T) {
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for name, text := range map[string]string{
		"empty": "", "blank": "\n\n", "no mark": key + "\n", "other mark": "gateway-master-key-2 " + key,
		"short": mark + " AAAA\n", "not base64": mark + " !!\n", "second line": mark + " " + key + "\n" + mark + "\n",
	} {
		path := filepath.Join(t.TempDir(), "k")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path)
		if err == nil || strings.Contains(err.Error(), "AAAA") {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := filepath.Join(t.TempDir(), "k")
	if err := os.WriteFile(path, []byte(mark+" "+key+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "0600") {
		t.Errorf("a file that others may read: %v", err)
	}
}

func TestAFormerKeyOpens(t *testing.T) {
	dir := t.TempDir()
	oldPath, newPath := filepath.Join(dir, "old"), filepath.Join(dir, "new")
	ctx, b := context.Background(), seal.Binding{Org: "o", Table: "t"}
	sealed, err := seal.New(open(t, oldPath), nil).Seal(ctx, b, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	rotated := open(t, newPath).first
	oldText, _ := os.ReadFile(oldPath)
	newText, _ := os.ReadFile(newPath)
	both := filepath.Join(dir, "both")
	if err := os.WriteFile(both, append(newText, oldText...), 0o600); err != nil {
		t.Fatal(err)
	}
	w := open(t, both)
	if w.first != rotated {
		t.Error("the first line does not wrap")
	}
	if got, err := seal.New(w, nil).Open(ctx, b, sealed); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := seal.New(open(t, newPath), nil).Open(ctx, b, sealed); !errors.Is(err, seal.ErrRefused) {
		t.Errorf("without the old key: %v", err)
	}
}
