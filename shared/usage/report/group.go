package report

import (
	"cmp"
	"context"
	"math"
	"reflect"
	"slices"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/usage/segment"
)

// groupings are the dimensions by which records can be grouped, by their name in the API.
var groupings = map[string]segment.Dim{
	"ai_service": segment.Provider, "model": segment.Model, "status_code": segment.Status, "api_key": segment.Key, "config": segment.Config,
	"workspace": segment.WorkspaceSlug, "provider": segment.ProviderSlug, "prompt": segment.Prompt,
	"users": segment.EndUser, "ai-models": segment.Model, "session": segment.Session, "agent": segment.Agent, "parent_agent": segment.ParentAgent,
}

// columnOf has the functions that compute the columns of a group's row, by their name in
// the API.
var columnOf = map[string]func(s *Stats) any{
	"requests":          func(s *Stats) any { return s.Requests },
	"cost":              func(s *Stats) any { return Cents(s.Cost) },
	"gateway_cost":      func(s *Stats) any { return Cents(s.Running) },
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

// ColumnType returns the type of a column of Columns, for its description.
func ColumnType(name string) reflect.Type { return reflect.TypeOf(columnOf[name](new(Stats))) }

// GroupQuery is a query for groups.
type GroupQuery struct {
	Filter
	By          string // one of groupings; "" if MetadataKey is set
	MetadataKey string
	Columns     []string // the columns of Columns that the caller reads
	OrderBy     string   // one of Columns; requests if empty
	Ascending   bool
	Limit       int // rows of a page; 0 means all
	Offset      int // rows before the page
}

// Group is one row: the records with the same value. Records without a value are in no
// group.
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

// Groups returns a page of groups and the number of groups on all pages. The query's
// names are from groupings and Columns.
func (r *Reader) Groups(ctx context.Context, sc store.Scope, q *GroupQuery) (page []Group, n int, err error) {
	a := aspect{by: segment.NumDims, metadataKey: q.MetadataKey, latencies: slices.ContainsFunc(append(q.Columns[:len(q.Columns):len(q.Columns)], q.OrderBy), isQuantile)}
	if q.MetadataKey == "" {
		a.by = groupings[q.By]
	}
	leave, err := r.src.budget.admit(ctx, a.weight(1)+2*groupWeight*int64(min(q.wanted(), a.maxGroups())))
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	if r.sql != nil {
		ctx = r.sql.engine.WithQueryLimits(ctx)
	}
	for a.shares = 1; a.shares <= maxShares; a.shares *= 4 {
		list, n, over, err := r.groups(ctx, sc, q, a)
		if err != nil {
			return nil, 0, err
		}
		if over && r.sql != nil { // one query is faster than many reads
			if page, n, ok, err := r.sql.ranked(ctx, sc, q, a); ok || err != nil {
				return page, n, err
			}
		}
		if !over {
			list = list[min(max(q.Offset, 0), len(list)):]
			if q.Limit > 0 {
				list = list[:min(q.Limit, len(list))]
			}
			return list, n, nil
		}
	}
	return nil, 0, fault.Invalid("time_of_generation_min", "with time_of_generation_max and the filter selects too many groups, more than about %d; narrow them", maxShares*a.maxGroups())
}

// maxShares is the maximum number of shares into which groups are split if they are too
// many to collect together. Shares are collected one after the other.
const maxShares = 64

// groups collects the groups share by share and retains those up to the end of the page,
// in order; n counts all groups. over reports that a share has too many groups.
func (r *Reader) groups(ctx context.Context, sc store.Scope, q *GroupQuery, a aspect) (first []Group, n int, over bool, err error) {
	wanted := q.wanted()
	if a.shares > 1 && wanted > a.maxGroups() {
		return nil, 0, false, fault.Invalid("current_page", "exceeds %d, the number of groups that can be sorted; narrow the time or the filter", a.maxGroups())
	}
	for a.share = 0; a.share < a.shares; a.share++ {
		sum, err := r.sum(ctx, sc, &q.Filter, a, allTime)
		if err != nil || sum.overflow.Load() {
			return nil, 0, true, err
		}
		for value, list := range sum.groups {
			if list[0].Requests > 0 && (value != "" || q.MetadataKey != "") {
				first = append(first, Group{value, list[0]})
				n++
			}
			if len(first) >= 2*wanted {
				first = q.trim(first, wanted)
			}
		}
		first = q.trim(first, wanted)
	}
	return first, n, false, nil
}

// wanted returns the number of groups up to the end of the page.
func (q *GroupQuery) wanted() int {
	if q.Limit == 0 {
		return math.MaxInt / 2
	}
	return max(q.Offset, 0) + q.Limit
}

// trim sorts groups and drops those after the wanted number.
func (q *GroupQuery) trim(groups []Group, wanted int) []Group {
	order := columnOf[cmp.Or(q.OrderBy, "requests")]
	slices.SortFunc(groups, func(x, y Group) int {
		c := compareAny(order(&x.Stats), order(&y.Stats))
		if !q.Ascending {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(x.Value, y.Value))
	})
	if len(groups) > wanted {
		clear(groups[wanted:])
		groups = groups[:wanted]
	}
	return groups
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
