package audit

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// Bounds of one reading.
const (
	maxTotal = 10_000 // totals are exact up to here
	maxRead  = 50_000 // rows looked at for one response
)

// Filter selects records. Empty fields select all; the others match exactly,
// URI as a prefix.
type Filter struct {
	Start, End   time.Time // both included
	Method       string
	URI          string
	RequestID    string
	UserID       string
	UserType     string
	WorkspaceID  string
	StatusCode   int
	ResourceType string
	Action       string
	ClientIP     string
	Country      string

	Page, Size int    // zero-based page; Size 0 requests only the total
	Cursor     string // Next of an earlier Result; instead of Page
}

// Result is one page of records, newest first.
type Result struct {
	Records []Entry
	// Total counts all records of the filter over all pages; with a Cursor, those after it.
	// If TotalIsLowerBound is set, there may be more.
	Total             int
	TotalIsLowerBound bool
	// Next continues after the last record of this page; empty at the end.
	Next string
}

// Reader reads the audit table.
type Reader struct {
	table store.Table
	now   func() time.Time
}

// NewReader makes a Reader over the audit table of s.
func NewReader(s store.Store, now func() time.Time) *Reader {
	return &Reader{table: s.Table(store.Audit), now: now}
}

// oldest is earlier than the first record of any installation. It bounds how many months
// are read.
var oldest = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// span is the part of the filter's time in which there can be records.
func (r *Reader) span(f *Filter) (from, until time.Time) {
	from, until = f.Start.UTC(), r.now().UTC().Add(24*time.Hour)
	if from.Before(oldest) {
		from = oldest
	}
	if !f.End.IsZero() && f.End.Before(until) {
		until = f.End.UTC()
	}
	return from, until
}

// List gives one page of an organization's records. A record appears once the worker has
// written it. Errors: fault.Invalid for a bad cursor.
func (r *Reader) List(ctx context.Context, org string, f Filter) (Result, error) {
	from, until := r.span(&f)
	if f.Cursor != "" {
		id, err := ulid.ParseStrict(f.Cursor)
		if err != nil || id.String() != f.Cursor { // in lower case it would sort after all records
			return Result{}, fault.Invalid("cursor", "is not a cursor of this list")
		}
		if at := ulid.Time(id.Time()).UTC(); at.Before(until) {
			until = at
		}
		f.Page = 0
	}
	w := walk{f: f, skip: f.Page * f.Size}
	if until.Before(from) {
		return Result{Records: []Entry{}}, nil
	}
	lo := ulid.MustNew(ulid.Timestamp(from), zeroEntropy{}).String()
	hi := ulid.MustNew(ulid.Timestamp(until), lastEntropy{}).String()
	if f.Cursor != "" && f.Cursor < hi {
		hi = f.Cursor
	}
	for month := monthOf(until); !month.Before(monthOf(from)) && !w.full(); month = month.AddDate(0, -1, 0) {
		if err := r.walkMonth(ctx, org, month, lo, hi, &w); err != nil {
			return Result{}, err
		}
	}
	out := Result{Records: w.page, Total: w.total, TotalIsLowerBound: w.full()}
	switch {
	case w.more || (w.full() && f.Size > 0 && len(w.page) == f.Size):
		out.Next = w.page[len(w.page)-1].ID
	case w.full() && f.Size > 0 && f.Page == 0:
		out.Next = w.last
	}
	if out.Records == nil {
		out.Records = []Entry{}
	}
	return out, nil
}

func monthOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// zeroEntropy makes the first ULID of a millisecond.
type zeroEntropy struct{}

func (zeroEntropy) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// walk is the state of one reading over several months.
type walk struct {
	f     Filter
	skip  int
	page  []Entry
	total int
	read  int
	more  bool   // there are matches after the page
	last  string // id of the row read last
}

func (w *walk) full() bool { return w.total >= maxTotal || w.read >= maxRead }

func (r *Reader) walkMonth(ctx context.Context, org string, month time.Time, lo, hi string, w *walk) error {
	q := store.Query{Partition: partition(org, month), From: lo, To: hi, Reverse: true}
	for !w.full() {
		page, err := r.table.Query(ctx, q)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return err
			}
			return fault.Unavailable(err)
		}
		for _, row := range page.Rows {
			if w.full() {
				return nil
			}
			if err := w.take(row); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return nil
		}
		q.After = page.Next
	}
	return nil
}

func (w *walk) take(row store.Row) error {
	if row.Key.SK() == w.f.Cursor {
		return nil
	}
	w.read++
	w.last = row.Key.SK()
	e, err := decodeEntry(row.Item.Bytes("entry"))
	if err != nil {
		return err
	}
	if !w.f.matches(&e) {
		return nil
	}
	w.total++
	switch {
	case w.total <= w.skip:
	case len(w.page) < w.f.Size:
		w.page = append(w.page, e)
	case w.f.Size > 0:
		w.more = true
	}
	return nil
}

func (f *Filter) matches(e *Entry) bool {
	same := func(want, got string) bool { return want == "" || want == got }
	return (f.Start.IsZero() || !e.Timestamp.Before(f.Start)) && (f.End.IsZero() || !e.Timestamp.After(f.End)) &&
		same(f.Method, e.Method) && strings.HasPrefix(e.URI, f.URI) && same(f.RequestID, e.RequestID) &&
		(same(f.UserID, e.UserID) || f.UserID == e.APIKeyID) && same(f.UserType, e.UserType) && same(f.WorkspaceID, e.WorkspaceID) &&
		(f.StatusCode == 0 || f.StatusCode == e.StatusCode) && same(f.ResourceType, e.ResourceType) &&
		same(f.Action, e.Action) && same(f.ClientIP, e.ClientIP) && same(f.Country, e.Country)
}
