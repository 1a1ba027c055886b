package main

import (
	"fmt"
	"slices"
	"strings"

	"gateway/shared/usage"
)

// byTime returns the records of n requests in the order in which they came. Their ids do
// not always have this order: if two came within one millisecond, and another gateway of
// this process has begun the next millisecond between them, the random part decides.
func (r *running) byTime(n int) (records []usage.Record) {
	r.t.Helper()
	eventually(r.t, func() error {
		records = slices.DeleteFunc(archived(r.t, r.g), func(rec usage.Record) bool { return strings.Contains(rec.Path, "/echo/") })
		if len(records) < n {
			return fmt.Errorf("%d of %d records", len(records), n)
		}
		return nil
	})
	slices.SortFunc(records, func(a, b usage.Record) int { return a.Start.Compare(b.Start) })
	return records
}
