package auditlogs

import (
	"encoding/json"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/instant"
	"gateway/shared/fault"
	"gateway/shared/resource"
)

func (f *family) stateRoute() admin.Route {
	text := func(name string, required bool, doc string) admin.Field {
		return admin.Field{Name: name, Type: admin.String, Min: 1, Max: maxText, Required: required, Doc: doc}
	}
	return admin.Route{
		Method: "GET", Path: "/audit-logs/state", Name: "getResourceState", Doc: "Read the state of a resource at a past time, from the audit log.",
		Scopes: []string{"audit_logs.list"}, Where: admin.InOrganisation, Errors: []int{404}, AnswerOf: admin.SchemaOf[state], Do: f.state,
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
	if q.Given("at") {
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
