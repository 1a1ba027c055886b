package admin

import (
	"fmt"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// lister lists the records of a collection, over one scope or several.
type lister[T any] struct {
	col *Collection[T]
	m   *machine[T]
}

// placed is a list row with the scope that it is in.
type placed struct {
	resource.Row
	scope store.Scope
}

// parameters are those of a list's query.
func (list *List) parameters(fields []Field) []Field {
	q := slices.Clone(list.Query)
	for i := range fields {
		if f := &fields[i]; f.Listed && !slices.ContainsFunc(q, func(o Field) bool { return o.Name == f.Name }) {
			q = append(q, Field{Name: f.Name, Type: String, Max: 255, Enum: f.Enum, Doc: "Only those with this " + title(f.Name) + "."})
		}
	}
	q = append(list.Paging.Fields(), q...)
	if list.Status {
		q = append(q, Field{Name: "status", Type: String, Max: 64, Default: "active", Doc: "active, archived, or both, comma-separated."})
	}
	if list.Tags {
		q = append(q, Field{Name: "tags", Type: Map, Of: &Field{Type: String}, Max: 50, Doc: "JSON object of tags that must all match."})
	}
	if list.Search {
		q = append(q, Field{Name: "search", Type: String, Min: 1, Max: 255, Doc: "Part of the name or the slug."})
	}
	if list.IDs != "" {
		q = append(q, Field{Name: list.IDs, Type: Array, Of: &Field{Type: String, Max: 64}, Max: 1000, Doc: "Only these ids, comma-separated."})
	}
	return q
}

// list gives a page. The records of the page are read together, whatever scopes
// they are in.
func (l lister[T]) list(c *Call) (any, error) {
	page, err := l.col.List.Paging.Of(c.Query)
	if err != nil {
		return nil, err
	}
	all, err := l.rows(c)
	if err != nil {
		return nil, err
	}
	items, err := l.items(c, all.page(page.start, page.Size))
	if err != nil {
		return nil, err
	}
	objects := make([]Members, len(items))
	for i := range items {
		if objects[i], err = l.m.shape.render(c, items[i].stored(), true); err != nil {
			return nil, err
		}
	}
	if err := l.m.shower.decorate(c, items, objects); err != nil {
		return nil, err
	}
	entries := make([]any, len(objects))
	for i := range objects {
		l.m.shape.leave(objects[i])
		entries[i] = objects[i]
	}
	return l.col.envelope().Wrap(entries, all.total(), page), nil
}

// leave takes out what Decorate set and lists do not show.
func (s *shape) leave(o Members) {
	for i := range s.members {
		if s.members[i].Single {
			delete(o, s.members[i].Name)
		}
	}
}

// items reads the records of rows, in their order; those that were deleted
// meanwhile are omitted.
func (l lister[T]) items(c *Call, rows []placed) ([]Item[T], error) {
	records, err := recordsOf(c, l.col.kind(c), rows)
	if err != nil {
		return nil, err
	}
	out := make([]Item[T], len(records))
	for i, rec := range records {
		form, err := readForm[T](l.col.Kind, rec)
		if err != nil {
			return nil, err
		}
		out[i] = Item[T]{rec, form}
	}
	return out, nil
}

// recordsOf is items without the forms.
func recordsOf(c *Call, kind resource.Kind, rows []placed) ([]*resource.Record, error) {
	ids := make(map[store.Scope][]string)
	for _, row := range rows {
		ids[row.scope] = append(ids[row.scope], row.ID)
	}
	found := make(map[string]*resource.Record, len(rows))
	for sc, of := range ids {
		recs, err := c.Resources.GetMany(c.Context, sc, kind, of)
		if err != nil {
			return nil, err
		}
		for i := range recs {
			found[recs[i].ID] = &recs[i]
		}
	}
	out := make([]*resource.Record, 0, len(rows))
	for _, row := range rows {
		if rec, ok := found[row.ID]; ok {
			out = append(out, rec)
		}
	}
	return out, nil
}

// rows are all rows of the list that the query selects.
func (l lister[T]) rows(c *Call) (merged, error) {
	scopes, across := []store.Scope{c.Scope}, l.col.ListScopes
	if across == nil && l.col.Level == InWorkspace && l.col.Parent == nil {
		across = WorkspaceScopes
	}
	if across != nil {
		var err error
		if scopes, err = across(c); err != nil {
			return nil, err
		}
	}
	open := func(_ *Call, _ store.Scope, rows []resource.Row) ([]resource.Row, error) { return rows, nil }
	if l.col.Levels != nil {
		open = func(c *Call, sc store.Scope, rows []resource.Row) ([]resource.Row, error) {
			return l.col.Levels.visible(l, c, sc, rows)
		}
	}
	return l.col.List.rows(c, scopes, l.col.kind(c), l.col.List.filter(c, l.m.fields, l.col.Authorize), open)
}

// rows reads the rows of some scopes. open omits those that are not open to the caller.
func (list *List) rows(c *Call, scopes []store.Scope, kind resource.Kind, wanted func(*resource.Row) bool, open func(*Call, store.Scope, []resource.Row) ([]resource.Row, error)) (merged, error) {
	live, archived, err := wantedStatus(c.Query.Text("status"), list.Status)
	if err != nil {
		return nil, err
	}
	archived = archived || list.Ended
	var out merged
	for _, old := range []bool{false, true} {
		if (old && !archived) || (!old && !live) {
			continue
		}
		lists, err := c.Resources.ListMany(c.Context, scopes, kind, old)
		if err != nil {
			return nil, err
		}
		for n, rows := range lists {
			if rows, err = open(c, scopes[n], rows); err != nil {
				return nil, err
			}
			one := run{rows: rows, scope: scopes[n]}
			if wanted != nil {
				one.selectRows(wanted)
			}
			if one.len() > 0 {
				out = append(out, &one)
			}
		}
	}
	return out, nil
}

// filter returns the predicate of a query's filters; nil if it has none.
func (list *List) filter(c *Call, fields []Field, may func(c *Call, action string, row *resource.Row) bool) func(*resource.Row) bool {
	tags, search := c.Query.TextMap("tags"), strings.ToLower(c.Query.Text("search"))
	var ids []string
	if list.IDs != "" {
		ids = c.Query.Texts(list.IDs)
	}
	var listed []string
	for i := range fields {
		if f := &fields[i]; f.Listed && c.Query.HasValue(f.Name) {
			listed = append(listed, f.Name)
		}
	}
	if len(tags) == 0 && search == "" && len(ids) == 0 && len(listed) == 0 && list.Match == nil && may == nil {
		return nil
	}
	return func(row *resource.Row) bool {
		return hasTags(row.Tags, tags) &&
			(search == "" || strings.Contains(strings.ToLower(row.Name), search) || strings.Contains(row.Slug, search)) &&
			(len(ids) == 0 || slices.Contains(ids, row.ID)) &&
			!slices.ContainsFunc(listed, func(name string) bool { return row.Fields[name] != c.Query.Text(name) }) &&
			(list.Match == nil || list.Match(c, row)) && (may == nil || may(c, "list", row))
	}
}

// wantedStatus reads the comma list of a status parameter.
func wantedStatus(list string, offered bool) (live, archived bool, err error) {
	if !offered || list == "" {
		return true, false, nil
	}
	for _, s := range strings.Split(list, ",") {
		switch strings.TrimSpace(s) {
		case "active":
			live = true
		case resource.StatusArchived:
			archived = true
		default:
			return false, false, fault.Invalid("status", "must be active, archived or active,archived")
		}
	}
	return live, archived, nil
}

func hasTags(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// textOfMember is a stored text, number or truth value as list rows keep it.
func textOfMember(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// run are rows of one stored list, newest first; they are shared and not changed.
type run struct {
	rows     []resource.Row
	scope    store.Scope
	matches  []int32 // indexes of those that are meant, where filtered
	filtered bool
	at       int // of the next one
}

// selectRows selects the wanted rows.
func (r *run) selectRows(wanted func(*resource.Row) bool) {
	r.filtered = true
	for i := range r.rows {
		if wanted(&r.rows[i]) {
			r.matches = append(r.matches, int32(i))
		}
	}
}

func (r *run) len() int {
	if r.filtered {
		return len(r.matches)
	}
	return len(r.rows)
}

func (r *run) row(i int) *resource.Row {
	if r.filtered {
		i = int(r.matches[i])
	}
	return &r.rows[i]
}

// merged is a list, newest first, merged from several runs. A page is found without sorting all
// rows.
type merged []*run

func (m merged) total() (n int) {
	for _, r := range m {
		n += r.len()
	}
	return n
}

// page are the rows from start on, at most size.
func (m merged) page(start, size int64) []placed {
	total := int64(m.total())
	start = min(start, total)
	m.skip(int(start))
	out := make([]placed, 0, min(size, total-start))
	for int64(len(out)) < size {
		r := m.newest(1)
		if r == nil {
			break
		}
		out = append(out, placed{*r.row(r.at), r.scope})
		r.at++
	}
	return out
}

// skip advances past the n newest rows. Consider the next n/k rows of each of k runs: the rows
// of the run with the newest last row are all among the n newest, because each other run has
// fewer than n/k rows before that one.
func (m merged) skip(n int) {
	for n > 0 {
		step := max(1, n/max(1, len(m)))
		r := m.newest(step)
		for ; r == nil && step > 1; r = m.newest(step) { // no run has so many left
			step /= 2
		}
		if r == nil {
			return
		}
		r.at += step
		n -= step
	}
}

// newest returns the run with the newest row at a distance, 1 for the next; nil if every run is
// shorter. A shorter run counts as older than any.
func (m merged) newest(distance int) *run {
	var best *run
	for _, r := range m {
		if r.at+distance > r.len() {
			continue
		}
		if best == nil || r.row(r.at+distance-1).Order > best.row(best.at+distance-1).Order {
			best = r
		}
	}
	return best
}
