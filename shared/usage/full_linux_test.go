package usage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// smallDisk is a separate file system with a number of bytes.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("this test mounts a file system, which is refused: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill uses all space of the file system.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// On a full disk events are accepted as long as there is space for them, others get an error,
// and no accepted event is lost. With space the journal continues automatically.
func TestFullDisk(t *testing.T) {
	for name, bodies := range map[string]int{"bodies in the event": 60 << 10, "bodies in the bucket": MaxInlineBody + 1} {
		t.Run(name, func(t *testing.T) { fullDisk(t, bodies) })
	}
}

func fullDisk(t *testing.T, size int) {
	ctx, disk := context.Background(), smallDisk(t, 16<<20)
	s := newShelfIn(t, disk)
	j := s.open(0)
	s.emit(j, "first", 100)
	if got := s.ids(j, func(r *Record) { s.check(r, 100) }); len(got) != 1 {
		t.Fatalf("%v", got)
	}
	filler := filepath.Join(disk, "filler")
	fill(t, filler)

	sizes := make(map[string]int) // the expected records, with the size of their bodies
	var refused, bare int
	for _, id := range names(3000) {
		r := sample()
		r.ID, r.Bodies = id, bodyOf(id, size)
		switch err := j.Emit(ctx, &r); {
		case err == nil:
			sizes[id] = size
		case !errors.Is(err, syscall.ENOSPC):
			t.Fatal(err)
		case strings.Contains(err.Error(), "without its bodies"):
			sizes[id] = 0
			bare++
		default:
			refused++
		}
	}
	if bare < 100 || refused < 100 {
		t.Errorf("%d records were kept without bodies, %d refused", bare, refused)
	}
	if size <= MaxInlineBody {
		if _, err := j.Next(ctx, 10, 0); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("bodies came to a full disk: %v", err)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	s.emit(j, "last", 100)
	sizes["last"] = 100
	seen := s.ids(j, func(r *Record) {
		if r.Blob == "" {
			s.check(r, sizes[r.ID])
		}
	})
	slices.Sort(seen)
	if again := len(seen) - len(slices.Compact(seen)); again > 0 || len(seen) != len(sizes) {
		t.Errorf("%d records came, %d of them again; want %d", len(seen), again, len(sizes))
	}
	for _, id := range seen {
		if _, ok := sizes[id]; !ok {
			t.Errorf("%s came and was refused", id)
		}
	}
	if s.damaged > 0 {
		t.Errorf("heard of damage %d times", s.damaged)
	}
}
