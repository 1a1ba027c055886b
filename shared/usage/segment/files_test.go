package segment

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/shared/store"
	"gateway/shared/usage"
)

// visible are the records in files of the shelf, by id.
func (h *shelf) visible(t *testing.T) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for _, m := range h.all(t) {
		if !m.InFile() {
			continue
		}
		key := m.blobKey(dataObject)
		if !strings.HasPrefix(key, FilesPrefix(m.Org)) || key[len(key)-FileIDEnd:len(key)-len(".parquet")] != m.FileID() {
			t.Fatalf("%s is not below %s, or not of id %s", key, FilesPrefix(m.Org), m.FileID())
		}
		if _, err := h.bucket.Get(context.Background(), key, 0); err != nil {
			t.Fatal(err)
		}
		f, err := h.File(context.Background(), &m)
		if err != nil {
			t.Fatal(err)
		}
		for g := range f.Groups {
			ids, err := f.Strings(context.Background(), g, ID)
			if err != nil {
				t.Fatal(err)
			}
			for i := range f.Groups[g].Rows {
				seen[ids.At(i)]++
			}
		}
	}
	return seen
}

// With Files every record of a past hour is in a file, however few there are and however late
// they arrive; wherever the compactor is killed no record is lost, and at the end each is in
// the files once.
func TestEveryRecordOfAnHourThatIsOverIsInAFile(t *testing.T) {
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, writes := range []int{0, 1, 2, 4, 7, 11} {
				h := newShelf(t)
				if open != nil {
					if writes%2 == 1 { // each shelf costs a server
						continue
					}
					h.store = open(t)
				}
				o := Options{Files: true, MinMerge: CheapestMinMerge, Clock: func() time.Time { return h.now }}
				h.Archive = New(h.store, h.bucket, o)
				want := map[string]int{}
				ingest := func(records ...usage.Record) {
					h.ingest(t, records...)
					for _, r := range records {
						want[r.ID] = 1
					}
				}
				midnight := noon.Truncate(24 * time.Hour)
				ingest(made(1, midnight.Add(time.Hour)))                                                        // alone in its hour
				ingest(made(2, midnight.Add(2*time.Hour)), made(3, midnight.Add(2*time.Hour+time.Minute)))      // one batch
				ingest(made(4, midnight.Add(5*time.Hour)))                                                      //
				ingest(made(5, midnight.Add(5*time.Hour+time.Minute)))                                          // two batches
				ingest(made(6, midnight.Add(11*time.Hour+59*time.Minute)))                                      // the hour that has just ended
				ingest(made(7, midnight.Add(-30*time.Hour)))                                                    // another day
				h.ingest(t, made(2, midnight.Add(2*time.Hour)), made(3, midnight.Add(2*time.Hour+time.Minute))) // comes twice
				if n := len(h.visible(t)); n != 0 {
					t.Fatalf("%d records of small batches are in files already", n)
				}
				compact := func() { h.compactByLives(t, o, writes, len(want)) }
				check := func(when string) {
					t.Helper()
					if got := h.visible(t); !maps.Equal(got, want) {
						t.Fatalf("%s: files have %v, want %v", when, got, slices.Sorted(maps.Keys(want)))
					}
				}
				h.now = noon.Add(hourGrace)
				compact()
				compact() // new notes
				check("five minutes after the hour")
				ingest(made(8, midnight.Add(2*time.Hour+2*time.Minute)))
				ingest(made(9, midnight.Add(-31*time.Hour)))
				compact()
				compact()
				check("late records")
				h.now = midnight.Add(26 * time.Hour)
				compact()
				compact()
				check("the day after")
			}
		})
	}
}

// What a workspace's days leave of a segment stays in a file.
func TestThinnedSegmentsStayInFiles(t *testing.T) {
	t.Parallel()
	h := newShelf(t)
	h.Archive = New(h.store, h.bucket, Options{Files: true, Clock: func() time.Time { return h.now },
		WorkspaceRetention: func(context.Context, store.Scope) (usage.WorkspaceRetention, error) {
			return usage.WorkspaceRetention{Of: map[string]int{"ws-9": 1}}, nil
		}})
	stays, goes := made(1, noon), made(2, noon.Add(time.Second))
	goes.Workspace = "ws-9"
	h.ingest(t, stays, goes)
	for _, at := range []time.Time{noon.Add(2 * time.Hour), noon.Add(14 * time.Hour), noon.AddDate(0, 0, 4)} {
		h.compactAt(t, at)
		if err := h.Retain(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.visible(t); len(got) != 1 || got[stays.ID] != 1 {
		t.Errorf("files have %v", got)
	}
}
