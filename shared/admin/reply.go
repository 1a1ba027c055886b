package admin

import (
	"maps"
	"regexp"
	"slices"

	"gateway/shared/resource"
	"gateway/shared/store"
)

// Render is a record as reads of one show it.
func (col *Collection[T]) Render(c *Call, it Item[T]) (Members, error) {
	m, err := col.compile()
	if err != nil {
		return nil, err
	}
	return m.shower.show(c, it)
}

// shower makes the objects of responses.
type shower[T any] struct {
	col   *Collection[T]
	shape *shape
}

func (s shower[T]) show(c *Call, it Item[T]) (Members, error) {
	o, err := s.shape.render(c, it.stored(), false)
	if err != nil {
		return nil, err
	}
	return o, s.decorate(c, []Item[T]{it}, []Members{o})
}

// decorate adds what no record of a list or a response has itself.
func (s shower[T]) decorate(c *Call, items []Item[T], objects []Members) error {
	if l := s.col.Limits; l != nil {
		if err := l.Decorate(c, items, objects); err != nil {
			return err
		}
	}
	if s.col.Decorate != nil {
		return s.col.Decorate(c, items, objects)
	}
	return nil
}

// reply is what a create or an update answers.
func (s shower[T]) reply(c *Call, r *Reply, it Item[T], byDefault ...string) (any, error) {
	if r == nil && len(byDefault) == 0 {
		return nil, nil
	}
	if r == nil {
		r = &Reply{Members: byDefault}
	}
	o, err := s.show(c, it)
	if err != nil {
		return nil, err
	}
	return r.of(o), nil
}

// of are the fields of an object that are answered.
func (r *Reply) of(o Members) any {
	out := o
	if r.Members != nil {
		out = make(Members, len(r.Members))
		for _, name := range r.Members {
			if v, ok := o[name]; ok {
				out[name] = v
			}
		}
	}
	return wrapped(r.Wrapped, out)
}

// updateSchema describes what updates answer.
func (s shower[T]) updateSchema() Schema {
	plain := replySchema(s.shape, s.col.Updated)
	if v := s.col.Versions; v != nil && v.drafted() != nil {
		return Schema{"anyOf": []any{replySchema(s.shape, v.drafted()), plain}}
	}
	return plain
}

func replySchema(s *shape, r *Reply, byDefault ...string) Schema {
	switch {
	case r == nil && len(byDefault) == 0:
		return emptySchema
	case r == nil:
		return s.pick(slices.DeleteFunc(byDefault, func(name string) bool { return !s.has(name) }))
	case r.Members == nil:
		return wrappedSchema(r.Wrapped, s.schema(false))
	}
	return wrappedSchema(r.Wrapped, s.pick(r.Members))
}

// wrapped returns a response with the object under data and its fields at the top level,
// too: clients of this API read either.
func wrapped(yes bool, v any) any {
	if !yes {
		return v
	}
	out := Members{}
	if m, ok := v.(Members); ok {
		maps.Copy(out, m)
	}
	out["success"], out["data"] = true, v
	return out
}

// wrappedSchema documents wrapped.
func wrappedSchema(yes bool, s Schema) Schema {
	if !yes {
		return s
	}
	members, _ := s["properties"].(map[string]Schema)
	all := maps.Clone(members)
	if all == nil {
		all = map[string]Schema{}
	}
	all["success"], all["data"] = Schema{"type": "boolean"}, s
	out := Closed(all)
	required, _ := s["required"].([]string)
	out["required"] = append([]string{"data", "success"}, required...)
	return out
}

// Parent is the resource that the resources of a collection belong to: members of a workspace,
// capabilities of a server, entities of a policy. These are found only through their parent,
// have separate ids, lists and counts, and are deleted with it.
//
// A collection that names no scopes uses the parent's: callers that may read the parent read
// what is below it, and callers that may update the parent change it. It is always in the
// parent's scope.
type Parent struct {
	// ready compiles the parent; describe gives the child what it takes from it.
	ready    func() error
	where    func() Level
	scopes   func(action string) []string
	resource func() string
	// adopt notes a kind of children.
	adopt func(child resource.Kind)
	// enter finds the parent that the path names, by the rules of its family, and
	// moves the call to its scope.
	enter func(c *Call) error
	// inside puts the children into the scope of a workspace, which is the parent.
	inside bool
	// inherits states that the child uses the parent's scopes.
	inherits bool
}

// ofChild is the action on a parent for a child with separate scopes.
const ofChild = "child"

// AsParent is a collection as the parent of one other; the path of that one has
// the variable of this one's items. Its children are deleted before it is.
func (col *Collection[T]) AsParent() *Parent {
	p := &Parent{
		ready:    func() error { _, err := col.compile(); return err },
		where:    func() Level { return col.Level },
		scopes:   func(action string) []string { return col.ScopesFor(action) },
		resource: func() string { return col.resource() },
		adopt:    func(child resource.Kind) { col.children = append(col.children, child) },
	}
	p.enter = func(c *Call) error {
		action := ofChild
		if p.inherits || col.Levels == nil {
			action = overParent(c.action, c.Route)
		}
		own := c.action
		if err := col.enter(c, action); err != nil {
			return err
		}
		c.action = "read"
		it, err := col.Find(c)
		c.action, c.parent = own, it.Record
		if err == nil {
			c.Scope = it.Scope
		}
		return err
	}
	return p
}

// overParent is what an action on a child is for its parent.
func overParent(action string, r *Route) string {
	if r != nil && r.changes() || r == nil && action != "list" && action != "read" {
		return "update"
	}
	return "read"
}

// describe gives a collection what it takes from its parent.
func (p *Parent) describe(kind resource.Kind, where *Level, scopes *func(string) []string, scope, audited *string) error {
	if err := p.ready(); err != nil {
		return err
	}
	p.adopt(kind)
	if *where == 0 {
		*where = p.where()
	}
	if p.inherits = *scope == "" && *scopes == nil; p.inherits {
		*scopes = func(action string) []string { return p.scopes(overParent(action, nil)) }
		if *audited == "" {
			*audited = p.resource()
		}
	}
	return nil
}

// AsWorkspace is AsParent for workspaces: the resources below them are in their scope.
func (col *Collection[T]) AsWorkspace() *Parent {
	p := col.AsParent()
	p.inside, p.adopt = true, func(resource.Kind) {} // deleting a workspace deletes its contents
	find := p.enter
	p.enter = func(c *Call) error {
		if err := find(c); err != nil {
			return err
		}
		c.Scope = store.Scope{Org: c.Scope.Org, Workspace: c.parent.ID}
		return nil
	}
	return p
}

// kindOf is the kind of the children of the call's parent.
func (p *Parent) kindOf(c *Call, child resource.Kind) resource.Kind {
	if p.inside {
		return child
	}
	return child.Of(c.parent.ID)
}

// rowsOfChild is how many rows a child takes at most when it is removed.
const rowsOfChild = 5

// Empty removes the children of a kind that a record has, before it is removed
// itself.
func Empty(c *Call, parent resource.Ref, child resource.Kind) error {
	return Drain(c, parent.Scope, child.Of(parent.ID), rowsOfChild, func(tx *resource.Tx, rec *resource.Record) error { return tx.Delete(rec) })
}

// finder finds the record that a path names.
type finder[T any] struct{ col *Collection[T] }

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// IsUUID reports whether s has the form of a UUID.
func IsUUID(s string) bool { return uuidForm.MatchString(s) }

// Find reads the record that the path names, with its form. Custom actions use it; the error is
// the family's response for inaccessible resources.
func (col *Collection[T]) Find(c *Call) (Item[T], error) {
	return finder[T]{col}.find(c, func(sc store.Scope, k resource.Kind, id string) (resource.Record, bool, error) {
		return c.Resources.Get(c.Context, sc, k, id)
	})
}

// FindIn is Find within a change.
func (col *Collection[T]) FindIn(c *Call, tx *resource.Tx) (Item[T], error) {
	return finder[T]{col}.find(c, tx.Get)
}

func (f finder[T]) find(c *Call, get func(store.Scope, resource.Kind, string) (resource.Record, bool, error)) (Item[T], error) {
	col := f.col
	rec, err := sought{col.kind(c), col.param(), col.Versions != nil, col.UUIDOnly, col.ArchivedReachable, col.Authorize}.find(c, get)
	if err != nil {
		return Item[T]{}, err
	}
	if rec == nil {
		return Item[T]{}, col.missing()
	}
	form, err := readForm[T](col.Kind, rec)
	return Item[T]{rec, form}, err
}

// sought specifies which record a path names.
type sought struct {
	kind               resource.Kind
	param              string
	versions, uuidOnly bool
	archived           bool // these are found, too
	may                func(c *Call, action string, row *resource.Row) bool
}

// find gives the record; nil: it is out of the caller's reach.
func (s sought) find(c *Call, get func(store.Scope, resource.Kind, string) (resource.Record, bool, error)) (*resource.Record, error) {
	id := c.Param(s.param)
	if s.versions {
		id, _ = reference(id)
	}
	c.SetResource(id)
	if s.uuidOnly && !IsUUID(id) {
		return nil, nil
	}
	rec, ok, err := get(c.Scope, s.kind, id)
	if err != nil {
		return nil, err
	}
	row := rec.Row()
	if !ok || (rec.Archived() && !s.archived) || (s.may != nil && !s.may(c, c.action, &row)) {
		return nil, nil
	}
	c.SetResource(rec.ID)
	return &rec, nil
}

func (f finder[T]) read(c *Call) (any, error) {
	it, err := f.col.Find(c)
	if err != nil {
		return nil, err
	}
	if past := f.col.made.past; past != nil {
		if it, err = past.at(c, it); err != nil {
			return nil, err
		}
	}
	o, err := f.col.Render(c, it)
	if err != nil {
		return nil, err
	}
	return wrapped(f.col.Wrapped, o), nil
}
