package report

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gateway/shared/store"
	"gateway/shared/usage/segment"
)

// groupings are what records can be grouped by, by their name in the API.
var groupings = map[string]segment.Dim{
	"ai_service": segment.Provider, "model": segment.Model, "status_code": segment.Status, "api_key": segment.Key, "config": segment.Config,
	"workspace": segment.WorkspaceSlug, "provider": segment.ProviderSlug, "prompt": segment.Prompt,
	"users": segment.EndUser, "ai-models": segment.Model,
}

// Groupings lists what GroupQuery.By may be, in order.
func Groupings() []string {
	var names []string
	for name := range groupings {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// columnOf computes the columns of a group's row, by their name in the API.
var columnOf = map[string]func(s *Stats) any{
	"requests":          func(s *Stats) any { return s.Requests },
	"cost":              func(s *Stats) any { return Cents(s.Cost) },
	"total_tokens":      func(s *Stats) any { return s.TokensIn + s.TokensOut },
	"avg_tokens":        func(s *Stats) any { return ratio(float64(s.TokensIn+s.TokensOut), s.Requests) },
	"avg_input_tokens":  func(s *Stats) any { return ratio(float64(s.TokensIn), s.Requests) },
	"avg_output_tokens": func(s *Stats) any { return ratio(float64(s.TokensOut), s.Requests) },
	"avg_latency":       func(s *Stats) any { return s.AvgLatency() },
	"p95_latency":       func(s *Stats) any { return s.Latency(0.95) },
	"p99_latency":       func(s *Stats) any { return s.Latency(0.99) },
	"success_rate":      func(s *Stats) any { return ratio(100*float64(s.Requests-s.Errors), s.Requests) },
	"error_count":       func(s *Stats) any { return s.Errors },
	"cache_hit_rate":    func(s *Stats) any { return ratio(100*float64(s.Hits+s.Semantic), s.Requests) },
	"last_seen":         func(s *Stats) any { return s.Last },
	"first_seen":        func(s *Stats) any { return s.First },
}

// Columns lists the columns of groups, in order.
func Columns() []string {
	var names []string
	for name := range columnOf {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// GroupQuery asks for groups.
type GroupQuery struct {
	Filter
	By          string // one of Groupings; empty with MetadataKey
	MetadataKey string
	Columns     []string // of Columns: those that will be read
	OrderBy     string   // one of Columns; requests when empty
	Ascending   bool
	Limit       int // rows of a page; 0: all
	Offset      int // rows before it
}

// Group is one row: the records that share a value. Records without a value are
// in no group.
type Group struct {
	Value string
	Stats
}

// Column computes a column of Columns: a number, or a time.Time for first_seen
// and last_seen; ok is false for another name.
func (g *Group) Column(name string) (value any, ok bool) {
	f, ok := columnOf[name]
	if !ok {
		return nil, false
	}
	return f(&g.Stats), true
}

// Groups gives a page of groups and how many there are over all pages. The
// query is valid: its names are of Groupings and Columns.
func (r *Reader) Groups(ctx context.Context, sc store.Scope, q *GroupQuery) (page []Group, n int, err error) {
	a := aspect{by: segment.NumDims, metadataKey: q.MetadataKey, latencies: slices.ContainsFunc(append(q.Columns[:len(q.Columns):len(q.Columns)], q.OrderBy), isQuantile)}
	if q.MetadataKey == "" {
		a.by = groupings[q.By]
	}
	byValue, err := r.tally(ctx, sc, &q.Filter, a, 1, func(int64) int { return 0 })
	if err != nil {
		return nil, 0, err
	}
	groups := make([]Group, 0, len(byValue))
	for value, list := range byValue {
		if list[0].Requests > 0 && (value != "" || q.MetadataKey != "") {
			groups = append(groups, Group{value, list[0]})
		}
	}
	order := columnOf[cmp.Or(q.OrderBy, "requests")]
	slices.SortFunc(groups, func(x, y Group) int {
		c := compareAny(order(&x.Stats), order(&y.Stats))
		if !q.Ascending {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(x.Value, y.Value))
	})
	from := min(max(q.Offset, 0), len(groups))
	to := len(groups)
	if q.Limit > 0 {
		to = min(from+q.Limit, to)
	}
	return groups[from:to], len(groups), nil
}

func isQuantile(column string) bool { return column == "p95_latency" || column == "p99_latency" }

// compareAny compares two values of one column.
func compareAny(x, y any) int {
	switch x := x.(type) {
	case int64:
		return cmp.Compare(x, y.(int64))
	case float64:
		return cmp.Compare(x, y.(float64))
	case time.Time:
		return x.Compare(y.(time.Time))
	}
	return 0
}
