// Package policed finds the limits that the policies of a workspace set for a
// request: those that its own facts decide before anything is routed, and those that
// depend on the target, which are looked for at each.
package policed
