package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"gateway/shared/store"
	"gateway/shared/usage"
)

// From batches to a minute's segment, an hour's and a day's; nothing is lost and nothing
// remains.
func TestCompactionMergesTierByTier(t *testing.T) {
	h := newShelf(t)
	want := make(map[string]string)
	var batches [][]usage.Record
	for k := range 12 {
		records := several(20, noon.Add(time.Duration(k)*10*time.Minute))
		for i := range records {
			records[i].ID = made(k*100+i, records[i].Start).ID
			if i%3 == 0 {
				records[i].Bodies = []byte("bodies of " + records[i].ID)
			}
			want[records[i].ID] = string(records[i].Bodies)
		}
		// Each batch repeats records of the one before in its hour.
		if k%6 > 0 {
			records = append(records, batches[k-1][:5]...)
		}
		batches = append(batches, records)
		h.now = records[0].Start.Add(time.Second)
		h.ingest(t, records...)
	}
	check := func(when string, tiers ...Tier) {
		t.Helper()
		if got := h.contents(t); len(got) != len(want) {
			t.Fatalf("%s: %d records, want %d", when, len(got), len(want))
		} else {
			for id, bodies := range want {
				if b, ok := got[id]; !ok || b != bodies {
					t.Fatalf("%s: %s has bodies %q, want %q", when, id, b, bodies)
				}
			}
		}
		var have []Tier
		for _, m := range h.all(t) {
			have = append(have, m.Tier)
		}
		if !slices.Equal(have, tiers) {
			t.Fatalf("%s: tiers %v, want %v", when, have, tiers)
		}
	}
	check("as written", make([]Tier, 12)...)
	h.compactAt(t, noon.Add(119*time.Minute+59*time.Second)) // the first hour is over, the second one lasts
	check("second hour lasting", TierHour, TierMinute)
	h.compactAt(t, noon.Add(2*time.Hour+5*time.Minute))
	check("hours over", TierHour, TierMinute)
	h.compactAt(t, noon.Add(14*time.Hour))
	check("day over", TierDay)
	if m := h.all(t)[0]; m.Records != int64(len(want)) {
		t.Errorf("the day has %d records, want %d", m.Records, len(want))
	}
	// A late duplicate delivery is dropped.
	h.ingest(t, batches[3]...)
	h.compactAt(t, noon.Add(15*time.Hour))
	check("after a late delivery", TierDay)
	h.compactAt(t, noon.Add(16*time.Hour))
	if due := h.rows(t, store.System("USAGE-DUE")); len(due) != 2 || due[0][0] != 'B' || due[1][0] != 'R' {
		t.Errorf("left are %v, want the two notes of retention", due)
	}
	check("swept", TierDay)
	keys, err := h.bucket.List(context.Background(), "", "", 100)
	if err != nil || len(keys) != 0 {
		t.Errorf("the bucket has %v %v", keys, err)
	}
}

// repeating is a store that repeats conditional writes, as a client does after losing the first
// response.
type repeating struct{ store.Store }

type repeatingTable struct{ store.Table }

func (s repeating) Table(name store.TableName) store.Table {
	return repeatingTable{s.Store.Table(name)}
}

func (s repeating) Transact(ctx context.Context, actions ...store.Action) error {
	if err := s.Store.Transact(ctx, actions...); err != nil {
		return err
	}
	return s.Store.Transact(ctx, actions...)
}

func (t repeatingTable) Put(ctx context.Context, row store.Row, conds ...store.Cond) error {
	if err := t.Table.Put(ctx, row, conds...); err != nil {
		return err
	}
	return t.Table.Put(ctx, row, conds...)
}

func TestWritesThatAreRepeatedLoseNothing(t *testing.T) {
	h := newShelf(t)
	h.Archive = New(repeating{h.store}, h.bucket, Options{Clock: func() time.Time { return h.now }})
	for i := range 6 {
		h.ingest(t, made(i, noon.Add(time.Duration(i)*time.Second)))
	}
	h.compactAt(t, noon.Add(time.Minute))
	h.compactAt(t, noon.Add(2*time.Hour))
	h.Archive = New(h.store, h.bucket, Options{}) // with nothing in memory
	if got := h.contents(t); len(got) != 6 || len(h.all(t)) != 1 {
		t.Errorf("%d records in %d segments", len(got), len(h.all(t)))
	}
}

func TestMergedSegmentsStayReadableForAWhile(t *testing.T) {
	h := newShelf(t)
	for i := range 5 {
		h.ingest(t, made(i, noon.Add(time.Duration(i)*time.Second)))
	}
	before := h.all(t)
	h.compactAt(t, noon.Add(time.Minute))
	if len(h.all(t)) != 1 {
		t.Fatal("nothing was merged")
	}
	fresh := New(h.store, h.bucket, Options{})
	if _, err := fresh.Cube(context.Background(), &before[0]); err != nil {
		t.Errorf("a reader with an old list: %v", err)
	}
	h.compactAt(t, noon.Add(12*time.Minute))
	if _, err := New(h.store, h.bucket, Options{}).Cube(context.Background(), &before[0]); !errors.Is(err, ErrDeleted) {
		t.Errorf("after the sweep: %v", err)
	}
}

func TestBodiesThatLieInAnObjectAlreadyStayThere(t *testing.T) {
	h := newShelf(t)
	if err := h.bucket.Put(context.Background(), "bodies/journal/1-0", []byte("..one..two")); err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string)
	for i, p := range []usage.Pack{{Key: "bodies/journal/1-0", Offset: 2, Length: 3}, {}, {Key: "bodies/journal/1-0", Offset: 7, Length: 3}} {
		r := made(i, noon.Add(time.Duration(i)*time.Second))
		if r.Pack = p; p.Key == "" {
			r.Bodies = []byte("own")
		}
		want[r.ID] = []string{"one", "own", "two"}[i]
		h.ingest(t, r)
	}
	check := func(when string) {
		t.Helper()
		got := h.contents(t)
		for id, bodies := range want {
			if got[id] != bodies {
				t.Errorf("%s: %s has bodies %q, want %q", when, id, got[id], bodies)
			}
		}
	}
	check("ingested")
	h.compactAt(t, noon.Add(3*time.Hour))
	if n := len(h.all(t)); n != 1 {
		t.Errorf("%d segments after compaction", n)
	}
	check("compacted")
}

// A batch may bring more bodies than are gathered in memory at once.
func TestManyBodiesBecomeSeveralPacks(t *testing.T) {
	h := newShelf(t)
	records := several(10, noon)
	for i := range records {
		records[i].Bodies = bytes.Repeat([]byte{byte(i + 1)}, maxPack/3+1)
	}
	h.ingest(t, records...)
	if n := len(h.all(t)); n != 4 {
		t.Errorf("%d segments", n)
	}
	got := h.contents(t)
	for i := range records {
		if got[records[i].ID] != string(records[i].Bodies) {
			t.Errorf("record %d has other bodies", i)
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	const batches, size = 90, 250
	var at, live, grown uint64
	for b.Loop() {
		b.StopTimer()
		h := newShelf(b)
		for k := range batches {
			records := several(size, noon.Add(time.Duration(k)*100*time.Millisecond))
			for i := range records {
				r := &records[i]
				r.ID = made(k*size+i, r.Start).ID
				r.TraceID = fmt.Sprintf("%032x", rand.Uint64())
				r.Pack = usage.Pack{Key: "bodies/journal/2026/11/22/0000000000000001-0", Offset: int64(k*size+i) * 4000, Length: 3000}
			}
			h.ingest(b, records...)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		live = m.HeapAlloc
		old := debug.SetGCPercent(10)
		stop, done := make(chan bool), make(chan bool)
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
					runtime.ReadMemStats(&m)
					at = max(at, m.HeapAlloc)
				}
			}
		}()
		b.StartTimer()
		h.compactAt(b, noon.Add(time.Minute))
		b.StopTimer()
		close(stop)
		<-done
		debug.SetGCPercent(old)
		grown = max(grown, at-live)
		list := h.all(b)
		if len(list) != 1 {
			b.Fatalf("%d segments", len(list))
		}
		b.ReportMetric(float64(list[0].Size)/batches/size, "bytes/record")
		b.StartTimer()
	}
	b.ReportMetric(float64(grown)/(1<<20), "MiB-grown")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batches/size, "ns/record")
}

func TestOneMergeTakesABoundedNumberOfRecords(t *testing.T) {
	for _, c := range []struct {
		name       string
		count      int
		each       int64
		over       bool
		want, rest int
	}{
		{name: "a quiet minute is merged whole", count: 60, each: 10, want: 60},
		{name: "many batches are bounded by their number", count: 200, each: 10, want: maxInputs, rest: maxInputs},
		{name: "full batches are bounded by their records", count: 80, each: 256, want: 32, rest: 32},
		{name: "large batches still make progress", count: 10, each: maxMinute, want: minMinute, rest: minMinute},
		{name: "an hour that is over is merged whole", count: 80, each: maxMinute, over: true, want: 80},
		{name: "and its inputs are bounded by their number", count: 91, each: maxMinute, over: true, want: maxInputs, rest: 1},
	} {
		list := make([]Manifest, c.count)
		for i := range list {
			list[i].Records = c.each
		}
		n := inputs(list, c.over)
		if n != c.want {
			t.Errorf("%s: %d of %d", c.name, n, c.count)
		} else if rest := inputs(list[n:], c.over); rest != c.rest {
			t.Errorf("%s: then %d of %d", c.name, rest, c.count-n)
		}
	}
}

// TestFewerMergesOfAnHourThatLasts: if merging is expensive, few segments wait; the hour is
// nevertheless merged completely when it is over.
func TestFewerMergesOfAnHourThatLasts(t *testing.T) {
	h := newShelf(t)
	h.Archive = New(h.store, h.bucket, Options{MinMerge: 6, Clock: func() time.Time { return h.now }})
	segments := func(want int) {
		t.Helper()
		h.compactAt(t, h.now)
		list := h.all(t)
		var records int64
		for _, m := range list {
			records += m.Records
		}
		if len(list) != want || records%3 != 0 || records == 0 {
			t.Errorf("%d segments of %d records, want %d", len(list), records, want)
		}
	}
	for b := range 7 {
		h.ingest(t, several(3, noon.Add(time.Duration(b)*time.Minute))...)
		h.now = noon.Add(time.Duration(b+1) * time.Minute)
		segments([]int{1, 2, 3, 4, 5, 1, 2}[b])
	}
	h.now = noon.Add(2 * time.Hour)
	segments(1)
}
