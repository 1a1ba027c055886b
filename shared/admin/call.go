package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"gateway/shared/admin/replay"
	"gateway/shared/audit"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/seal/hostpin"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// Call is one authorized and validated request.
type Call struct {
	Context   context.Context
	Request   *http.Request
	RequestID string
	Route     *Route
	Caller    Caller
	Scope     store.Scope // where the call acts
	Query     Values
	Body      Values
	Items     []Values  // for routes that accept lists
	Now       time.Time // the time of the call; changes have their own

	Resources *resource.Resources
	Sealer    seal.Sealer

	params     map[string]string
	body       requestBody
	resourceID string
	audited    string            // resource type, when it is not the route's
	details    map[string]string // special fields of the audit record
	recorded   bool              // the audit record went with a change
	handler    *Handler
	rejections *Rejections // of a call that has no route
	reads      *Route      // GET of the same path; nil: there is none
	values     map[string]any
	action     string           // of the collection, such as read
	parent     *resource.Record // see Parent
	partial    bool             // a rehearsal does not list everything
	tracked    bool             // whether wrote is needed
	wrote      []replay.Record  // what the call created or changed
}

// SetValue holds a value for a later hook of the call, such as a secret that is
// shown in the response and stored nowhere.
func (c *Call) SetValue(name string, v any) {
	if c.values == nil {
		c.values = make(map[string]any)
	}
	c.values[name] = v
}

// Value returns the value that SetValue stored under a name, or nil.
func (c *Call) Value(name string) any { return c.values[name] }

// Param is a path variable, unescaped.
func (c *Call) Param(name string) string { return c.params[name] }

// SetResource sets the resource of the call in the audit log.
func (c *Call) SetResource(id string) { c.resourceID = id }

// AuditAs sets the resource type in the audit log, if it depends on the resource and not on the
// route alone.
func (c *Call) AuditAs(resourceType string) { c.audited = resourceType }

// AuditDetails are special fields of the call's audit record, with masked
// values. Set in a change, they are part of its record.
func (c *Call) AuditDetails(details map[string]string) { c.details = details }

// Organisation is the scope of the caller's organization.
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
	if !c.Caller.MayAccess(rec.ID) {
		return resource.Record{}, false, nil
	}
	return rec, true, nil
}

// where is what kind of scope the call acts in.
func (c *Call) where() Level {
	if c.Route.LevelOf != nil {
		return c.Route.LevelOf(c)
	}
	return c.Route.Level
}

// checkEach checks the objects of a list and gives the fields that are ignored.
func (c *Call) checkEach(list []map[string]json.RawMessage, p *problems) (ignored []string) {
	for i, raw := range list {
		var of problems
		v, more := checkFields(raw, c.Route.Body, creating, &of)
		p.addAll(fmt.Sprintf("[%d]", i), of.list)
		c.Items, ignored = append(c.Items, v), append(ignored, more...)
	}
	slices.Sort(ignored)
	return slices.Compact(ignored)
}

// SecretReferences returns what the caller may do with secret references: read them, as
// their routes require it, or only map them.
func (c *Call) SecretReferences() hostpin.Caller {
	reads := c.Caller.OfOrganisation() && c.Caller.AtLeast(Admin) && c.Caller.HasAny([]string{hostpin.ScopeRead})
	return hostpin.Caller{Reads: reads, Uses: reads || c.Caller.HasAny([]string{hostpin.ScopeUse})}
}

// checkAddresses returns a 400 if an update moves an Address while secrets of the record
// stay as they are. It compares the records as they are stored before and after the update.
func checkAddresses(fields []Field, in Values, old, rec *resource.Record) error {
	var ch hostpin.Change
	for i := range fields {
		if f := &fields[i]; f.Secret && !in.Has(f.Name) && rec.HasSecret(f.Name) {
			ch.Retained = append(ch.Retained, f.Name)
		}
	}
	if len(ch.Retained) == 0 {
		return nil
	}
	var was, now map[string]any
	if err := json.Unmarshal(old.Body, &was); err != nil {
		return err
	}
	if err := json.Unmarshal(rec.Body, &now); err != nil {
		return err
	}
	for i := range fields {
		if f := &fields[i]; f.Address {
			ch.Addresses = append(ch.Addresses, hostpin.Address{Field: f.Name, Was: textOfMember(was[f.member()]), Now: textOfMember(now[f.member()]), Open: true})
		}
	}
	return ch.Check()
}

// changesDetail is the detail of an audit record with the changes of an update:
// {"field":[before,after]}, secrets masked.
const changesDetail = "changes"

// maxChanges is the limit of that detail, in bytes; a longer one lists only the names of the
// fields.
const maxChanges = 4096

// NoteChanges adds what an update changed to the audit record of the call.
func NoteChanges(c *Call, diff map[string][2]any) {
	if len(diff) == 0 {
		return
	}
	raw, err := json.Marshal(diff)
	if err != nil || len(raw) > maxChanges {
		raw, _ = json.Marshal(sortedKeys(diff)) // texts
	}
	details := maps.Clone(c.details)
	if details == nil {
		details = make(map[string]string, 1)
	}
	details[changesDetail] = audit.MaskBody(raw)
	c.details = details
}

// changes compares a record before and after, field by field.
func changes(c *Call, fields []Field, old, rec *resource.Record) map[string][2]any {
	was, now := bodyOf(old), bodyOf(rec)
	out := map[string][2]any{}
	put := func(name string, before, after any) {
		a, errA := json.Marshal(before)
		b, errB := json.Marshal(after)
		if errA == nil && errB == nil && string(a) != string(b) {
			out[name] = [2]any{before, after}
		}
	}
	for i := range fields {
		f := &fields[i]
		switch {
		case f.Trigger:
		case f.Secret:
			if c.Body.Has(f.Name) {
				out["masked_"+f.Name] = [2]any{maskOf(was, f.Name), maskOf(now, f.Name)}
			}
		case f.Column:
			put(f.Name, columnOf(old, f.Name), columnOf(rec, f.Name))
		default:
			put(f.Name, was[f.member()], now[f.member()])
		}
	}
	return out
}

func bodyOf(rec *resource.Record) map[string]json.RawMessage {
	var body map[string]json.RawMessage
	_ = json.Unmarshal(rec.Body, &body) // no object: no fields to compare
	return body
}

func columnOf(rec *resource.Record, name string) any {
	switch name {
	case "name":
		return rec.Name
	case "slug":
		return rec.Slug
	case "status":
		return rec.Status
	}
	return rec.Tags
}
