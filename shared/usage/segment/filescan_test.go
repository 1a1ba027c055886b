package segment

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"gateway/shared/store"
	"gateway/shared/usage"
)

// An archive with segments that were merged while small ones were in the store has every record
// in a file, once, when Files is set: a day in one segment, a day that is too large for it, and
// an hour that was merged already. This holds wherever the compactor is killed, and no old
// object remains.
func TestSegmentsMergedWithoutFilesGetThem(t *testing.T) {
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, writes := range []int{1 << 20, 0, 1, 3, 5} {
				h := newShelf(t)
				if open != nil {
					if writes < 1<<20 { // each shelf costs a server
						continue
					}
					h.store = open(t)
				}
				withoutFiles(t, h)
				before := h.all(t)
				want := map[string]int{}
				for id := range h.contents(t) {
					want[id] = 1
				}
				if n := len(h.visible(t)); n != 0 || len(want) != 13 {
					t.Fatalf("%d of %d records are in files already", n, len(want))
				}
				o := Options{Files: true, MaxDayRecords: 1, Clock: func() time.Time { return h.now }}
				h.compactByLives(t, o, writes, len(want))
				h.compactAt(t, h.now.Add(time.Minute))
				if got := h.visible(t); !maps.Equal(got, want) {
					t.Fatalf("%d writes: files have %v, want %v", writes, got, slices.Sorted(maps.Keys(want)))
				}
				h.compactAt(t, h.now.Add(gonePeriod+time.Minute))
				h.compactAt(t, h.now.Add(gonePeriod+time.Minute))
				for _, m := range before {
					if rows := h.rows(t, store.Scope{Org: m.Org}.Partition("SEG", m.Name)); len(rows) > 0 {
						t.Errorf("%d writes: of %s are left %v", writes, m.Name, rows)
					}
				}
			}
		})
	}
}

// withoutFiles fills three days as an archive without Files does, and merges them.
func withoutFiles(t *testing.T, h *shelf) {
	t.Helper()
	h.Archive = New(h.store, h.bucket, Options{MaxDayRecords: 4, Clock: func() time.Time { return h.now }})
	day := noon.Truncate(24*time.Hour).AddDate(0, 0, -9)
	n := 0
	for _, at := range []time.Time{day, day.Add(time.Hour), day.Add(25 * time.Hour), day.Add(30 * time.Hour), day.Add(31 * time.Hour), day.Add(60 * time.Hour)} {
		of := map[bool]int{false: 1, true: 3}[at.Sub(day) >= 25*time.Hour && at.Sub(day) < 48*time.Hour]
		var batch []usage.Record
		for range of {
			n++
			r := made(n, at.Add(time.Duration(n)*time.Second))
			r.Bodies = []byte(r.ID)
			batch = append(batch, r)
		}
		if at.Sub(day) != 31*time.Hour { // in two batches
			h.ingest(t, batch[0])
			batch = batch[1:]
		}
		if len(batch) > 0 {
			h.ingest(t, batch...)
		}
	}
	h.ingest(t, made(99, day.Add(61*time.Hour)))
	for range 3 {
		h.compactAt(t, noon)
	}
	tiers := map[Tier]int{}
	for _, m := range h.all(t) {
		tiers[m.Tier]++
	}
	if tiers[TierBatch] == 0 || tiers[TierHour] == 0 || tiers[TierDay] == 0 {
		t.Fatalf("segments by tier: %v", tiers)
	}
	for _, key := range h.rows(t, dueRows()) {
		if key[0] == 'H' || key[0] == 'D' {
			t.Fatalf("%s is due still", key)
		}
	}
}

// A scan continues where the last one ended, over the organizations, and pauses at its end.
func TestALookGoesOn(t *testing.T) {
	t.Parallel()
	h := newShelf(t)
	for _, org := range []string{"org-1", "org-2", "org-3"} {
		for day := range 4 {
			r := made(day, noon.AddDate(0, 0, day-9))
			r.Org = org
			h.ingest(t, r)
		}
	}
	for range 3 {
		h.compactAt(t, noon)
	}
	due := func() (n int) {
		for _, key := range h.rows(t, dueRows()) {
			if key[0] == 'D' || key[0] == 'H' {
				n++
			}
		}
		return n
	}
	if n := due(); n != 0 {
		t.Fatalf("%d notes", n)
	}
	h.Archive = New(h.store, h.bucket, Options{Files: true, Clock: func() time.Time { return h.now }})
	calls, last := 0, 0
	for ; calls < 99; calls++ {
		if err := (fileScan{h.Archive, 2}).scan(context.Background(), h.now); err != nil {
			t.Fatal(err)
		}
		n := due()
		if n > last+2 {
			t.Fatalf("call %d noted %d", calls, n-last)
		}
		last = n
		item, _, err := h.store.Table(store.Usage).Get(context.Background(), scanKey(), true)
		if err != nil {
			t.Fatal(err)
		}
		if item.Int("rest") > 0 {
			break
		}
	}
	if last != 12 || calls < 6 {
		t.Errorf("%d days are noted in %d calls", last, calls)
	}
	h.compactAt(t, noon)
	for _, m := range h.all(t) { // of one of them
		if !m.InFile() {
			t.Errorf("%s is in no file", m.Name)
		}
	}
}
