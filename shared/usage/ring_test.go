package usage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"gateway/shared/blob/files"
)

// shelf is a journal beside a bucket of files.
type shelf struct {
	t       testing.TB
	dir     string
	bucket  *files.Bucket
	damaged int
}

func newShelf(t testing.TB) *shelf {
	t.Helper()
	return newShelfIn(t, t.TempDir())
}

func newShelfIn(t testing.TB, dir string) *shelf {
	t.Helper()
	s := &shelf{t: t, dir: dir}
	var err error
	if s.bucket, err = files.Open(filepath.Join(s.dir, "blobs")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.bucket.Close() })
	return s
}

func (s *shelf) journal() string { return filepath.Join(s.dir, "journal") }

// open opens the journal; one with rings, where the system has them.
func (s *shelf) open(packBytes int64) *Journal {
	s.t.Helper()
	j := openJournal(s.t, s.journal(), JournalOptions{MaxFileBytes: packBytes, Bucket: s.bucket, OnDamage: func(string, int64, error) { s.damaged++ }})
	if j.ring == nil {
		s.t.Skip("no rings on this system")
	}
	return j
}

// bodyOf is what the bodies of an event are: as many bytes as its id says, of a
// kind that only it has.
func bodyOf(id string, size int) []byte {
	return bytes.Repeat([]byte(id+"|"), size/(len(id)+1)+1)[:size]
}

func (s *shelf) emit(j *Journal, id string, size int) {
	s.t.Helper()
	r := sample()
	r.ID, r.Bodies = id, bodyOf(id, size)
	if err := j.Emit(context.Background(), &r); err != nil {
		s.t.Fatal(err)
	}
}

// check compares a record and the contents of its pack with the emitted ones.
func (s *shelf) check(r *Record, size int) {
	s.t.Helper()
	plain := sample()
	plain.ID, plain.Pack = r.ID, r.Pack
	if !reflect.DeepEqual(plain, *r) {
		s.t.Errorf("%s: read %+v, want %+v", r.ID, *r, plain)
	}
	if r.Pack.Length != int64(size) {
		s.t.Fatalf("%s: %d bytes of bodies, want %d", r.ID, r.Pack.Length, size)
	}
	if size == 0 {
		return
	}
	from, _, err := s.bucket.Open(context.Background(), r.Pack.Key, r.Pack.Offset, r.Pack.Length)
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := io.ReadAll(from)
	if err := errors.Join(err, from.Close()); err != nil || !bytes.Equal(got, bodyOf(r.ID, size)) {
		s.t.Fatalf("%s: its pack holds %.40q... (%d bytes), %v", r.ID, got, len(got), err)
	}
}

func (s *shelf) next(j *Journal, max int) Batch {
	s.t.Helper()
	b, err := j.Next(context.Background(), max, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

func (s *shelf) list(suffix string) []string {
	s.t.Helper()
	names, err := filepath.Glob(filepath.Join(s.journal(), "*"+suffix))
	if err != nil {
		s.t.Fatal(err)
	}
	return names
}

// Many laps of the ring, several packs, bodies of all sizes, batches of all sizes:
// every record comes once, in order, with its own bodies.
func TestRingGivesEveryRecordItsOwnBodies(t *testing.T) {
	s, dice := newShelf(t), rand.New(rand.NewPCG(1, 2))
	j := s.open(3 << 20)
	sizes, seen, written := make(map[string]int), 0, 0
	for bytes := 0; bytes < 5*ringBodies; {
		for range 1 + dice.IntN(30) {
			id, size := fmt.Sprintf("%06d", written), dice.IntN(200)
			if dice.IntN(3) == 0 {
				size = dice.IntN(MaxInlineBody)
			}
			s.emit(j, id, size)
			sizes[id] = size
			bytes += size
			written++
		}
		b := s.next(j, 1+dice.IntN(60))
		for i := range b.Records {
			r := &b.Records[i]
			if want := fmt.Sprintf("%06d", seen); r.ID != want {
				t.Fatalf("%s came, want %s", r.ID, want)
			}
			s.check(r, sizes[r.ID])
			seen++
		}
		if err := b.Done(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(drain(t, j, 100, true)); got != written-seen {
		t.Errorf("%d more records, want %d", got, written-seen)
	}
	if j.size > 0 {
		t.Error("events went to a file beside a ring that has room")
	}
	if n := len(s.list(packSuffix)); n > 2 {
		t.Errorf("%d packs have a name in the journal's folder", n)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if left := slices.Concat(s.list(packSuffix), s.list(ringSuffix)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A process that dies leaves a ring; the next one reads the unacknowledged records, with bodies
// that had not reached the disk, and deletes it.
func TestRingOfADeadProcessIsRead(t *testing.T) {
	s := newShelf(t)
	first := s.open(1 << 20)
	const size = 1000
	for _, id := range names(40) {
		s.emit(first, id, size)
	}
	b := s.next(first, 15)
	if err := b.Done(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, id := range names(60)[40:] { // after those flushed for the batch
		s.emit(first, id, size)
	}
	s.next(first, 15) // taken, not acknowledged
	s.emit(first, "00060", 100<<10)

	second := s.open(1 << 20)
	s.emit(second, "00061", size)
	var got []string
	for {
		b := s.next(second, 7)
		if len(b.Records) == 0 {
			break
		}
		for i := range b.Records {
			r, want := &b.Records[i], size
			if r.ID == "00060" {
				want = 100 << 10
			}
			s.check(r, want)
			got = append(got, r.ID)
		}
		if err := b.Done(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if want := names(62)[15:]; !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
	if rings := s.list(ringSuffix); len(rings) != 1 || rings[0] != ringPath(s.journal(), second.ring.seq) {
		t.Errorf("rings: %v", rings)
	}
	if s.damaged > 0 {
		t.Errorf("heard of damage %d times", s.damaged)
	}
}

// Records that do not fit on the ring go to a file, and none is lost or duplicated.
func TestFullRingGoesOnInFiles(t *testing.T) {
	for name, size := range map[string]int{"events": 10, "bodies": 60 << 10} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			j := s.open(0)
			if name == "bodies" {
				j.ring.packs = [2]*packFile{}
				j.ring.link = func(string) (string, error) { return "", errors.ErrUnsupported }
			}
			want := names(5000)
			if name == "bodies" {
				want = want[:20]
			}
			for _, id := range want {
				s.emit(j, id, size)
			}
			if j.size == 0 {
				t.Fatal("the ring took everything")
			}
			var got []string
			for {
				b := s.next(j, 300)
				if len(b.Records) == 0 {
					break
				}
				for i := range b.Records {
					s.check(&b.Records[i], size)
					got = append(got, b.Records[i].ID)
				}
				if err := b.Done(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d records, want %d", len(got), len(want))
			}
			s.emit(j, "behind", size)
			if on := j.reader.unreadOfRings() > 0; on != (name == "events") {
				t.Errorf("a ring with room again takes an event: %v", on)
			}
		})
	}
}

// Bodies of a later day are not in the pack of the day before, which is deleted
// sooner.
func TestPackHoldsOneDay(t *testing.T) {
	s := newShelf(t)
	j := s.open(0)
	keys := make(map[string]bool)
	for day := range 4 {
		for range 3 {
			r := sample()
			r.Start, r.Bodies = r.Start.AddDate(0, 0, day), []byte("bodies")
			if err := j.Emit(context.Background(), &r); err != nil {
				t.Fatal(err)
			}
		}
		b := s.next(j, 10)
		key := b.Records[0].Pack.Key
		if keys[key] || b.Records[2].Pack.Key != key {
			t.Errorf("day %d lies in %s and %s", day, key, b.Records[2].Pack.Key)
		}
		keys[key] = true
	}
}

// Damage on the ring of a dead process loses the damaged event, is reported, and does not
// prevent the start.
func TestDamagedRing(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(b []byte) []byte
		want  []string
	}{
		"event":       {func(b []byte) []byte { b[ringPage+slotHead+100] ^= 1; return b }, []string{"two", "three", "new"}},
		"slot":        {func(b []byte) []byte { b[ringPage] = 0xff; return b }, []string{"two", "three", "new"}},
		"slot of 0":   {func(b []byte) []byte { clear(b[ringPage : ringPage+8]); return b }, []string{"two", "three", "new"}},
		"long key":    {func(b []byte) []byte { b[ringPage+22] = 0xff; return b }, []string{"two", "three", "new"}},
		"head":        {func(b []byte) []byte { b[0] ^= 1; return b }, []string{"new"}},
		"end of head": {func(b []byte) []byte { b[14] = 0xff; return b }, []string{"new"}},
		"odd places":  {func(b []byte) []byte { b[16] = 3; return b }, []string{"new"}},
		"half made":   {func(b []byte) []byte { return make([]byte, 1<<20) }, []string{"new"}},
		"short":       {func(b []byte) []byte { return b[:100] }, []string{"new"}},
		"not begun":   {func(b []byte) []byte { clear(b); return b }, []string{"new"}},
		"empty":       {func(b []byte) []byte { return nil }, []string{"new"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			first := s.open(0)
			for _, id := range []string{"one", "two", "three"} {
				s.emit(first, id, 10)
			}
			path := ringPath(s.journal(), first.ring.seq)
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dead := t.TempDir() // the process that wrote it lives on elsewhere
			s.dir = dead
			if err := os.MkdirAll(s.journal(), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(ringPath(s.journal(), first.ring.seq), c.spoil(whole), 0o600); err != nil {
				t.Fatal(err)
			}
			second := s.open(0)
			s.emit(second, "new", 10)
			if got := drain(t, second, 10, true); !slices.Equal(got, c.want) || (s.damaged == 0) != slices.Contains([]string{"not begun", "half made", "empty"}, name) {
				t.Errorf("%v, heard of damage %d times", got, s.damaged)
			}
		})
	}
}

// Writers, the flusher and the reader at once, in a ring that is often full.
func TestManyWritersOnARing(t *testing.T) {
	s := newShelf(t)
	j := s.open(2 << 20)
	const writers, each, size = 4, 200, 30 << 10
	wg := emitFrom(t, j, writers, each, func(r *Record) { r.Bodies = bodyOf(r.ID, size) })
	seen := make(map[string]bool)
	for len(seen) < writers*each {
		b, err := j.Next(context.Background(), 50, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Records {
			if r := &b.Records[i]; seen[r.ID] {
				t.Fatalf("%s twice", r.ID)
			}
			seen[b.Records[i].ID] = true
			s.check(&b.Records[i], size)
		}
		if err := b.Done(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}

// Bodies that cannot be written to the disk keep their records back, not for good.
func TestFailingDiskRetainsTheBatch(t *testing.T) {
	s := newShelf(t)
	j := s.open(0)
	s.emit(j, "one", 5000)
	p := j.ring.packs[1]
	good := p.file
	broken, err := os.Open(good.Name()) // takes no writes
	if err != nil {
		t.Fatal(err)
	}
	p.file = broken
	for range 2 {
		if b, err := j.Next(context.Background(), 10, 0); err == nil {
			t.Fatalf("%d records with bodies that are nowhere", len(b.Records))
		}
	}
	p.file = good
	if err := broken.Close(); err != nil {
		t.Fatal(err)
	}
	b := s.next(j, 10)
	if len(b.Records) != 1 {
		t.Fatalf("%d records", len(b.Records))
	}
	s.check(&b.Records[0], 5000)
}

// A file system that rejects a direct write gets the same bytes through its cache.
func TestPackIsWrittenWithoutDirectWrites(t *testing.T) {
	s := newShelf(t)
	j := s.open(0)
	s.emit(j, "one", 10)
	s.next(j, 1)
	p := j.ring.packs[1]
	if err := p.write([]byte("odd"), 3); err != nil { // no direct write has this length
		t.Fatal(err)
	}
	s.emit(j, "two", 70<<10)
	b := s.next(j, 1)
	s.check(&b.Records[0], 70<<10)
}

func BenchmarkRingEmit(b *testing.B) {
	for _, size := range []int{3 << 10, 110 << 10} {
		b.Run(fmt.Sprintf("bodies=%d", size), func(b *testing.B) {
			s := newShelf(b)
			j := s.open(0)
			r := sample()
			r.Bodies = make([]byte, size)
			b.SetBytes(int64(size))
			n := 0
			for b.Loop() {
				if err := j.Emit(context.Background(), &r); err != nil {
					b.Fatal(err)
				}
				if n++; n%200 == 0 {
					if err := s.next(j, 250).Done(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
