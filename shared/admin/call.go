package admin

import (
	"context"
	"net/http"
	"time"

	"gateway/shared/admin/replay"
	"gateway/shared/audit"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// Call is one authorised and validated request.
type Call struct {
	Context   context.Context
	Request   *http.Request
	RequestID string
	Route     *Route
	Caller    Caller
	Scope     store.Scope // where the call acts
	Query     Values
	Body      Values
	Each      []Values  // for routes that accept lists
	Now       time.Time // the time of the call; changes have their own

	Resources *resource.Resources
	Sealer    seal.Sealer

	params     map[string]string
	body       sent
	resourceID string
	audited    string            // resource type, when it is not the route's
	details    map[string]string // special fields of the audit record
	recorded   bool              // the audit record went with a change
	handler    *Handler
	refusals   *Refusals // of a call that has no route
	reads      *Route    // GET of the same path; nil: there is none
	kept       map[string]any
	action     string           // of the collection, such as read
	parent     *resource.Record // see Parent
	partial    bool             // a rehearsal does not list everything
	tracked    bool             // whether wrote is needed
	wrote      []replay.Record  // what the call created or changed
}

// SetValue holds a value for a later hook of the call, such as a secret that is
// shown in the answer and stored nowhere.
func (c *Call) SetValue(name string, v any) {
	if c.kept == nil {
		c.kept = make(map[string]any)
	}
	c.kept[name] = v
}

// Value returns the value that SetValue stored under a name, or nil.
func (c *Call) Value(name string) any { return c.kept[name] }

// Param is a path variable, unescaped.
func (c *Call) Param(name string) string { return c.params[name] }

// About sets the resource of the call in the audit log.
func (c *Call) About(id string) { c.resourceID = id }

// AuditAs sets the resource type in the audit log, if it depends on the resource and not on the
// route alone.
func (c *Call) AuditAs(resourceType string) { c.audited = resourceType }

// AuditDetails are special fields of the call's audit record, with masked
// values. Set in a change, they are part of its record.
func (c *Call) AuditDetails(details map[string]string) { c.details = details }

// Organisation is the scope of the caller's organisation.
func (c *Call) Organisation() store.Scope { return c.Caller.Scope.Organisation() }

// Raw is the body as it was sent.
func (c *Call) Raw() []byte { return c.body.raw }

// ParentRecord is the resource that the call's is below; nil without one.
func (c *Call) ParentRecord() *resource.Record { return c.parent }

// Actor is who is written down as the author of a change.
func (c *Call) Actor() string {
	if c.Caller.UserID != "" {
		return c.Caller.UserID
	}
	return c.Caller.KeyID
}

// Change runs f as one transaction; the first one of a call carries the audit
// record of the call. f may run several times.
func (c *Call) Change(f func(*resource.Tx) error) error {
	return Rounds(c, func(tx *resource.Tx) (bool, error) { return false, f(tx) })
}

// ClientIP is the caller's address, for audit records.
func (c *Call) ClientIP() string {
	var e audit.Entry
	e.Describe(c.Request)
	return e.ClientIP
}

// entry is the audit record of the call.
func (c *Call) entry(status int) audit.Entry {
	e := audit.Entry{
		RequestID: c.RequestID, RequestBody: audit.MaskBody(c.body.raw),
		UserID: c.Caller.KeyID, UserType: audit.UserTypeAPIKey,
		WorkspaceID: c.Scope.Workspace, StatusCode: status,
		ResourceType: c.Route.Resource, Action: c.Route.Action, ResourceID: c.resourceID,
	}
	e.Describe(c.Request)
	if c.audited != "" {
		e.ResourceType = c.audited
	}
	if status < http.StatusBadRequest {
		e.Details = c.details
	}
	if c.Caller.UserID != "" {
		e.UserID, e.UserType, e.APIKeyID = c.Caller.UserID, audit.UserTypeUser, c.Caller.KeyID
	}
	return e
}

// Workspace finds a workspace that the caller reaches, by id or slug. One that
// does not exist and one out of reach are the same: ok is false.
func (c *Call) Workspace(idOrSlug string) (resource.Record, bool, error) {
	rec, ok, err := c.Resources.Get(c.Context, c.Organisation(), tenant.KindWorkspace, idOrSlug)
	if err != nil || !ok {
		return resource.Record{}, false, err
	}
	if !c.Caller.Reaches(rec.ID) {
		return resource.Record{}, false, nil
	}
	return rec, true, nil
}

// where is what kind of scope the call acts in.
func (c *Call) where() Where {
	if c.Route.WhereOf != nil {
		return c.Route.WhereOf(c)
	}
	return c.Route.Where
}
