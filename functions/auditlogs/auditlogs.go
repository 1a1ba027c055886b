// Package auditlogs is the family that reads the audit log. It requires an organization key,
// because the log covers all workspaces. No route changes or deletes a record, and reading
// creates none.
package auditlogs

import (
	"gateway/shared/admin"
	"gateway/shared/admin/instant"
	"gateway/shared/audit"
	"gateway/shared/fault"
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
		Scopes: []string{"audit_logs.list"}, Where: admin.InOrganisation, Query: query(), AnswerOf: admin.SchemaOf[answer], Do: f.list,
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
	return answer{shown(got.Records), "analytics-graph", got.Total, got.TotalIsLowerBound, got.Next}, nil
}

// answer is a page of the log.
type answer struct {
	Records    []entry `json:"records"`
	Object     string  `json:"object" enum:"analytics-graph"`
	Total      int     `json:"total" doc:"Records over all pages, counted up to 10,000; with a cursor, those after it."`
	LowerBound bool    `json:"total_is_lower_bound,omitempty" doc:"There may be more than total."`
	Next       string  `json:"next_cursor,omitempty" doc:"Absent on the last page."`
}

// entry is an audit record as answers show it. Its time always has milliseconds, even if
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
	if q.Given("page_size") {
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
