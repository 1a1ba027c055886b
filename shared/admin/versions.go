package admin

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/resource"
)

// Versions means that a resource has a history: a version for each change of its
// content, from 1.
//
// Without Publish a new version is the content from then on. With it, the
// content stays until a version is published, and a path names a version as
// id@3, id@latest or id@<label>.
type Versions[T any] struct {
	// Of are the fields that are content. With none, each change of the stored
	// form makes a version; When replaces that.
	Of   []string
	When func(in Values, ch *Change[T]) bool
	// Unversioned are those of Of that make no version when they come alone: they change the
	// published content, and its version too.
	Unversioned []string
	// Computed are fields of the entries of the list, beside or in place of those
	// of the resource.
	Computed []ComputedField[T]
	Paging   Paging
	// Publish separates saving a version from publishing it by PUT {item}/makeDefault, which
	// requires the scope Publish.
	Publish string
	// Patch adds the field patch to updates. With true, the fields of Of that are not named
	// keep the values of the newest version; without it, all of Combined must be given.
	Patch    bool
	Combined []string
	// Drafted specifies what of the record an update responses that made a version which
	// is not published yet; nil: what every update answers.
	Drafted *Reply
	// CheckPublish rejects a version that may not be published or labeled yet; nil: all may be.
	// It is called before either.
	CheckPublish func(c *Call, it Item[T], n int64) error
	// Labels are the kind of the labels that versions carry; "": none.
	Labels resource.Kind
	Name   string // of the operations: listConfigVersions
}

const (
	patchField   = "patch"
	latest       = "latest"
	publishedRef = "default"
)

// patchesField is the field of updates that Patch brings, versionQuery the parameter of
// reads that Publish brings.
func patchesField() []Field {
	return []Field{{Name: patchField, Type: Boolean, Trigger: true, UpdateOnly: true, Doc: "true copies absent content fields from the newest version; otherwise all are required."}}
}

func versionQuery() []Field {
	return []Field{{Name: "version", Type: String, Max: 255, Default: publishedRef, Doc: "Version to read: latest, default (the published one), its number, or a label."}}
}

// reference cuts a path's name@version.
func reference(name string) (id, ref string) {
	id, ref, _ = strings.Cut(name, "@")
	return id, ref
}

// history serves the versions of a collection's records.
type history[T any] struct {
	*Versions[T]
	col *Collection[T]
	m   *machine[T]
}

func (v *Versions[T]) history(col *Collection[T], m *machine[T]) past[T] {
	return &history[T]{v, col, m}
}

// publishes reports whether a version waits until it is published.
func (v *Versions[T]) publishes() bool { return v.Publish != "" }

func (v *Versions[T]) patches() bool { return v.Patch }

func (v *Versions[T]) drafted() *Reply { return v.Drafted }

// moves reports whether an update makes the next version at once.
func (h *history[T]) moves(in Values, ch *Change[T]) bool {
	switch {
	case h.Publish != "", sameContent(ch):
		return false
	case h.When != nil:
		return h.When(in, ch)
	case len(h.Of) > 0:
		return h.content(in)
	}
	return true
}

// sameContent reports whether a change leaves the stored form as it is, but for the order
// and the spelling of JSON.
func sameContent[T any](ch *Change[T]) bool {
	return sameBody(ch) || ch.Old != nil && sameJSON(ch.Rec.Body, ch.Old.Body, true)
}

// content reports whether the body names content that makes a version.
func (h *history[T]) content(in Values) bool {
	return slices.ContainsFunc(h.Of, func(name string) bool { return in.Has(name) && !slices.Contains(h.Unversioned, name) })
}

// rewrite updates the version row of the published version if the body changed only fields
// beside the content.
func (h *history[T]) rewrite(c *Call, tx *resource.Tx, it Item[T]) error {
	if !slices.ContainsFunc(h.Unversioned, c.Body.Has) {
		return nil
	}
	v, err := h.version(c, it, it.Version)
	if err != nil {
		return err
	}
	v.Body = it.Body
	return tx.UpdateVersion(v)
}

// drafts reports whether the call makes a version that is published later.
func (h *history[T]) drafts(c *Call) bool {
	return h.Publish != "" && h.content(c.Body)
}

// stageDraft stages a new version beside the content, and changes what else the body names.
func (h *history[T]) stageDraft(c *Call, tx *resource.Tx, it Item[T]) (Change[T], error) {
	if err := h.together(c); err != nil {
		return Change[T]{}, err
	}
	newest, err := h.version(c, it, it.Latest)
	if err != nil {
		return Change[T]{}, err
	}
	draft := *it.Record
	draft.Body, draft.Sealed, draft.Fields = newest.Body, newest.Sealed, maps.Clone(it.Fields)
	form, err := readForm[T](h.col.Kind, &draft)
	if err != nil {
		return Change[T]{}, err
	}
	d := Change[T]{Old: newest, OldForm: form, Rec: &draft, Form: form}
	if err := h.m.writer.apply(c, c.Body, &d); err != nil {
		return d, err
	}
	if err := h.m.writer.before(c, tx, &d); err != nil {
		return d, err
	}
	rest := Values{maps.Clone(c.Body.raw)}
	for _, name := range h.Of {
		delete(rest.raw, name)
	}
	tx.Draft(it.Record, &draft)
	ch, err := h.m.writer.stageUpdate(c, tx, rest, it)
	ch.Draft = &draft
	return ch, err
}

// together rejects a body that names a part of the content only, without patch.
func (h *history[T]) together(c *Call) error {
	if h.Patch && c.Body.Bool(patchField) {
		return nil
	}
	var p problems
	for _, name := range h.Combined {
		if !c.Body.HasValue(name) {
			p.add(name, "is required when the content changes; or send %s true to keep the value of the newest version", patchField)
		}
	}
	if f := fault.Invalids(p.list); f != nil {
		return f
	}
	return nil
}

func (h *history[T]) version(c *Call, it Item[T], n int64) (*resource.Record, error) {
	rec, ok, err := c.Resources.Version(c.Context, it.Scope, it.Kind, it.ID, n)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.Newf(fault.NotFound, "version", "This %s has no version %d; it has 1 to %d", title(h.col.Object), n, it.Latest)
	}
	return &rec, nil
}

// at gives the item as the version has it that the path or the query names.
func (h *history[T]) at(c *Call, it Item[T]) (Item[T], error) {
	if h.Publish == "" {
		return it, nil
	}
	_, ref := reference(c.Param(h.col.param()))
	if ref == "" {
		ref = c.Query.Text("version")
	}
	n, err := h.number(c, it, ref)
	if err != nil || n == it.Version {
		return it, err
	}
	v, err := h.version(c, it, n)
	if err != nil {
		return it, err
	}
	return h.as(it, v)
}

// number is the version that a reference means.
func (h *history[T]) number(c *Call, it Item[T], ref string) (int64, error) {
	switch ref {
	case "", publishedRef:
		return it.Version, nil
	case latest:
		return it.Latest, nil
	}
	if n, err := strconv.ParseInt(ref, 10, 64); err == nil {
		return n, nil
	}
	if h.Labels != "" {
		if label, ok, err := h.label(c, ref); err != nil {
			return 0, err
		} else if n := it.Labels[label.ID]; ok && n > 0 {
			return n, nil
		}
	}
	return 0, fault.Newf(fault.NotFound, "version", "This %s has no version %q", title(h.col.Object), clip(ref))
}

// label finds a label by id, slug or name, of the workspace or the organization.
func (h *history[T]) label(c *Call, name string) (resource.Row, bool, error) {
	for _, sc := range []resource.Ref{{Scope: c.Scope}, {Scope: c.Organisation()}} {
		rows, err := c.Resources.List(c.Context, sc.Scope, h.Labels)
		if err != nil {
			return resource.Row{}, false, err
		}
		if n := slices.IndexFunc(rows, func(r resource.Row) bool { return r.ID == name || r.Slug == name || r.Name == name }); n >= 0 {
			return rows[n], true, nil
		}
	}
	return resource.Row{}, false, nil
}

// as returns the item with the content of a version; fields outside the content are unchanged.
func (h *history[T]) as(it Item[T], v *resource.Record) (Item[T], error) {
	rec := *it.Record
	rec.Body, rec.Version, rec.VersionID, rec.Sealed = v.Body, v.Version, v.VersionID, v.Sealed
	if h.Publish == "" { // of a plain history each version is as it was stored
		rec.Created, rec.Updated, rec.CreatedBy, rec.UpdatedBy = v.Created, v.Updated, v.CreatedBy, v.UpdatedBy
	} else if len(h.Of) > 0 {
		rec.Body = withContent(it.Body, v.Body, h.m.fields, h.Of)
	}
	form, err := readForm[T](h.col.Kind, &rec)
	return Item[T]{&rec, form}, err
}

// withContent is a stored form with the content of another.
func withContent(own, content json.RawMessage, fields []Field, of []string) json.RawMessage {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(own, &a) != nil || json.Unmarshal(content, &b) != nil {
		return content
	}
	for i := range fields {
		if f := &fields[i]; slices.Contains(of, f.Name) {
			delete(a, f.member())
			if v, ok := b[f.member()]; ok {
				a[f.member()] = v
			}
		}
	}
	out, err := json.Marshal(a)
	if err != nil {
		return content
	}
	return out
}
