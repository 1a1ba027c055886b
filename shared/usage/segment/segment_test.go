package segment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/shared/store"
)

func TestOneBatchDeliveredAgainIsOneSegment(t *testing.T) {
	h := newShelf(t)
	records := several(50, noon)
	h.ingest(t, records...)
	slices.Reverse(records)
	h.ingest(t, records...)
	list := h.all(t)
	if len(list) != 1 || list[0].Records != 50 || list[0].Tier != TierBatch {
		t.Fatalf("%+v", list)
	}
	if keys := h.rows(t, store.Scope{Org: "org-1"}.Partition("SEG", list[0].Name)); !slices.Equal(keys, []string{"cube", "data"}) {
		t.Errorf("objects of the segment: %v", keys)
	}
}

func TestSegmentsBelongToOneHourAndOrganisation(t *testing.T) {
	h := newShelf(t)
	a, b, c := made(1, noon.Add(-time.Millisecond)), made(2, noon), made(3, noon)
	c.Org = "org-2"
	h.ingest(t, a, b, c)
	list := h.all(t)
	if len(list) != 2 || list[0].Hour+1 != list[1].Hour {
		t.Fatalf("%+v", list)
	}
	other, err := h.List(context.Background(), "org-2", 0, math.MaxInt64/4)
	if err != nil || len(other) != 1 || other[0].Records != 1 {
		t.Errorf("%+v %v", other, err)
	}
}

func TestUnstorableRecordsDoNotStopTheOthers(t *testing.T) {
	h := newShelf(t)
	good := made(1, noon)
	ownerless, nameless, timeless, dated := made(2, noon), made(3, noon), made(4, noon), made(5, noon)
	ownerless.Org, nameless.ID, timeless.Start, timeless.ID, dated.Start = "", "", time.Time{}, "no ulid", time.Time{}
	h.ingest(t, ownerless, nameless, timeless, dated, good)
	if len(h.bad) != 3 || !errors.Is(h.bad[0], ErrNoOwner) || !errors.Is(h.bad[2], ErrNoTime) {
		t.Errorf("%v", h.bad)
	}
	if list := h.all(t); len(list) != 1 || list[0].Records != 2 {
		t.Errorf("%+v", list)
	}
}

func BenchmarkIngest(b *testing.B) {
	for _, bodies := range []int{0, 2000} {
		b.Run(fmt.Sprintf("records=1000/bodies=%d", bodies), func(b *testing.B) {
			h := newShelf(b)
			records := several(1000, noon)
			for i := range records {
				records[i].Bodies = []byte(strings.Repeat("x", bodies))
				records[i].TraceID = fmt.Sprintf("%032x", i*7919)
			}
			b.ReportAllocs()
			round := 0
			for b.Loop() {
				b.StopTimer()
				round++
				for i := range records {
					records[i].ID = made(round*1000+i, records[i].Start).ID
				}
				b.StartTimer()
				if err := h.Ingest(context.Background(), records); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Texts that are not UTF-8, such as a provider's name of its model, are stored as valid UTF-8,
// by which they are found; the original record is unchanged.
func TestTextsAreStoredAsUTF8(t *testing.T) {
	t.Parallel()
	h := newShelf(t)
	r := made(1, noon)
	own := map[string]string{"k\xff": "v\xfe", "nul": "\x00"}
	r.Model, r.EndUser, r.TraceID, r.Metadata = "g\xffpt", "\xc3(", "t\xff", own
	h.ingest(t, r)
	for _, m := range h.all(t) {
		f, err := h.File(context.Background(), &m)
		if err != nil {
			t.Fatal(err)
		}
		for d, want := range map[Dim]string{Model: "g\uFFFDpt", EndUser: "\uFFFD(", TraceID: "t\uFFFD"} {
			if got, err := f.Strings(context.Background(), 0, d); err != nil || got.At(0) != want {
				t.Errorf("%s: %q, %v", Column(d), got.At(0), err)
			}
		}
		for key, want := range map[string]string{"k\uFFFD": "v\uFFFD", "nul": "\x00"} {
			if got, err := f.Metadata(context.Background(), 0, key); err != nil || got.At(0) != want {
				t.Errorf("%q: %v, %v", key, got, err)
			}
		}
	}
	if own["k\xff"] != "v\xfe" || len(own) != 2 {
		t.Errorf("%q", own)
	}
}
