// Package logs is the family that reads logs: the list, and one log with its request and
// response.
//
// A log appears about a second after its request ended, because a worker stores records in
// batches. Until then its id does not exist.
package logs

import (
	"iter"
	"slices"
	"time"

	"gateway/functions/logs/ingest"
	"gateway/shared/admin"
	"gateway/shared/admin/usagequery"
	"gateway/shared/blob"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/route"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/usage"
	"gateway/shared/usage/export"
	"gateway/shared/usage/feedback"
	"gateway/shared/usage/report"
)

// Bounds of the list.
const (
	pageSize    = 50
	maxPageSize = 1000
	maxReach    = 50_000 // entries that can be reached by page; further ones by cursor
	maxCursor   = 255
)

// defaultSpan is how far the list looks back when no beginning is given.
const defaultSpan = 30 * 24 * time.Hour

// Deps is what the family works with.
type Deps struct {
	Reader  *report.Reader
	Sealer  seal.Sealer     // opens the bodies of logs
	Rated   *feedback.Store // client feedback
	Exports *export.Runs
	Bucket  blob.Bucket // of the files of exports
	Tail    TailOptions
	// Prices is what simulations price by; nil: the list that comes with the gateway.
	Prices *pricing.Book
	Ingest *ingest.Maker // accepts reports of requests made elsewhere
	// Store has the rows that remember which spans of a trace were counted.
	Store store.Store
}

// family is the description with what answers it.
type family struct {
	Deps
	simulating turns
}

// New makes the family.
func New(d Deps) admin.Family {
	return (&family{Deps: d}).describe()
}

func (f *family) describe() admin.Family {
	return admin.Family{Name: "logs", Doc: "Logs of requests and responses. A log appears about a second after its request ended.", Routes: append(slices.Concat(f.exportRoutes(), []admin.Route{f.tailRoute(), f.insertRoute(), f.simulations()}, f.otelRoutes(), views().Routes()), []admin.Route{
		{
			Method: "GET", Path: "/logs", Name: "listLogs", Doc: "List logs, newest first, without their bodies.",
			Scopes: []string{"logs.list"}, Level: admin.InEither, Query: listQuery(), ResponseOf: admin.SchemaOf[list], Do: f.list,
		},
		{
			Method: "GET", Path: "/logs/{logId}", Name: "getLog", Doc: "Read a log with its bodies. Secrets in headers are masked. A key without logs.read and logs.view reads the logs of its own requests.",
			Scopes: []string{"logs.read", "logs.view", "completions.write", "logs.write"}, Level: admin.InEither, Query: readQuery(), ResponseOf: admin.SchemaOf[log], Do: f.read,
		},
		{
			Method: "GET", Path: "/logs/{logId}/explain", Name: "explainLog", Doc: "Read why each target was chosen, skipped, retried or rejected.",
			Scopes: []string{"logs.read", "logs.view", "completions.write", "logs.write"}, Level: admin.InEither, Query: readQuery(), ResponseOf: admin.SchemaOf[explanation], Do: f.explain,
		},
	}...)}
}

func listQuery() []admin.Field {
	q := usagequery.Fields(false)
	q[0].Doc += " When absent: 30 days before the end."
	q[1].Doc += " When absent: now."
	q = append(q, usagequery.PageFields(pageSize, maxPageSize)...)
	return append(q, admin.Field{Name: "cursor", Type: admin.String, Max: maxCursor, Doc: "next_cursor of the previous page, instead of current_page."})
}

// readQuery lets organization keys name the workspace by its slug.
func readQuery() []admin.Field {
	for _, f := range usagequery.Fields(false) {
		if f.Name == "workspace_slug" {
			return []admin.Field{f}
		}
	}
	return nil
}

func (f *family) list(c *admin.Call) (any, error) {
	sc, err := usagequery.Scope(c)
	if err != nil {
		return nil, err
	}
	q, limit, err := readList(c)
	if err != nil {
		return nil, err
	}
	if err := usagequery.Restrict(c, &q.Filter); err != nil {
		return nil, err
	}
	if err := usagequery.Rated(c, f.Rated, sc, &q.Filter, usagequery.MaxFeedback); err != nil {
		return nil, err
	}
	page, err := f.Reader.Logs(c.Context, sc, &q)
	if err != nil {
		return nil, usagequery.Failed(err)
	}
	out := list{Object: "list", Total: int64(page.Total), LowerBound: page.TotalIsLowerBound, Data: []row{}}
	if limit == 0 {
		return out, nil
	}
	org, err := organisationName(c)
	if err != nil {
		return nil, err
	}
	versions, spaces := configVersions{}, workspaceNames{}
	if err := spaces.read(c, func(yield func(string) bool) {
		for i := range page.Records {
			if !yield(page.Records[i].Workspace) {
				return
			}
		}
	}); err != nil {
		return nil, err
	}
	for i := range page.Records {
		r := &page.Records[i]
		version, err := versions.id(c, r)
		if err != nil {
			return nil, err
		}
		m := fieldsOf(r, org, version)
		m.WorkspaceName = admin.NullIfZero(spaces[r.Workspace])
		out.Data = append(out.Data, row{m, admin.Instant(r.Start), "log"})
	}
	out.Next = page.Next
	return out, nil
}

// list is a page of logs.
type list struct {
	Object     string `json:"object" enum:"list"`
	Total      int64  `json:"total" doc:"Logs over all pages, counted up to 10,000."`
	LowerBound bool   `json:"total_is_lower_bound,omitempty" doc:"There are more than total."`
	Next       string `json:"next_cursor,omitempty" doc:"Absent on the last page."`
	Data       []row  `json:"data"`
}

// readList reads the query of the list. limit is the size of the page, which
// may be 0.
func readList(c *admin.Call) (q report.LogQuery, limit int, err error) {
	if q.Filter, err = usagequery.Filter(c.Query); err != nil {
		return q, 0, err
	}
	if q.To.IsZero() {
		q.To = c.Now
	}
	if q.From.IsZero() {
		q.From = q.To.Add(-defaultSpan)
	}
	if wrong := fault.Invalids(q.Validate(usagequery.From, usagequery.To)); wrong != nil {
		return q, 0, wrong
	}
	q.Offset, limit = usagequery.Page(c.Query, pageSize)
	q.Limit, q.Cursor = max(limit, 1), c.Query.Text("cursor")
	switch {
	case q.Cursor != "" && q.Offset > 0:
		return q, 0, fault.Invalid("cursor", "cannot be given together with current_page")
	case q.Offset+limit > maxReach:
		return q, 0, fault.Invalid("current_page", "reaches beyond entry %d; narrow the time, or follow next_cursor", maxReach)
	}
	return q, limit, nil
}

func organisationName(c *admin.Call) (string, error) {
	org := c.Organisation()
	rec, ok, err := c.Resources.Get(c.Context, org, tenant.KindOrganisation, org.Org)
	if err != nil || !ok {
		return "", err
	}
	return rec.Name, nil
}

// workspaceNames are the names of workspaces by their ids; "" for one that is not there.
type workspaceNames map[string]string

// read reads those of ids that were not read before, together.
func (w workspaceNames) read(c *admin.Call, ids iter.Seq[string]) error {
	var missing []string
	for id := range ids {
		if _, known := w[id]; !known && id != "" {
			w[id], missing = "", append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	recs, err := c.Resources.GetMany(c.Context, c.Organisation(), tenant.KindWorkspace, missing)
	for i := range recs {
		w[recs[i].ID] = recs[i].Name
	}
	return err
}

// readScopes allow reading the logs of all keys. A key with another scope of the route, such as
// completions.write, reads only the logs of its own requests.
var readScopes = []string{"logs.read", "logs.view"}

func (f *family) record(c *admin.Call) (usage.Record, error) {
	sc, err := usagequery.Scope(c)
	if err != nil {
		return usage.Record{}, err
	}
	rec, ok, err := f.Reader.Log(c.Context, sc, c.Param("logId"))
	if err != nil {
		return usage.Record{}, usagequery.Failed(err)
	}
	if ok {
		if ok, err = usagequery.MayView(c, &rec); err != nil {
			return usage.Record{}, err
		}
		ok = ok && (c.Caller.HasAny(readScopes) || rec.KeyID == c.Caller.KeyID)
	}
	if !ok {
		return usage.Record{}, fault.New(fault.NotFound, "logId", "This log does not exist; logs appear about a second after their request ended")
	}
	return rec, nil
}

func (f *family) read(c *admin.Call) (any, error) {
	rec, err := f.record(c)
	if err != nil {
		return nil, err
	}
	bodies, err := c.AllowsView(tenant.SeeBodies)
	if err != nil {
		return nil, err
	}
	var content content
	if bodies {
		if content, err = f.open(c.Context, &rec); err != nil {
			return nil, err
		}
	}
	org, err := organisationName(c)
	if err != nil {
		return nil, err
	}
	version, err := (configVersions{}).id(c, &rec)
	if err != nil {
		return nil, err
	}
	rated, err := f.Rated.OfTrace(c.Context, store.Scope{Org: rec.Org, Workspace: rec.Workspace}, rec.TraceID)
	if err != nil {
		return nil, err
	}
	spaces := workspaceNames{}
	if err := spaces.read(c, slices.Values([]string{rec.Workspace})); err != nil {
		return nil, err
	}
	out := whole(&rec, &content, org, version)
	out.Metrics.WorkspaceName = admin.NullIfZero(spaces[rec.Workspace])
	out.Hidden, out.Feedback = !bodies, append(ratings(rated), ofGuards(&rec)...)
	return out, nil
}

// configVersions are the ids of versions of configs that a response has read.
// Records hold the number of a version.
type configVersions map[configVersion]string

type configVersion struct {
	workspace, config string
	number            int64
}

// id is the id of the version of the config that was in force; "" when there was
// none and when the config is deleted.
func (v configVersions) id(c *admin.Call, r *usage.Record) (string, error) {
	if r.ConfigID == "" || r.ConfigVersion == 0 {
		return "", nil
	}
	k := configVersion{r.Workspace, r.ConfigID, r.ConfigVersion}
	id, known := v[k]
	if !known {
		rec, _, err := c.Resources.Version(c.Context, store.Scope{Org: r.Org, Workspace: r.Workspace}, route.KindConfig, r.ConfigID, r.ConfigVersion)
		if err != nil {
			return "", err
		}
		id, v[k] = rec.VersionID, rec.VersionID
	}
	return id, nil
}
