package segment

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gateway/shared/blob"
	"gateway/shared/usage"
)

func TestRetentionTakesDaysWholeAndOnlyThose(t *testing.T) {
	h := newShelf(t)
	h.o.Retention = usage.Retention{Bodies: 2 * oneDay, Records: 5 * oneDay}
	ctx := context.Background()
	day := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	large := strings.Repeat("b", maxInline+1)
	for i := range 3 {
		for j, body := range []string{"small", large} {
			r := made(10*i+j, day.AddDate(0, 0, i).Add(time.Duration(2+j)*time.Hour))
			r.Bodies = []byte(body)
			h.ingest(t, r)
		}
		where := "bodies/org-1/" + day.AddDate(0, 0, i).Format("2006/01/02") + "/05/apart"
		if err := h.bucket.Put(ctx, where, []byte("a body of its own")); err != nil {
			t.Fatal(err)
		}
		if err := h.bucket.Put(ctx, journalPacks+day.AddDate(0, 0, i).Format("2006/01/02")+"/1-0", []byte("pack")); err != nil {
			t.Fatal(err)
		}
	}
	retainAt := func(at time.Time) {
		t.Helper()
		h.compactAt(t, at)
		if err := h.Retain(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// bodies counts the records of a day that still have bodies.
	bodies := func(from int) (have, records int) {
		t.Helper()
		start := day.AddDate(0, 0, from)
		list, err := h.List(ctx, "org-1", start.UnixMicro(), start.Add(oneDay-1).UnixMicro())
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			f, err := h.File(ctx, &list[i])
			if err != nil {
				t.Fatal(err)
			}
			for g := range f.Groups {
				for row := range f.Groups[g].Rows {
					b, err := bodiesOf(ctx, f, g, row)
					if err != nil {
						t.Fatal(err)
					}
					if records++; len(b) > 0 {
						have++
					}
				}
			}
		}
		return have, records
	}
	expect := func(when string, from, wantBodies, wantRecords int) {
		t.Helper()
		if have, records := bodies(from); have != wantBodies || records != wantRecords {
			t.Errorf("%s: day %d has %d records, %d with bodies, want %d and %d", when, from, records, have, wantRecords, wantBodies)
		}
	}
	retainAt(day.AddDate(0, 0, 3).Add(-time.Second))
	expect("a second before the end", 0, 2, 2)
	retainAt(day.AddDate(0, 0, 3))
	expect("two days after its end", 0, 0, 2)
	expect("two days after its end", 1, 2, 2)
	for _, key := range []string{"segments/bodies/org-1/2026/11/02/", "bodies/org-1/2026/11/02/"} {
		if left, err := h.bucket.List(ctx, key, "", 10); err != nil || len(left) > 0 {
			t.Errorf("left under %s: %v, %v", key, left, err)
		}
	}
	if _, err := h.bucket.Get(ctx, "bodies/org-1/2026/11/03/05/apart", 0); err != nil {
		t.Error(err)
	}
	retainAt(day.AddDate(0, 0, 6))
	retainAt(day.AddDate(0, 0, 6).Add(gonePeriod + time.Second))
	expect("five days after its end", 0, 0, 0)
	expect("five days after its end", 1, 0, 2)
	if _, err := h.bucket.Get(ctx, journalPacks+"2026/11/02/1-0", 0); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("the journal's pack of the first day: %v", err)
	}
	retainAt(day.AddDate(0, 0, 30))
	retainAt(day.AddDate(0, 0, 30).Add(gonePeriod + time.Second))
	if rows := h.rows(t, manifests("org-1")); len(rows) > 0 {
		t.Errorf("manifests are left: %v", rows)
	}
	if rows := h.rows(t, dueRows()); len(rows) > 0 {
		t.Errorf("notes are left: %v", rows)
	}
	left, err := h.bucket.List(ctx, "", "", 10)
	if err != nil || len(left) > 0 {
		t.Errorf("objects are left: %v, %v", left, err)
	}
}

func TestWithoutRetentionEverythingStays(t *testing.T) {
	h := newShelf(t)
	start := time.Date(2026, 11, 2, 2, 0, 0, 0, time.UTC)
	h.ingest(t, made(1, start))
	h.compactAt(t, start.AddDate(20, 0, 0))
	if err := h.Retain(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(h.all(t)) != 1 {
		t.Error("a segment is gone")
	}
}

func bodiesOf(ctx context.Context, f *File, group, row int) ([]byte, error) {
	bodies, err := f.Bodies(ctx, group)
	if err != nil {
		return nil, err
	}
	return bodies.Row(ctx, row)
}
