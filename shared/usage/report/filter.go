package report

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// Range limits a number, both ends inclusive; nil means no limit.
type Range struct{ Min, Max *int64 }

// Unlimited reports whether there is no limit.
func (r Range) Unlimited() bool { return r.Min == nil && r.Max == nil }

func (r Range) has(n int64) bool {
	return (r.Min == nil || n >= *r.Min) && (r.Max == nil || n <= *r.Max)
}

// cent is a cent in nano-dollars. Ranges of numbers with a fraction use the same factor.
const cent = 10_000_000

// HasCents reports whether a fractional number is within the range, which stores such
// numbers like cents, that is, in nano-dollars.
func (r Range) HasCents(v float64) bool { return r.has(int64(math.Round(v * cent))) }

// ProviderModel names a model of a provider (type name).
type ProviderModel struct{ Provider, Model string }

// Filter selects records. Empty fields do not restrict; all others must match. A field
// with several values matches any of them.
type Filter struct {
	From, To time.Time // required, both inclusive; buckets use the offset of From

	TotalTokens, PromptTokens, CompletionTokens Range
	Cost                                        Range // nano-dollars
	Feedback                                    Range // see RestrictTraces; no record matches limits

	Statuses      []int
	ProviderSlugs []string // saved providers ("virtual keys")
	Providers     []string // type names
	Configs       []string // slugs
	Prompts       []string // slugs
	Experiments   []string // ids
	Keys          []string // ids of API keys
	Models        []string
	ProviderModel []ProviderModel
	CacheStatuses []string
	Endpoints     []string
	EndUsers      []string
	UserIDs       []string
	TraceIDs      []string
	SpanIDs       []string
	Sessions      []string // of coding agents
	Agents        []string
	ParentAgents  []string
	Nothing       bool              // no record matches
	Metadata      map[string]string // all pairs must match
}

// RestrictTraces further restricts f to records of these traces.
func (f *Filter) RestrictTraces(traces []string) {
	if len(f.TraceIDs) > 0 {
		requested := make(map[string]struct{}, len(f.TraceIDs))
		for _, t := range f.TraceIDs {
			requested[t] = struct{}{}
		}
		traces = slices.DeleteFunc(traces, func(t string) bool { _, ok := requested[t]; return !ok })
	}
	f.TraceIDs = traces
	f.Nothing = f.Nothing || len(traces) == 0
}

// ShiftBack moves the time of f to the period of the same length directly before it.
func (f *Filter) ShiftBack() {
	length := f.To.Sub(f.From) + time.Microsecond // both ends are inclusive
	f.From, f.To = f.From.Add(-length), f.To.Add(-length)
}

// maxSpan is the longest time of a query.
const maxSpan = 10 * 366 * 24 * time.Hour

// Validate returns the errors of the filter; from and to are the names of the time
// parameters.
func (f *Filter) Validate(from, to string) []fault.Detail {
	var errs []fault.Detail
	fail := func(field, message string) { errs = append(errs, fault.Detail{Field: field, Message: message}) }
	if f.From.IsZero() {
		fail(from, "is required: an ISO 8601 time with offset")
	}
	if f.To.IsZero() {
		fail(to, "is required: an ISO 8601 time with offset")
	}
	if errs == nil && f.To.Before(f.From) {
		fail(to, "must not be before "+from)
	}
	if errs == nil && f.To.Sub(f.From) > maxSpan {
		fail(to, "must be at most ten years after "+from)
	}
	if errs == nil && (f.From.Year() < 1970 || f.To.Year() > 2200) {
		fail(from, "must be between 1970 and 2200")
	}
	return errs
}

// Cents converts an amount to US cents, the unit of logs and analytics.
func Cents(n pricing.NanoDollars) float64 { return float64(n) / cent }

// plan is a filter in the form that is tested on tables.
type plan struct {
	org      string
	from, to int64 // microseconds, both inclusive
	dims     [segment.NumDims]map[string]struct{}
	models   []ProviderModel
	metadata map[string]string
	ranges   []bounded
	cubes    bool // the cells of cubes can be tested
	users    bool // sketches of users can be used too: only the workspace is restricted
	requests bool // spans that are not requests do not match
	cut      segment.Cut
	need     columns
}

// bounded is a range for the sum of some numbers.
type bounded struct {
	of []segment.Int
	Range
}

// columns are the columns of each record that a query needs.
type columns struct {
	dims [segment.NumDims]bool
	ints [segment.NumInts]bool
	meta map[string]struct{}
}

// plan returns the plan of a filter, including the log retention of the scope's
// workspaces.
func (r *Reader) plan(ctx context.Context, sc store.Scope, f *Filter) (*plan, error) {
	cut, err := r.src.archive.Cut(ctx, sc)
	if err != nil {
		return nil, err
	}
	p := compile(sc, f)
	p.cut = cut
	p.from = max(p.from, cut.Least())
	p.need.dims[segment.Workspace] = p.need.dims[segment.Workspace] || !cut.Uniform()
	return p, nil
}

// requests returns the plan of a filter for requests: spans stored for their trace only
// match if the filter names their type.
func (r *Reader) requests(ctx context.Context, sc store.Scope, f *Filter) (*plan, error) {
	p, err := r.plan(ctx, sc, f)
	if err != nil {
		return nil, err
	}
	if p.requests = p.dims[segment.Endpoint] == nil; p.requests {
		p.need.dims[segment.Endpoint] = true
	}
	return p, nil
}

func compile(sc store.Scope, f *Filter) *plan {
	p := &plan{org: sc.Org, from: f.From.UnixMicro(), to: f.To.UnixMicro(), models: f.ProviderModel, metadata: f.Metadata, cubes: true, users: true}
	if f.From.Nanosecond()%1000 != 0 {
		p.from++ // a record's start is in microseconds
	}
	set := func(d segment.Dim, values []string) {
		if len(values) == 0 {
			return
		}
		p.dims[d] = make(map[string]struct{}, len(values))
		for _, v := range values {
			p.dims[d][v] = struct{}{}
		}
		p.need.dims[d] = true
		p.cubes = p.cubes && d < segment.NumCubeDims
		p.users = p.users && d == segment.Workspace
	}
	if f.Nothing || !f.Feedback.Unlimited() { // no record contains feedback
		one, zero := int64(1), int64(0)
		p.ranges, p.cubes, p.users = append(p.ranges, bounded{[]segment.Int{segment.Start}, Range{&one, &zero}}), false, false
	}
	if sc.Workspace != "" {
		set(segment.Workspace, []string{sc.Workspace})
	}
	statuses := make([]string, len(f.Statuses))
	for i, s := range f.Statuses {
		statuses[i] = strconv.Itoa(s)
	}
	set(segment.Status, statuses)
	set(segment.ProviderSlug, f.ProviderSlugs)
	set(segment.Provider, f.Providers)
	set(segment.Config, f.Configs)
	set(segment.Prompt, f.Prompts)
	set(segment.Experiment, f.Experiments)
	set(segment.Key, f.Keys)
	set(segment.Model, f.Models)
	set(segment.CacheStatus, f.CacheStatuses)
	set(segment.Endpoint, f.Endpoints)
	set(segment.EndUser, f.EndUsers)
	set(segment.UserID, f.UserIDs)
	set(segment.TraceID, f.TraceIDs)
	set(segment.SpanID, f.SpanIDs)
	set(segment.Session, f.Sessions)
	set(segment.Agent, f.Agents)
	set(segment.ParentAgent, f.ParentAgents)
	if len(p.models) > 0 {
		p.need.dims[segment.Provider], p.need.dims[segment.Model] = true, true
		p.users = false
	}
	for _, b := range []bounded{
		{[]segment.Int{segment.TokensIn, segment.TokensOut}, f.TotalTokens},
		{[]segment.Int{segment.TokensIn}, f.PromptTokens},
		{[]segment.Int{segment.TokensOut}, f.CompletionTokens},
		{[]segment.Int{segment.Cost}, f.Cost},
	} {
		if !b.Unlimited() {
			p.ranges = append(p.ranges, b)
			p.cubes, p.users = false, false
			for _, i := range b.of {
				p.need.ints[i] = true
			}
		}
	}
	for key := range p.metadata {
		p.cubes, p.users = false, false
		p.need.metadata(key)
	}
	p.need.ints[segment.Start] = true
	return p
}

func (c *columns) metadata(key string) {
	if c.meta == nil {
		c.meta = make(map[string]struct{})
	}
	c.meta[key] = struct{}{}
}

// view is a table with the metadata columns that the query needs.
type view struct {
	*segment.Table
	meta map[string]*segment.Strings
}

// matcher tests the rows of one table.
type matcher struct {
	p     *plan
	t     *view
	dims  []allowedCodes
	pairs map[uint64]struct{}
	meta  []allowedCodes
	first []int64 // by the code of a workspace: start of its first visible record; nil if all are visible
	never bool
}

// allowedCodes are the matching values of a column, by their codes.
type allowedCodes struct {
	column *segment.Strings
	pass   []bool
}

func (p *plan) matcher(t *view) *matcher {
	m := &matcher{p: p, t: t}
	if p.cut.Most() > p.from {
		m.first = p.cutOf(t)
	}
	for d, set := range p.dims {
		if set == nil {
			continue
		}
		a := allow(t.Dims[d], func(v string) bool { _, ok := set[v]; return ok })
		m.never = m.never || a.none()
		m.dims = append(m.dims, a)
	}
	if p.requests {
		a := allow(t.Dims[segment.Endpoint], func(v string) bool { return v != usage.EndpointSpan })
		m.never = m.never || a.none()
		m.dims = append(m.dims, a)
	}
	for key, want := range p.metadata {
		a := allow(t.meta[key], func(v string) bool { return v == want })
		m.never = m.never || a.none()
		m.meta = append(m.meta, a)
	}
	if len(p.models) > 0 {
		m.pairs = make(map[uint64]struct{})
		providers, models := t.Dims[segment.Provider], t.Dims[segment.Model]
		for _, pm := range p.models {
			for i, provider := range providers.Values {
				for j, model := range models.Values {
					if provider == pm.Provider && model == pm.Model {
						m.pairs[uint64(i)<<32|uint64(j)] = struct{}{}
					}
				}
			}
		}
		m.never = m.never || len(m.pairs) == 0
	}
	return m
}

// cutOf returns the start of the log retention by workspace of a table; a single value if
// it is the same for all.
func (p *plan) cutOf(t *view) []int64 {
	if p.cut.Uniform() {
		return []int64{p.cut.Most()}
	}
	workspaces := t.Dims[segment.Workspace].Values
	first := make([]int64, len(workspaces))
	for i, ws := range workspaces {
		first[i] = p.cut.First(ws)
	}
	return first
}

// retained reports whether a row is within its workspace's log retention. This also works
// for the cells of a cube: a cell covers an hour, and records expire by whole days.
func (m *matcher) retained(i int) bool {
	code := uint32(0)
	if !m.p.cut.Uniform() {
		code = m.t.Dims[segment.Workspace].Code(i)
	}
	return m.t.Ints[segment.Start][i] >= m.first[code]
}

func allow(column *segment.Strings, pass func(string) bool) allowedCodes {
	a := allowedCodes{column, make([]bool, len(column.Values))}
	for i, v := range column.Values {
		a.pass[i] = pass(v)
	}
	return a
}

func (a *allowedCodes) none() bool {
	for _, ok := range a.pass {
		if ok {
			return false
		}
	}
	return true
}

// match reports whether row i matches everything except the time.
func (m *matcher) match(i int) bool {
	if m.first != nil && !m.retained(i) {
		return false
	}
	for k := range m.dims {
		if !m.dims[k].pass[m.dims[k].column.Code(i)] {
			return false
		}
	}
	for k := range m.meta {
		code := m.meta[k].column.Code(i)
		if code == segment.Absent || !m.meta[k].pass[code] {
			return false
		}
	}
	if m.pairs != nil {
		if _, ok := m.pairs[uint64(m.t.Dims[segment.Provider].Code(i))<<32|uint64(m.t.Dims[segment.Model].Code(i))]; !ok {
			return false
		}
	}
	for k := range m.p.ranges {
		var n int64
		for _, of := range m.p.ranges[k].of {
			n += m.t.Ints[of][i]
		}
		if !m.p.ranges[k].has(n) {
			return false
		}
	}
	return true
}
