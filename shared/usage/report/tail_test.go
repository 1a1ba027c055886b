package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/store"
	"gateway/shared/usage"
)

var tailed = store.Scope{Org: "org-1", Workspace: "ws-1"}

// ended is a record that has just ended.
func (h *fixture) ended(duration time.Duration) usage.Record {
	start := h.now.Add(-duration)
	return usage.Record{ID: ulid.MustNewDefault(start).String(), Start: start, Org: tailed.Org, Workspace: tailed.Workspace, Provider: "openai", ClientStatus: 200, Duration: duration}
}

func (h *fixture) next(t *testing.T, tail *Tail, most int) (ids []string, mark string, more int) {
	t.Helper()
	fresh, more, err := tail.Next(context.Background(), h.now, &Filter{}, most)
	if err != nil {
		t.Fatal(err)
	}
	for i := range fresh {
		ids, mark = append(ids, fresh[i].Record.ID), fresh[i].Mark
	}
	return ids, mark, more
}

func wantIDs(t *testing.T, what string, got []string, want ...usage.Record) {
	t.Helper()
	ids := make([]string, len(want))
	for i := range want {
		ids[i] = want[i].ID
	}
	slices.Sort(got)
	slices.Sort(ids)
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		t.Errorf("%s: got %v, want %v", what, got, ids)
	}
}

// Merged records appear once, read or not; records from before the tail began do not appear at
// all.
func TestATailGivesEachRecordOnce(t *testing.T) {
	h := newFixture(t)
	before := []usage.Record{h.ended(time.Second), h.ended(time.Second), h.ended(time.Second), h.ended(time.Second)}
	for _, r := range before {
		h.ingest(t, r)
	}
	h.now = h.now.Add(time.Second)
	tail := h.reader.Tail(tailed, h.now, "")
	long, short, foreign := h.ended(20*time.Minute), h.ended(0), h.ended(0)
	foreign.Workspace = "ws-2"
	h.ingest(t, long)
	h.ingest(t, short, foreign)
	got, _, _ := h.next(t, tail, 10)
	wantIDs(t, "kept since", got, long, short)
	h.now = h.now.Add(20 * time.Second)
	unread := h.ended(time.Second)
	h.ingest(t, unread, short) // short is delivered again
	h.now = h.now.Add(20 * time.Second)
	h.compact(t)
	got, _, _ = h.next(t, tail, 10)
	wantIDs(t, "merged before it was read", got, unread)
	got, _, _ = h.next(t, tail, 10)
	wantIDs(t, "nothing new", got)
}

func TestATailGoesOnWhereAnotherEnded(t *testing.T) {
	h := newFixture(t)
	tail := h.reader.Tail(tailed, h.now, "")
	first := h.ended(0)
	h.ingest(t, first)
	got, mark, _ := h.next(t, tail, 10)
	wantIDs(t, "first", got, first)
	h.now = h.now.Add(time.Minute)
	second, third := h.ended(0), h.ended(0)
	h.ingest(t, second)
	h.ingest(t, third)
	got, _, _ = h.next(t, h.reader.Tail(tailed, h.now, mark), 10)
	wantIDs(t, "meanwhile", got, second, third)
	for _, bad := range []string{"x", "", strings.Repeat("A", 400), "AAAA", "_____________"} {
		h.now = h.now.Add(time.Second)
		got, _, _ = h.next(t, h.reader.Tail(tailed, h.now, bad), 10)
		wantIDs(t, "a mark that is none", got)
	}
	h.now = h.now.Add(time.Hour)
	got, _, _ = h.next(t, h.reader.Tail(tailed, h.now, mark), 10)
	wantIDs(t, "too long ago", got)
}

func TestATailDropsWhatIsTooMuch(t *testing.T) {
	h := newFixture(t)
	tail := h.reader.Tail(tailed, h.now, "")
	var all []usage.Record
	for range 7 {
		all = append(all, h.ended(0))
	}
	h.ingest(t, all[:3]...)
	h.ingest(t, all[3:]...)
	got, _, more := h.next(t, tail, 5)
	if len(got) != 5 || more != 2 {
		t.Errorf("%d given, %d dropped", len(got), more)
	}
	got, _, more = h.next(t, tail, 5)
	if len(got)+more != 0 {
		t.Errorf("then %d given, %d dropped", len(got), more)
	}
}

func FuzzMark(f *testing.F) {
	f.Add("AABBccdd__--xxyyzz")
	f.Add(tailMark{1, "name"}.String())
	f.Fuzz(func(t *testing.T, s string) {
		if m, ok := parseMark(s); ok && m.String() != s {
			t.Errorf("%q is read as %v", s, m)
		}
	})
}
