package admin

import (
	"gateway/shared/resource"
	"gateway/shared/store"
)

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
	where    func() Where
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
		where:    func() Where { return col.Where },
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
func (p *Parent) describe(kind resource.Kind, where *Where, scopes *func(string) []string, scope, audited *string) error {
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
