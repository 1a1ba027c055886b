package admin

import (
	"slices"
	"strconv"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
)

// entryShape is the shape of a version in the list: the resource with the
// fields of Shown.
func (h *history[T]) entryShape() *shape {
	entry := *h.m.shape
	entry.members = slices.Clone(entry.members)
	for _, sh := range h.Computed {
		entry.put(sh.Field, sh.showing())
	}
	return &entry
}

// routes are the routes below an item.
func (h *history[T]) routes(item string) []Route {
	v, word := h.Versions, title(h.col.Object)
	if v.Name == "" {
		v.Name = operation(h.col.Object)
	}
	entry := h.entryShape()
	out := []Route{h.col.finish("read", Route{
		Method: "GET", Path: item + "/versions", Name: "list" + v.Name + "Versions", Doc: "List the versions of " + article(word) + " " + word + ", newest first.", Role: h.col.ReadRole,
		Query: v.Paging.Fields(), ResponseOf: func() Schema { return ListSchema(entry.schema(false)) }, Do: func(c *Call) (any, error) { return h.list(c, entry) },
	})}
	if v.Publish == "" {
		return out
	}
	out = append(out, h.col.finish("read", Route{
		Method: "GET", Path: item + "/versions/{versionId}", Name: "get" + v.Name + "Version", Doc: "Read a version of " + article(word) + " " + word + ".", Role: h.col.ReadRole,
		ResponseOf: func() Schema { return wrappedSchema(h.col.Wrapped, h.m.shape.schema(false)) }, Do: h.readOne,
	}))
	publish := h.col.finish("update", Route{
		Method: "PUT", Path: item + "/makeDefault", Name: "publish" + v.Name, Doc: "Publish a version of a " + word + ".", Role: h.col.WriteRole,
		Body: []Field{{Name: "version", Type: Integer, Required: true, Min: 1, Max: 999_999_999}}, Action: audit.Publish, Response: emptySchema, Do: h.publish,
	})
	publish.Scopes = []string{v.Publish}
	refused := []int(nil)
	if v.CheckPublish != nil {
		refused = []int{409}
	}
	publish.Errors = refused
	out = append(out, publish)
	if v.Labels != "" {
		out = append(out, h.col.finish("update", Route{
			Method: "PUT", Path: item + "/versions/{versionId}", Name: "label" + v.Name + "Version", Doc: "Assign a label to a version, moving it from any other version; null removes all labels.", Role: h.col.WriteRole,
			Body: []Field{{Name: "label_id", Type: String, Max: 255, Reference: "/labels"}}, BodyMode: PartialBody, Action: audit.Update, Response: emptySchema, Errors: refused, Do: h.putLabel,
		}))
	}
	return out
}

func (h *history[T]) list(c *Call, entry *shape) (any, error) {
	page, err := h.Paging.Of(c.Query)
	if err != nil {
		return nil, err
	}
	it, err := h.col.Find(c)
	if err != nil {
		return nil, err
	}
	all, err := c.Resources.Versions(c.Context, it.Scope, it.Kind, it.ID)
	if err != nil {
		return nil, err
	}
	entries := make([]any, 0, min(int64(len(all)), page.Size))
	for _, v := range Cut(all, page) {
		one, err := h.as(it, &v)
		if err != nil {
			return nil, err
		}
		if h.Publish != "" {
			one.Created = v.Updated // when the version was made
		}
		o, err := entry.render(c, one.stored(), false)
		if err != nil {
			return nil, err
		}
		entries = append(entries, o)
	}
	return ListEnvelope.Wrap(entries, len(all), page), nil
}

// named finds the version that the path names by id or number.
func (h *history[T]) named(c *Call, it Item[T]) (*resource.Record, error) {
	name := c.Param("versionId")
	if n, err := strconv.ParseInt(name, 10, 64); err == nil {
		return h.version(c, it, n)
	}
	all, err := c.Resources.Versions(c.Context, it.Scope, it.Kind, it.ID)
	if err != nil {
		return nil, err
	}
	n := slices.IndexFunc(all, func(v resource.Record) bool { return v.VersionID == name })
	if n < 0 {
		return nil, fault.Newf(fault.NotFound, "versionId", "This %s has no such version", title(h.col.Object))
	}
	return &all[n], nil
}

func (h *history[T]) readOne(c *Call) (any, error) {
	it, err := h.col.Find(c)
	if err != nil {
		return nil, err
	}
	v, err := h.named(c, it)
	if err != nil {
		return nil, err
	}
	if it, err = h.as(it, v); err != nil {
		return nil, err
	}
	o, err := h.col.Render(c, it)
	return wrapped(h.col.Wrapped, o), err
}

// publish makes a version the content.
func (h *history[T]) publish(c *Call) (any, error) {
	return nil, c.Change(func(tx *resource.Tx) error {
		it, err := h.col.FindIn(c, tx)
		if err != nil {
			return err
		}
		return h.publishIn(c, tx, it, c.Body.Int("version"))
	})
}

func (h *history[T]) publishIn(c *Call, tx *resource.Tx, it Item[T], n int64) error {
	v, err := h.version(c, it, n)
	if err != nil {
		return err
	}
	if err := h.ready(c, it, n); err != nil {
		return err
	}
	old := *it.Record
	now, err := h.as(it, v)
	if err != nil {
		return err
	}
	v.Body = now.Body
	tx.Publish(it.Record, v)
	it.UpdatedBy = c.Actor()
	ch := Change[T]{Old: &old, OldForm: it.Form, Rec: it.Record, Form: now.Form}
	if err := h.m.writer.before(c, tx, &ch); err != nil {
		return err
	}
	if err := tx.Update(ch.Rec); err != nil {
		return err
	}
	return h.m.writer.after(c, tx, &ch)
}

func (h *history[T]) ready(c *Call, it Item[T], n int64) error {
	if h.CheckPublish == nil {
		return nil
	}
	return h.CheckPublish(c, it, n)
}

// CheckPublish rejects a version that may not be published yet.
func (col *Collection[T]) CheckPublish(c *Call, it Item[T], n int64) error {
	m, err := col.compile()
	if err != nil {
		return err
	}
	return m.past.ready(c, it, n)
}

// Publish makes a version of a record its content, within a change of the family's own.
func (col *Collection[T]) Publish(c *Call, tx *resource.Tx, it Item[T], n int64) error {
	m, err := col.compile()
	if err != nil {
		return err
	}
	return m.past.publishIn(c, tx, it, n)
}

// putLabel puts a label on the version of the path, or takes all off it.
func (h *history[T]) putLabel(c *Call) (any, error) {
	return nil, c.Change(func(tx *resource.Tx) error {
		it, err := h.col.FindIn(c, tx)
		if err != nil {
			return err
		}
		v, err := h.named(c, it)
		if err != nil {
			return err
		}
		if it.Labels == nil {
			it.Labels = make(map[string]int64)
		}
		if c.Body.Null("label_id") {
			for label, n := range it.Labels {
				if n == v.Version {
					delete(it.Labels, label)
				}
			}
		} else {
			label, ok, err := h.label(c, c.Body.Text("label_id"))
			if err != nil {
				return err
			}
			if !ok {
				return fault.Invalid("label_id", "must name a label of the workspace or the organization")
			}
			if err := h.ready(c, it, v.Version); err != nil {
				return err
			}
			it.Labels[label.ID] = v.Version
		}
		it.UpdatedBy = c.Actor()
		return tx.Update(it.Record)
	})
}

// LabelsOf are the ids of the labels on the version that an item shows, sorted.
func LabelsOf(rec *resource.Record) []string {
	out := []string{}
	for label, n := range rec.Labels {
		if n == rec.Version {
			out = append(out, label)
		}
	}
	slices.Sort(out)
	return out
}

// Paging is how a family cuts its lists into pages.
type Paging struct {
	Page, Size  string // names of the parameters; default current_page and page_size
	First       int64  // number of the first page
	DefaultSize int64  // default 100, for clients that read one page
	MinSize     int64  // default 1
	MaxSize     int64  // default 1000
	// CamelToo also takes the parameters in camel case, currentPage and
	// pageSize; they are the documented ones.
	CamelToo bool
}

// Page is one page of a list.
type Page struct {
	Number, Size int64 // as the caller counts
	start        int64 // entries before it
}

// maxPage prevents page times size from overflowing.
const maxPage = 1_000_000

func (p Paging) filled() Paging {
	if p.Page == "" {
		p.Page, p.Size = "current_page", "page_size"
	}
	if p.DefaultSize == 0 {
		p.DefaultSize = 100
	}
	if p.MinSize == 0 {
		p.MinSize = 1
	}
	if p.MaxSize == 0 {
		p.MaxSize = 1000
	}
	return p
}

// Fields are the query parameters of the paging.
func (p Paging) Fields() []Field {
	p = p.filled()
	page := Field{Name: p.Page, Type: Integer, Min: p.First, Max: maxPage, Default: p.First, Doc: "Number of the page."}
	size := Field{Name: p.Size, Type: Integer, Min: p.MinSize, Max: p.MaxSize, Default: p.DefaultSize, Doc: "Entries per page."}
	fields := []Field{page, size}
	if p.CamelToo {
		page.Name, size.Name = "currentPage", "pageSize"
		fields = append([]Field{page, size}, fields...)
	}
	return fields
}

// Of reads the page that a query requests.
func (p Paging) Of(q Values) (Page, error) {
	p = p.filled()
	out := Page{Number: p.First, Size: p.DefaultSize}
	names := [][2]string{{p.Page, p.Size}}
	if p.CamelToo {
		names = append(names, [2]string{"currentPage", "pageSize"})
	}
	for _, n := range names {
		if q.HasValue(n[0]) {
			out.Number = q.Int(n[0])
		}
		if q.HasValue(n[1]) {
			out.Size = q.Int(n[1])
		}
	}
	if p.CamelToo && q.HasValue("currentPage") && q.HasValue(p.Page) && q.Int("currentPage") != q.Int(p.Page) {
		return Page{}, fault.Invalid("currentPage", "differs from %s", p.Page)
	}
	out.start = (out.Number - p.First) * out.Size
	return out, nil
}

// Cut gives the part of all that is on the page.
func Cut[T any](all []T, p Page) []T {
	n := int64(len(all))
	from := min(p.start, n)
	return all[from:min(from+p.Size, n)]
}

// Envelope is the form that a family's lists have: how a page of entries is put
// into it, and its schema. total counts all entries of the list.
type Envelope struct {
	Wrap   func(entries []any, total int, p Page) any
	Schema func(entry Schema) Schema
}

// The forms of lists.
var (
	// ListEnvelope is {"object":"list","total","data"}.
	ListEnvelope = Envelope{
		func(e []any, total int, _ Page) any { return Members{"object": "list", "total": total, "data": e} },
		func(entry Schema) Schema {
			return Closed(map[string]Schema{"object": listOf("list"), "total": integerSchema, "data": anyListSchema(entry)})
		},
	}
	// TotalEnvelope is {"total","data"}.
	TotalEnvelope = Envelope{
		func(e []any, total int, _ Page) any { return Members{"total": total, "data": e} },
		func(entry Schema) Schema {
			return Closed(map[string]Schema{"total": integerSchema, "data": anyListSchema(entry)})
		},
	}
	// SuccessEnvelope is {"success":true,"data","total"}.
	SuccessEnvelope = Envelope{
		func(e []any, total int, _ Page) any { return Members{"success": true, "data": e, "total": total} },
		func(entry Schema) Schema {
			return Closed(map[string]Schema{"success": {"type": "boolean"}, "data": anyListSchema(entry), "total": integerSchema})
		},
	}
	// MoreEnvelope is {"data","total","has_more"}.
	MoreEnvelope = Envelope{
		func(e []any, total int, p Page) any {
			return Members{"data": e, "total": total, "has_more": p.start+int64(len(e)) < int64(total)}
		},
		func(entry Schema) Schema {
			return Closed(map[string]Schema{"data": anyListSchema(entry), "total": integerSchema, "has_more": {"type": "boolean"}})
		},
	}
)
