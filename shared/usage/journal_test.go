package usage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"gateway/shared/blob"
	"gateway/shared/blob/files"
)

func openJournal(t testing.TB, dir string, o JournalOptions) *Journal {
	t.Helper()
	j, err := OpenJournal(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func emit(t testing.TB, j *Journal, ids ...string) {
	t.Helper()
	for _, id := range ids {
		r := sample()
		r.ID = id
		if err := j.Emit(context.Background(), &r); err != nil {
			t.Fatal(err)
		}
	}
}

// drain reads all there is without acknowledging, or with.
func drain(t testing.TB, j *Journal, max int, ack bool) (ids []string) {
	t.Helper()
	for {
		b, err := j.Next(context.Background(), max, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Records) == 0 {
			return ids
		}
		for i := range b.Records {
			ids = append(ids, b.Records[i].ID)
		}
		if ack {
			if err := b.Done(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func names(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("%05d", i))
	}
	return ids
}

func TestRecordsAreReadInOrderAcrossFilesAndRestarts(t *testing.T) {
	dir := t.TempDir()
	want := names(100)
	j := openJournal(t, dir, JournalOptions{MaxFileBytes: 4 << 10})
	emit(t, j, want[:50]...)
	if got := drain(t, j, 7, false); !slices.Equal(got, want[:50]) {
		t.Fatalf("first reading: %v", got)
	}
	// Not acknowledged: a process that follows reads all again.
	j = openJournal(t, dir, JournalOptions{MaxFileBytes: 4 << 10})
	emit(t, j, want[50:]...)
	if got := drain(t, j, 7, true); !slices.Equal(got, want) {
		t.Fatalf("after a restart: %v", got)
	}
	files, err := j.files()
	if err != nil || len(files) != 1 {
		t.Errorf("acknowledged files are still there: %v %v", files, err)
	}
	j = openJournal(t, dir, JournalOptions{})
	if got := drain(t, j, 7, true); len(got) != 0 {
		t.Errorf("acknowledged records came again: %v", got)
	}
	emit(t, j, "more")
	if got := drain(t, j, 7, true); !slices.Equal(got, []string{"more"}) {
		t.Errorf("%v", got)
	}
}

func TestPartOfAFileIsAcknowledged(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, dir, JournalOptions{})
	want := names(10)
	emit(t, j, want...)
	b, err := j.Next(context.Background(), 4, 0)
	if err != nil || len(b.Records) != 4 {
		t.Fatal(len(b.Records), err)
	}
	if err := b.Done(context.Background()); err != nil {
		t.Fatal(err)
	}
	j = openJournal(t, dir, JournalOptions{})
	if got := drain(t, j, 100, true); !slices.Equal(got, want[4:]) {
		t.Errorf("%v", got)
	}
}

// A process may die during a write: whatever part of the last event is on disk, the events
// before it are read and nothing else.
func TestTornTailOfADeadProcess(t *testing.T) {
	source := t.TempDir()
	j := openJournal(t, source, JournalOptions{})
	emit(t, j, "one", "two")
	before := j.size
	emit(t, j, "three")
	whole, err := os.ReadFile(j.path(j.seq))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	step := int64(1)
	if testing.Short() {
		step = 13
	}
	for cut := before; cut < int64(len(whole)); cut += step {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(j.path(j.seq))), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		damaged := false
		next, err := OpenJournal(dir, JournalOptions{OnDamage: func(string, int64, error) { damaged = true }})
		if err != nil {
			t.Fatal(err)
		}
		emit(t, next, "four")
		got := drain(t, next, 2, true)
		if !slices.Equal(got, []string{"one", "two", "four"}) || damaged {
			t.Fatalf("cut at %d of %d: %v, damage %v", cut, len(whole), got, damaged)
		}
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamageWithinAFileCostsOnlyTheDamagedEvents(t *testing.T) {
	source := t.TempDir()
	j := openJournal(t, source, JournalOptions{})
	emit(t, j, "one")
	first := int(j.size)
	emit(t, j, "two", "three")
	whole, err := os.ReadFile(j.path(j.seq))
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(b []byte){
		"content": func(b []byte) { b[first+40] ^= 1 },
		"magic":   func(b []byte) { b[first] = 0 },
		"length":  func(b []byte) { b[first+4] = 0xff },
		"zeros":   func(b []byte) { clear(b[first : first+20]) },
		"huge":    func(b []byte) { b[first+5] = 0x7f },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			bad := slices.Clone(whole)
			spoil(bad)
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(j.path(j.seq))), bad, 0o600); err != nil {
				t.Fatal(err)
			}
			read := 0
			next := openJournal(t, dir, JournalOptions{OnDamage: func(string, int64, error) { read++ }})
			if got := drain(t, next, 10, true); !slices.Equal(got, []string{"one", "three"}) || read == 0 {
				t.Errorf("%v, heard of damage %d times", got, read)
			}
		})
	}
}

func TestManyWritersOneReader(t *testing.T) {
	for _, durable := range []bool{false, true} {
		t.Run("durable="+strconv.FormatBool(durable), func(t *testing.T) {
			j := openJournal(t, t.TempDir(), JournalOptions{MaxFileBytes: 8 << 10, Durable: durable})
			const writers, each = 8, 30
			wg := emitFrom(t, j, writers, each, func(*Record) {})
			seen := make(map[string]bool)
			for len(seen) < writers*each {
				b, err := j.Next(context.Background(), 50, time.Millisecond)
				if err != nil {
					t.Fatal(err)
				}
				for i := range b.Records {
					if seen[b.Records[i].ID] {
						t.Fatalf("%s twice", b.Records[i].ID)
					}
					seen[b.Records[i].ID] = true
				}
				if err := b.Done(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			wg.Wait()
		})
	}
}

func TestNextEndsWithItsContext(t *testing.T) {
	j := openJournal(t, t.TempDir(), JournalOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := j.Next(ctx, 1, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := j.Next(context.Background(), 1, time.Hour); err != nil || len(b.Records) != 0 {
		t.Errorf("after Close: %d records, %v", len(b.Records), err)
	}
	r := sample()
	if err := j.Emit(context.Background(), &r); !errors.Is(err, ErrClosed) {
		t.Errorf("Emit after Close: %v", err)
	}
}

// heap is a bucket in memory.
type heap struct {
	blob.Bucket
	mu sync.Mutex
	m  map[string][]byte
}

func (h *heap) Put(_ context.Context, key string, body []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.m[key] = slices.Clone(body)
	return blob.CheckKey(key)
}

func TestLargeBodiesGoToTheBucketFirst(t *testing.T) {
	h := &heap{m: make(map[string][]byte)}
	j := openJournal(t, t.TempDir(), JournalOptions{Bucket: h})
	r := sample()
	r.Bodies = make([]byte, MaxInlineBody+1)
	if err := j.Emit(context.Background(), &r); err != nil {
		t.Fatal(err)
	}
	small := sample()
	small.Bodies = make([]byte, MaxInlineBody)
	if err := j.Emit(context.Background(), &small); err != nil {
		t.Fatal(err)
	}
	b, err := j.Next(context.Background(), 10, 0)
	if err != nil || len(b.Records) != 2 {
		t.Fatal(len(b.Records), err)
	}
	if got := &b.Records[0]; got.Blob != BodyKey(&r) || len(got.Bodies) != 0 || len(h.m[got.Blob]) != MaxInlineBody+1 {
		t.Errorf("large bodies: blob %q, %d inline", got.Blob, len(got.Bodies))
	}
	if got := &b.Records[1]; got.Blob != "" || len(got.Bodies) != MaxInlineBody {
		t.Errorf("small bodies: blob %q, %d inline", got.Blob, len(got.Bodies))
	}
}

// Beside a bucket of files, bodies are written once: the journal's file becomes
// the object that they are read from, also after the journal is done with it.
func TestBodiesStayInTheFileThatTheJournalWrote(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	bucket, err := files.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	journal := filepath.Join(dir, "journal")
	want, packs := make(map[string]string), make(map[string]Pack)
	write := func(prefix string, max int) {
		j := openJournal(t, journal, JournalOptions{MaxFileBytes: 4 << 10, Bucket: bucket})
		for i := range 20 {
			r := sample()
			r.ID = fmt.Sprintf("%s-%02d", prefix, i)
			r.Bodies = bytes.Repeat([]byte(r.ID), i*10)
			if i > 15 { // written from where they are
				r.Bodies = bytes.Repeat([]byte(r.ID), i*500)
			}
			want[r.ID] = string(r.Bodies)
			if err := j.Emit(ctx, &r); err != nil {
				t.Fatal(err)
			}
		}
		for {
			b, err := j.Next(ctx, max, 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(b.Records) == 0 {
				break
			}
			for _, r := range b.Records {
				if len(r.Bodies) > 0 {
					t.Errorf("%s: its bodies are in memory", r.ID)
				}
				packs[r.ID] = r.Pack
				plain := sample()
				plain.ID, plain.Pack = r.ID, r.Pack
				if !reflect.DeepEqual(plain, r) {
					t.Errorf("%s: read %+v, want %+v", r.ID, r, plain)
				}
			}
			if err := b.Done(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write("first", 3)
	write("again", 7)
	if err := os.RemoveAll(journal); err != nil { // numbers of files begin anew
		t.Fatal(err)
	}
	write("anew", 100)
	for id, bodies := range want {
		p := packs[id]
		if bodies == "" {
			if p != (Pack{}) {
				t.Errorf("%s has no bodies, but a place %+v for them", id, p)
			}
			continue
		}
		from, _, err := bucket.Open(ctx, p.Key, p.Offset, p.Length)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(from)
		if err := errors.Join(err, from.Close()); err != nil || string(got) != bodies {
			t.Errorf("%s: %q %v, want %q", id, got, err, bodies)
		}
	}
	// Records that are forwarded to a queue include their bodies.
	l := newLane()
	sink := &QueueSink{Queue: l, Bucket: bucket}
	r := sample()
	r.Pack = packs["anew-05"]
	if err := sink.Ingest(ctx, []Record{r}); err != nil {
		t.Fatal(err)
	}
	if sent, err := DecodeEvent(l.messages[0].Body); err != nil || string(sent.Bodies) != want["anew-05"] {
		t.Errorf("forwarded with bodies %q, %v", sent.Bodies, err)
	}
	r.Pack = packs["anew-05"]
	if err := (&QueueSink{Queue: l}).Emit(ctx, &r); err == nil {
		t.Error("bodies were lost without an error")
	}
}

// noLinks is a bucket on a file system that has no hard links.
type noLinks struct{ heap }

func (*noLinks) Link(context.Context, string, string) error { return errors.ErrUnsupported }

func TestBatchHoldsAFewMegabytesOfBodies(t *testing.T) {
	j := openJournal(t, t.TempDir(), JournalOptions{Bucket: &noLinks{}})
	r := sample()
	r.Bodies = make([]byte, MaxInlineBody)
	const events = 40
	for range events {
		if err := j.Emit(context.Background(), &r); err != nil {
			t.Fatal(err)
		}
	}
	got := 0
	for got < events {
		b, err := j.Next(context.Background(), 1000, 0)
		if err != nil || len(b.Records) == 0 {
			t.Fatal(len(b.Records), err)
		}
		held := 0
		for i := range b.Records {
			held += len(b.Records[i].Bodies)
		}
		if held != MaxInlineBody*len(b.Records) || held >= maxBatchBytes+MaxInlineBody {
			t.Errorf("a batch of %d records holds %d bytes", len(b.Records), held)
		}
		got += len(b.Records)
	}
}

func BenchmarkJournalEmit(b *testing.B) {
	for _, size := range []int{0, 2 << 10, 100 << 10} {
		b.Run(fmt.Sprintf("bodies=%d", size), func(b *testing.B) {
			j := openJournal(b, b.TempDir(), JournalOptions{})
			r := sample()
			r.Bodies = make([]byte, size)
			b.ReportAllocs()
			for b.Loop() {
				if err := j.Emit(context.Background(), &r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// emitFrom emits each records from each of the writers, numbered writer-record
// and made ready by prepare.
func emitFrom(t *testing.T, j *Journal, writers, each int, prepare func(*Record)) *sync.WaitGroup {
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				r := sample()
				r.ID = fmt.Sprintf("%d-%d", w, i)
				prepare(&r)
				if err := j.Emit(context.Background(), &r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	return &wg
}
