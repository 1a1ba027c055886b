package admin

import (
	"errors"
	"maps"
	"net/http"
	"slices"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
)

// dryRun is the query parameter, and the member of the answer, of a rehearsed deletion.
const dryRun = "dry_run"

// maxImpact limits the resources that a rehearsed deletion lists.
const maxImpact = 1000

// impact is what a deletion would do.
type impact struct {
	Blocked  *string    `json:"blocked" doc:"Why the deletion would be rejected now; null if it would not."`
	UsedBy   []affected `json:"used_by" doc:"Resources that refer to it and would stop working. They prevent the deletion."`
	Deletes  []affected `json:"deletes" doc:"What would be deleted or archived."`
	Changes  []affected `json:"changes" doc:"What would be changed."`
	Complete bool       `json:"complete" doc:"Whether everything is listed."`
}

// affected is a resource that a deletion concerns.
type affected struct {
	Type        string  `json:"type"`
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	WorkspaceID *string `json:"workspace_id" doc:"null for resources of the organization."`
}

// rehearsable reports whether the route deletes a resource. Routes of other protocols and
// those about the caller's own sessions do not count.
func (r *Route) rehearsable() bool {
	return r.Method == http.MethodDelete && r.Action == audit.Delete && r.Refusals == nil && r.Authenticate == nil
}

// describeRehearsal adds the parameter and the answer of a rehearsal to a route. It changes a
// route once.
func (r *Route) describeRehearsal() {
	if !r.rehearsable() || slices.ContainsFunc(r.Query, func(f Field) bool { return f.Name == dryRun }) {
		return
	}
	r.Query = append(slices.Clone(r.Query), Field{Name: dryRun, Type: Boolean, Default: false, Doc: "true deletes nothing and returns what would be deleted, changed, or stop working."})
	plain, of := r.Answer, r.AnswerOf
	r.Answer, r.AnswerOf = nil, func() Schema {
		if plain == nil && of != nil {
			return withRehearsal(of())
		}
		return withRehearsal(plain)
	}
}

// withRehearsal adds the answer of a rehearsal to the schema of a deletion's.
func withRehearsal(plain Schema) Schema {
	would := SchemaOf[impact]()
	would["description"] = "Of a dry run, alone."
	if required, ok := plain["required"].([]string); ok && len(required) > 0 {
		return Schema{"anyOf": []any{plain, Closed(map[string]Schema{dryRun: would})}}
	}
	out, properties := Schema{"type": "object"}, map[string]Schema{}
	maps.Copy(out, plain)
	if was, ok := plain["properties"].(map[string]Schema); ok {
		maps.Copy(properties, was)
	}
	properties[dryRun] = would
	out["properties"] = properties
	return out
}

// rehearse executes a deletion without committing any change, and returns what it would do.
func rehearse(c *Call) (any, error) {
	var would resource.Rehearsal
	c.recorded = true // nothing happens that could be recorded
	c.Context = resource.WithRehearsal(c.Context, &would)
	_, err := c.Route.Do(c)
	out := impact{Complete: !c.partial, UsedBy: []affected{}}
	switch f := fault.From(err); {
	case err == nil:
		out.Deletes, out.Changes = affectedBy(would.Deleted), affectedBy(would.Updated)
	case f.Code != fault.Conflict:
		return nil, err
	default:
		out.Blocked, out.Deletes, out.Changes = &f.Message, []affected{}, []affected{}
		var used *resource.UsedError
		if errors.As(err, &used) {
			out.UsedBy = affectedBy(used.Users)
		}
	}
	for _, list := range []*[]affected{&out.UsedBy, &out.Deletes, &out.Changes} {
		if len(*list) > maxImpact {
			*list, out.Complete = (*list)[:maxImpact], false
		}
	}
	return Answer{Status: http.StatusOK, JSON: Members{dryRun: out}}, nil
}

// affectedBy describes records, each once.
func affectedBy(refs []resource.Ref) []affected {
	out, seen := []affected{}, map[resource.Ref]bool{}
	for _, r := range refs {
		if seen[r] {
			continue
		}
		seen[r] = true
		a := affected{Type: r.Type(), ID: r.ID, Name: r.Name}
		if r.Scope.Workspace != "" {
			a.WorkspaceID = &r.Scope.Workspace
		}
		out = append(out, a)
	}
	return out
}
