package admin

import (
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Parent is the resource that the resources of a collection belong to: members
// of a workspace, capabilities of a server, entities of a policy. They are found
// through it only, have ids, lists and counts of their own, and go with it.
type Parent struct {
	// enter finds the parent that the path names, by the rules of its family, and
	// moves the call to its scope.
	enter func(c *Call) error
	// adopt notes a kind of children.
	adopt func(child resource.Kind)
	// inside puts the children into the scope of a workspace, which is the parent.
	inside bool
}

// AsParent is a collection as the parent of another; the path of that one has
// the variable of this one's items. Its children are deleted before it is.
func (col *Collection[T]) AsParent() *Parent {
	adopt := func(child resource.Kind) { col.children = append(col.children, child) }
	return &Parent{adopt: adopt, enter: func(c *Call) error {
		action := c.action
		if err := col.enter(c, "read"); err != nil {
			return err
		}
		it, err := col.Find(c)
		c.action, c.parent = action, it.Record
		if err == nil {
			c.Scope = it.Scope
		}
		return err
	}}
}

// AsWorkspace is AsParent for workspaces: what is below them is in their scope.
func (col *Collection[T]) AsWorkspace() *Parent {
	p := col.AsParent()
	p.inside, p.adopt = true, func(resource.Kind) {} // a workspace that goes takes along what is in it
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
