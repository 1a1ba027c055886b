// Package auditlogs is the family that reads the audit log. It requires an organization key,
// because the log covers all workspaces. No route changes or deletes a record, and reading
// creates none.
package auditlogs

import (
	"encoding/json"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/instant"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
)

// Bounds of the list.
const (
	pageSize  = 100    // default and most
	maxReach  = 10_000 // entries that can be reached by page; further ones by cursor
	maxText   = 255
	maxURI    = 2048
	minStatus = 100
	maxStatus = 599
)

type family struct{ reader *audit.Reader }

// New makes the family.
func New(r *audit.Reader) admin.Family {
	f := &family{r}
	return admin.Family{Name: "auditlogs", Doc: "Who changed what in the administration. A record appears about a second after its change.", Routes: []admin.Route{{
		Method: "GET", Path: "/audit-logs", Name: "listAuditLogs", Doc: "List audit records, newest first.",
		Scopes: []string{"audit_logs.list"}, Level: admin.InOrganisation, Query: query(), ResponseOf: admin.SchemaOf[response], Do: f.list,
	}, f.stateRoute()}}
}

func query() []admin.Field {
	text := func(name, doc string) admin.Field {
		return admin.Field{Name: name, Type: admin.String, Max: maxText, Doc: doc}
	}
	return []admin.Field{
		instant.Field("start_time", "Start of the time range.", true),
		instant.EndField("end_time", "End of the time range, inclusive.", true),
		text("organisation_id", "Organization; must be that of the key, which is the default."),
		{Name: "method", Type: admin.String, Enum: []string{"POST", "PUT", "DELETE"}},
		{Name: "uri", Type: admin.String, Max: maxURI, Doc: "Prefix of the requested path, such as /v1/configs."},
		text("request_id", "Id of the request, as in its response header."),
		text("user_id", "User, or id of the API key."),
		{Name: "user_type", Type: admin.String, Enum: []string{audit.UserTypeUser, audit.UserTypeAPIKey}},
		text("workspace_id", "Workspace, by id or slug."),
		{Name: "response_status_code", Type: admin.Integer, Min: minStatus, Max: maxStatus, Doc: "Status that the caller received."},
		text("resource_type", "Family of the changed resource, such as configs."),
		text("action", "Action, such as create, update or delete."),
		text("client_ip", "Address of the caller."),
		text("country", "Country of the caller."),
		{Name: "current_page", Type: admin.Integer, Max: maxReach, Default: 0, Doc: "Number of the page; the first is 0."},
		{Name: "page_size", Type: admin.Integer, Max: pageSize, Default: pageSize, Doc: "Records per page; 0 returns only the total."},
		text("cursor", "next_cursor of the previous page, instead of current_page."),
	}
}

func (f *family) list(c *admin.Call) (any, error) {
	filter, err := read(c)
	if err != nil {
		return nil, err
	}
	got, err := f.reader.List(c.Context, c.Scope.Org, filter)
	if err != nil {
		return nil, err
	}
	return response{shown(got.Records), "analytics-graph", got.Total, got.TotalIsLowerBound, got.Next}, nil
}

// response is a page of the log.
type response struct {
	Records    []entry `json:"records"`
	Object     string  `json:"object" enum:"analytics-graph"`
	Total      int     `json:"total" doc:"Records over all pages, counted up to 10,000; with a cursor, those after it."`
	LowerBound bool    `json:"total_is_lower_bound,omitempty" doc:"There may be more than total."`
	Next       string  `json:"next_cursor,omitempty" doc:"Absent on the last page."`
}

// entry is an audit record as responses show it. Its time always has milliseconds, even if
// they are 0, so that times compare as texts.
type entry struct {
	audit.Entry
	Timestamp admin.Instant `json:"timestamp"`
}

func shown(entries []audit.Entry) []entry {
	out := make([]entry, len(entries))
	for i := range entries {
		out[i] = entry{entries[i], admin.Instant(entries[i].Timestamp)}
	}
	return out
}

// read turns the query into a filter.
func read(c *admin.Call) (audit.Filter, error) {
	q := c.Query
	start, end, reversed := instant.Range(q, "start_time", "end_time")
	f := audit.Filter{
		Start: start, End: end, Method: q.Text("method"), URI: q.Text("uri"), RequestID: q.Text("request_id"),
		UserID: q.Text("user_id"), UserType: q.Text("user_type"), WorkspaceID: q.Text("workspace_id"), StatusCode: int(q.Int("response_status_code")),
		ResourceType: q.Text("resource_type"), Action: q.Text("action"), ClientIP: q.Text("client_ip"), Country: q.Text("country"),
		Page: int(q.Int("current_page")), Size: pageSize, Cursor: q.Text("cursor"),
	}
	if q.HasValue("page_size") {
		f.Size = int(q.Int("page_size"))
	}
	switch {
	case reversed != nil:
		return f, fault.Invalids([]fault.Detail{*reversed})
	case f.Cursor != "" && f.Page > 0:
		return f, fault.Invalid("cursor", "cannot be given together with current_page")
	case (f.Page+1)*f.Size > maxReach:
		return f, fault.Invalid("current_page", "reaches beyond entry %d; narrow the time, or follow next_cursor", maxReach)
	}
	if f.WorkspaceID == "" {
		return f, nil
	}
	ws, ok, err := c.Workspace(f.WorkspaceID)
	if ok {
		f.WorkspaceID = ws.ID
	}
	return f, err
}

func (f *family) stateRoute() admin.Route {
	text := func(name string, required bool, doc string) admin.Field {
		return admin.Field{Name: name, Type: admin.String, Min: 1, Max: maxText, Required: required, Doc: doc}
	}
	return admin.Route{
		Method: "GET", Path: "/audit-logs/state", Name: "getResourceState", Doc: "Read the state of a resource at a past time, from the audit log.",
		Scopes: []string{"audit_logs.list"}, Level: admin.InOrganisation, Errors: []int{404}, ResponseOf: admin.SchemaOf[state], Do: f.state,
		Query: []admin.Field{
			text("type", true, "Resource type: the resource_type of audit records, or the type in responses of this route, such as configs or config."),
			text("id", true, "Its id, which is the resource_id of audit records."),
			instant.Field("at", "The time; default: now.", false),
			text("workspace_id", false, "Workspace, by id or slug, for resources with the same id in several workspaces, such as settings."),
		},
	}
}

// state is a resource as it was.
type state struct {
	Object    string            `json:"object" enum:"resource-state"`
	Type      string            `json:"type"`
	ID        string            `json:"id"`
	Workspace *string           `json:"workspace_id"`
	Since     admin.Instant     `json:"since" doc:"Time of the change that produced this state."`
	Deleted   bool              `json:"deleted"`
	Slug      string            `json:"slug,omitempty"`
	Name      string            `json:"name,omitempty"`
	Status    string            `json:"status,omitempty"`
	Version   int64             `json:"version,omitempty"`
	VersionID string            `json:"version_id,omitempty"`
	Labels    map[string]int64  `json:"labels,omitempty"`
	Tags      map[string]string `json:"tags,omitempty"`
	Created   *admin.Instant    `json:"created_at,omitempty"`
	Updated   *admin.Instant    `json:"last_updated_at,omitempty"`
	CreatedBy string            `json:"created_by,omitempty"`
	UpdatedBy string            `json:"updated_by,omitempty"`
	Resource  map[string]any    `json:"resource" doc:"The stored resource, secrets masked."`
	Cut       bool              `json:"resource_cut,omitempty" doc:"It was too large for the audit log."`
}

// otherNames are types that the audit log calls otherwise than the stored kind.
var otherNames = map[string]string{
	"virtual_keys": "provider", "organisation_settings": "organisation", "workspace_users": "member", "policies": "policy",
}

// isType reports whether a caller's type name denotes a kind: config, configs, or the longer
// names of scopes that distinguish levels, such as workspace_service_api_keys.
func isType(kind resource.Kind, name string) bool {
	name = strings.ToLower(name)
	if other, ok := otherNames[name]; ok {
		name = other
	}
	plain := func(s string) string { return strings.ReplaceAll(strings.TrimSuffix(strings.ToLower(s), "s"), "_", "") }
	k, _, _ := strings.Cut(string(kind), "@") // kinds below a parent
	return strings.HasSuffix(plain(name), plain(k)) || strings.HasSuffix(plain(k), plain(name))
}

func typeName(kind resource.Kind) string {
	k, _, _ := strings.Cut(string(kind), "@")
	return strings.ToLower(k)
}

func (f *family) state(c *admin.Call) (any, error) {
	q := c.Query
	at := time.Now()
	if q.HasValue("at") {
		at = instant.Of(q, "at")
	}
	workspace := ""
	if named := q.Text("workspace_id"); named != "" {
		ws, ok, err := c.Workspace(named)
		if err != nil {
			return nil, err
		}
		if workspace = named; ok {
			workspace = ws.ID
		}
	}
	s, ok, err := f.reader.At(c.Context, c.Scope.Org, q.Text("id"), at, func(k resource.Kind, ws string) bool {
		return isType(k, q.Text("type")) && (workspace == "" || ws == workspace)
	})
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.New(fault.NotFound, "id", "The audit log contains no such resource at this time")
	}
	out := state{
		Object: "resource-state", Type: typeName(s.Kind), ID: s.ID, Since: admin.Instant(time.Unix(0, s.At).UTC()), Deleted: s.Deleted,
		Slug: s.Slug, Name: s.Name, Status: s.Status, Version: s.Version, VersionID: s.VersionID, Labels: s.Labels, Tags: s.Tags,
		CreatedBy: s.CreatedBy, UpdatedBy: s.UpdatedBy, Cut: s.Cut, Resource: map[string]any{},
	}
	if s.Workspace != "" {
		out.Workspace = &s.Workspace
	}
	if !s.Deleted {
		created, updated := admin.Instant(s.Created), admin.Instant(s.Updated)
		out.Created, out.Updated = &created, &updated
	}
	if len(s.Body) > 0 {
		if err := json.Unmarshal(s.Body, &out.Resource); err != nil {
			return nil, fault.Internal(err)
		}
	}
	return out, nil
}
