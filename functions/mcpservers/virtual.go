package mcpservers

import (
	"fmt"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/mcp"
	"gateway/shared/resource"
)

// bundle validates a virtual server and resolves its members, which are stored by id. virtual
// is false for the server of an integration.
func (f *family) bundle(c *admin.Call, tx *resource.Tx, ch *serverChange) (virtual bool, err error) {
	if !ch.Form.Virtual() && !ch.Was.Virtual() {
		if ch.Creates() && c.Body.Has("members") && !c.Body.Given("mcp_integration_id") {
			return false, fault.Invalid("members", "must name at least one server")
		}
		for _, name := range []string{"members", "search", "search_threshold"} {
			if c.Body.Given(name) {
				return false, fault.Invalid(name, "is for virtual servers, which have members and no integration")
			}
		}
		return false, nil
	}
	switch {
	case ch.Creates() && c.Body.Given("mcp_integration_id"):
		return true, fault.Invalid("members", "cannot be given together with mcp_integration_id")
	case !ch.Creates() && !ch.Was.Virtual():
		return true, fault.Invalid("members", "is for virtual servers: this one is that of an integration")
	case !ch.Form.Virtual():
		return true, fault.Invalid("members", "must name at least one server")
	case !c.Body.Has("members"):
		return true, nil
	}
	bad, err := found(tx, ch)
	if err != nil {
		return true, err
	}
	if bad == nil {
		bad = ch.Form.CheckMembers()
	}
	if invalid := fault.Invalids(bad); invalid != nil {
		return true, invalid
	}
	return true, nil
}

// found replaces the names of members by their ids, and returns faults for missing ones.
// Members of another workspace are missing.
func found(tx *resource.Tx, ch *serverChange) (bad []fault.Detail, err error) {
	ch.Form.Members = slices.Clone(ch.Form.Members)
	for i := range ch.Form.Members {
		m := &ch.Form.Members[i]
		field := fmt.Sprintf("members[%d].server", i)
		rec, ok, err := tx.Get(ch.Rec.Scope, mcp.KindServer, m.Server)
		if err != nil {
			return nil, err
		}
		if !ok || rec.Archived() {
			bad = append(bad, fault.Detail{Field: field, Message: "is no MCP server of the workspace"})
			continue
		}
		form, err := mcp.DecodeServer(rec)
		if err != nil {
			return nil, err
		}
		if form.Virtual() {
			bad = append(bad, fault.Detail{Field: field, Message: "is a virtual server: name the servers that it has"})
		}
		m.Server = rec.ID
	}
	return bad, nil
}

// link stages the references of a server, which prevent their deletion.
func link(tx *resource.Tx, ch *serverChange) error {
	by := ch.Rec.Ref()
	now := ch.Form.Uses(ch.Rec.Scope)
	var was []resource.Ref
	if !ch.Creates() {
		was = ch.Was.Uses(ch.Rec.Scope)
	}
	for _, of := range was {
		if !slices.Contains(now, of) {
			if err := tx.Unuse(of, by); err != nil {
				return err
			}
		}
	}
	for _, of := range now {
		if !slices.Contains(was, of) {
			if err := tx.Use(of, by); err != nil {
				return err
			}
		}
	}
	return nil
}
