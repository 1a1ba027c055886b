package logs

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/usagequery"
	"gateway/shared/audit"
	"gateway/shared/blob"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/usage/export"
	"gateway/shared/usage/report"
)

// Rows of one export.
const (
	exportRows    = 50_000
	maxExportRows = 10_000_000
)

// linkValid is how long a link to a file works.
const linkValid = time.Hour

// exports is the part of the family that exports logs.
type exports struct {
	family  *family
	filters []admin.Field
	col     *admin.Collection[export.Export]
}

type (
	exportItem   = admin.Item[export.Export]
	exportChange = admin.Change[export.Export]
)

func (f *family) exportRoutes() []admin.Route {
	x := &exports{family: f, filters: exportFilters()}
	x.col = x.describe()
	const item = "/logs/exports/{exportId}"
	done := admin.Closed(map[string]admin.Schema{"message": {"type": "string"}, "object": {"type": "string", "const": "export"}})
	link := admin.Closed(map[string]admin.Schema{"signed_url": {"type": "string", "description": "Download address of the file, valid without a credential for an hour."}})
	denied := admin.Closed(map[string]admin.Schema{"deniedFields": {"type": "array", "items": admin.Schema{"type": "string"}}})
	routes := append(x.col.Routes(), x.col.ItemRoutes(
		admin.Route{Method: "POST", Path: item + "/start", Name: "startExport", Doc: "Start to write the file, with the logs that the filters select now.", Action: audit.Export, Response: done, Errors: []int{409}, Do: x.col.WithItem("update", x.start)},
		admin.Route{Method: "POST", Path: item + "/cancel", Name: "cancelExport", Doc: "Stop writing; the partial file is deleted.", Action: audit.Cancel, Response: done, Errors: []int{409}, Do: x.col.WithItem("update", x.cancel)},
		admin.Route{Method: "GET", Path: item + "/download", Name: "downloadExport", Doc: "Create a link to the file.", Response: link, Do: x.col.WithItem("read", x.download)},
	)...)
	return append(routes,
		admin.Route{Method: "GET", Path: "/logs/exports/field-restrictions", Name: "listExportFieldRestrictions", Doc: "List the fields that exports of this workspace never contain.",
			Scopes: exportScopes(""), Level: admin.InEither, Response: denied, Do: x.restrictions},
		admin.Route{Method: "GET", Path: "/logs/exports/files/{token}", Name: "readExportFile", Doc: "Download the file of an export, by the link that its download route returned.",
			Public: true, Produces: "application/octet-stream", Do: x.file},
	)
}

func exportScopes(string) []string { return []string{"logs.export"} }

// exportFilters are the fields of filters: those of the list, and its page.
func exportFilters() []admin.Field {
	page := []admin.Field{
		{Name: "current_page", Type: admin.Integer, Max: maxReach, Default: 0, Doc: "Number of the page; the first is 0."},
		{Name: "page_size", Type: admin.Integer, Min: 1, Max: maxExportRows, Default: exportRows, Doc: "Maximum number of logs in the file."},
	}
	return append(usagequery.Fields(false), page...)
}

func (x *exports) describe() *admin.Collection[export.Export] {
	filters := admin.Schema{"type": "object", "additionalProperties": false, "properties": admin.Schema{}, "example": map[string]any{"time_of_generation_min": "2026-11-01T00:00:00Z", "ai_model": "gpt-4o,gpt-4o-mini"}}
	for _, f := range x.filters {
		filters["properties"].(admin.Schema)[f.Name] = admin.Schema{"type": []string{"string", "number", "integer", "array", "object", "null"}, "description": f.Doc}
	}
	return &admin.Collection[export.Export]{
		Kind: export.Kind, Object: "export", Path: "/logs/exports", Param: "exportId", UUIDOnly: true,
		Scopes: exportScopes, Resource: "log_exports", Level: admin.InWorkspace,
		List: admin.List{Omit: []string{"name", "slug"}},
		Fields: []admin.Field{
			{Name: "filters", Type: admin.Any, Required: true, Form: filters, Doc: "Filters of logs: the parameters of their list, as strings or JSON.", Check: x.checkFilters},
			{Name: "requested_data", Type: admin.Array, Of: &admin.Field{Type: admin.String, Enum: export.Fields()}, Required: true, Min: 1, Max: int64(len(export.Fields())), Doc: "Fields of each log, in this order."},
			{Name: "description"},
			{Name: "format", Absent: export.JSONL, Default: export.JSONL, Doc: "jsonl: one object per line. csv: a header line, then one line per log; text that a spreadsheet would execute is prefixed with an apostrophe. parquet: one column per field, structured values as JSON."},
			{Name: "compression", Absent: "none", Default: "none", Doc: "Compression of the file; for parquet, of its pages, which can also be snappy or zstd."},
		},
		Computed:  exportShown(),
		Authorize: mayReach,
		Before:    x.before, Retire: x.retire, Decorate: x.decorate,
		Committed: func(c *admin.Call, ch *exportChange) {
			if ch.Rec != nil {
				return
			}
			if err := x.family.Exports.Delete(c.Context, x.family.Bucket, ch.Old.Scope, ch.Old.ID); err != nil {
				slog.Warn("the run or the file of a deleted export was not removed", "request_id", c.RequestID, "error", err.Error())
			}
		},
		Adjust: func(action string, r *admin.Route) {
			if action == "create" || action == "update" {
				r.Response = admin.Closed(map[string]admin.Schema{"id": {"type": "string"}, "total": {"type": "integer", "description": "Logs that the filters select now, counted up to 10,000."}, "object": {"type": "string", "const": "export"}})
				r.Errors = append(r.Errors, 409)
				r.Do = x.counted(r.Do)
			}
			if action == "delete" {
				r.Errors = append(r.Errors, 409)
			}
		},
	}
}

// exportShown are the fields that a run gives; see decorate.
func exportShown() []admin.ComputedField[export.Export] {
	var out []admin.ComputedField[export.Export]
	for _, f := range []admin.Field{
		{Name: "status", Type: admin.String, Enum: []string{export.Draft, export.Running, export.Success, export.Failed, export.Stopped}, Required: true},
		{Name: "rows", Type: admin.Integer, Required: true, Doc: "Logs that were written."},
		{Name: "bytes", Type: admin.Integer, Required: true, Doc: "Of the file."},
		{Name: "error", Type: admin.String, Doc: "Why it failed."},
		{Name: "started_at", Type: admin.Timestamp}, {Name: "ended_at", Type: admin.Timestamp},
		{Name: "expires_at", Type: admin.Timestamp, Doc: "When the file is deleted."},
	} {
		out = append(out, admin.ComputedField[export.Export]{Field: f, Value: func(*admin.Call, exportItem) any { return nil }})
	}
	return append(out, admin.ComputedField[export.Export]{
		Field: admin.Field{Name: "created_by", Type: admin.String, Required: true, Doc: "The user or the API key that created it."},
		Value: func(_ *admin.Call, it exportItem) any { return it.CreatedBy },
	})
}

func (x *exports) decorate(c *admin.Call, items []exportItem, objects []admin.Members) error {
	return admin.ByScope(items, func(sc store.Scope, positions []int) error {
		ids := make([]string, len(positions))
		for n, i := range positions {
			ids[n] = items[i].ID
		}
		runs, err := x.family.Exports.Get(c.Context, sc, ids...)
		if err != nil {
			return err
		}
		for _, i := range positions {
			o, r := objects[i], runs[items[i].ID]
			o["status"], o["rows"], o["bytes"] = r.Status, r.Rows, r.Bytes
			o["error"], o["started_at"], o["ended_at"], o["expires_at"] = orNil(r.Error), timeOrNil(r.Started), timeOrNil(r.Ended), timeOrNil(r.Expires())
		}
		return nil
	})
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func timeOrNil(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return admin.FormatTime(t)
}

// checkFilters tests filters as they are stored.
func (x *exports) checkFilters(raw json.RawMessage) []fault.Detail {
	v, wrong := admin.AsInQuery(raw, x.filters)
	if wrong != nil {
		return wrong
	}
	f, err := usagequery.Filter(v)
	if err != nil {
		return fault.From(err).Details
	}
	if f.To.IsZero() {
		f.To = time.Now() // when the run starts
	}
	if f.From.IsZero() {
		f.From = f.To.Add(-defaultSpan)
	}
	return f.Validate(usagequery.From, usagequery.To)
}

// query reads stored filters as they apply at the time of a run.
func (x *exports) query(c *admin.Call, form *export.Export) (q report.LogQuery, err error) {
	v, wrong := admin.AsInQuery(form.Filters, x.filters)
	if wrong != nil {
		return q, fault.Invalids(wrong)
	}
	if q.Filter, err = usagequery.Filter(v); err != nil {
		return q, err
	}
	if q.To.IsZero() || q.To.After(c.Now) {
		q.To = c.Now
	}
	if q.From.IsZero() {
		q.From = q.To.Add(-defaultSpan)
	}
	if q.From.After(q.To) { // both lie ahead
		q.From = q.To
	}
	if named := v.Text("workspace_slug"); named != "" {
		ws, ok, err := c.Workspace(named)
		if err != nil {
			return q, err
		}
		if !ok || ws.ID != c.Scope.Workspace {
			return q, fault.Invalid("filters.workspace_slug", "must name the same workspace as workspace_id")
		}
	}
	q.Offset, q.Limit = usagequery.Page(v, exportRows)
	if err := usagequery.Restrict(c, &q.Filter); err != nil {
		return q, err
	}
	return q, usagequery.Rated(c, x.family.Rated, c.Scope, &q.Filter, usagequery.MaxStoredTraces)
}

// Fields of a record with the user who created the export, or the key if it belongs to no user.
const (
	byUser = "user"
	byKey  = "key"
)

// mayReach reports whether the caller can access an export. Its file may contain whatever its
// author could see: users can access their own exports, keys of users that others may know those
// of the key, and service keys their own and, if they may read all logs with their bodies, all
// others.
func mayReach(c *admin.Call, _ string, row *resource.Row) bool {
	if c.Caller.UserID != "" {
		return c.Caller.Is(row.Fields[byUser]) || c.Caller.Shared && row.Fields[byKey] == c.Caller.KeyID
	}
	return row.Fields[byKey] == c.Caller.KeyID && c.Caller.KeyID != "" || readsAll(c)
}

// readsAll reports whether the caller may read the logs of all users with their bodies. The
// result is cached in the call, because lists need it for each row.
func readsAll(c *admin.Call) bool {
	const valueReadsAll = "reads all logs"
	if all, known := c.Value(valueReadsAll).(bool); known {
		return all
	}
	all := true
	for _, part := range []string{tenant.SeeBodies, tenant.SeeOthers} {
		sees, err := c.AllowsView(part)
		all = all && err == nil && sees
	}
	c.SetValue(valueReadsAll, all)
	return all
}

// before rejects fields that may not be exported, and changes of a running export.
func (x *exports) before(c *admin.Call, tx *resource.Tx, ch *exportChange) error {
	of, err := tenant.ReadSettings(tx, ch.Rec.Scope)
	if err != nil {
		return err
	}
	if err := rejectDenied(of, ch.Form.Fields); err != nil {
		return err
	}
	if f := ch.Form; f.Format != export.Parquet && (f.Compression == export.Snappy || f.Compression == export.Zstd) {
		return fault.Invalid("compression", "must be none or gzip unless format is parquet")
	}
	if _, err := x.query(c, ch.Form); err != nil {
		return err
	}
	if ch.Creates() {
		ch.Rec.Fields = map[string]string{byKey: c.Caller.KeyID}
		if user := c.Caller.Personal(); user != "" {
			ch.Rec.Fields = map[string]string{byUser: user}
		}
		return nil
	}
	return x.idle(c, ch.Rec, "changed")
}

// idle refuses to delete an export that is being written, and to change one that is being
// written or has a file.
func (x *exports) idle(c *admin.Call, rec *resource.Record, what string) error {
	runs, err := x.family.Exports.Get(c.Context, rec.Scope, rec.ID)
	if err != nil {
		return err
	}
	if r := runs[rec.ID]; r.Status == export.Running || what == "changed" && r.Fetchable(c.Now) {
		return fault.Newf(fault.Conflict, "exportId", "An export whose status is %s cannot be %s", r.Status, what)
	}
	return nil
}

func (x *exports) retire(c *admin.Call, _ *resource.Tx, it exportItem) error {
	return x.idle(c, it.Record, "deleted")
}

func rejectDenied(of *tenant.Organisation, fields []string) error {
	var wrong []fault.Detail
	for i, name := range fields {
		denied := of.Settings.DeniedExportFields
		if slices.Contains(denied, name) || slices.Contains(denied, strings.TrimSuffix(name, "_usd")) {
			wrong = append(wrong, fault.Detail{Field: fmt.Sprintf("requested_data[%d]", i), Message: fmt.Sprintf("%s may not be exported here", name)})
		}
		if slices.Contains(fields[:i], name) {
			wrong = append(wrong, fault.Detail{Field: fmt.Sprintf("requested_data[%d]", i), Message: fmt.Sprintf("%s is listed twice", name)})
		}
	}
	if bad := fault.Invalids(wrong); bad != nil {
		return bad
	}
	return nil
}

// counted completes the response of a create or update.
func (x *exports) counted(do func(*admin.Call) (any, error)) func(*admin.Call) (any, error) {
	return func(c *admin.Call) (any, error) {
		made, err := do(c)
		if err != nil {
			return nil, err
		}
		id := c.Param("exportId")
		if m, is := made.(admin.Members); is && id == "" {
			id, _ = m["id"].(string)
		}
		rec, ok, err := c.Resources.Get(c.Context, c.Scope, export.Kind, id)
		if err != nil || !ok {
			return nil, errors.Join(err, fmt.Errorf("logs: export %s was stored but cannot be found", id))
		}
		var form export.Export
		if err := json.Unmarshal(rec.Body, &form); err != nil {
			return nil, fmt.Errorf("logs: export: %w", err)
		}
		q, err := x.query(c, &form)
		if err != nil {
			return nil, err
		}
		limit := q.Limit
		q.Limit = 1
		page, err := x.family.Reader.Logs(c.Context, c.Scope, &q)
		if err != nil {
			return nil, usagequery.Failed(err)
		}
		return admin.Members{"id": id, "total": max(0, min(page.Total-q.Offset, limit)), "object": "export"}, nil
	}
}

func (x *exports) start(c *admin.Call) (any, error) {
	it, err := x.col.Find(c)
	if err != nil {
		return nil, err
	}
	c.SetResource(it.ID)
	of, err := tenant.FetchSettings(c.Context, c.Resources, c.Scope)
	if err != nil {
		return nil, err
	}
	if err := rejectDenied(of, it.Form.Fields); err != nil {
		return nil, err
	}
	q, err := x.query(c, it.Form)
	if err != nil {
		return nil, err
	}
	sealed := export.Sealed(it.Form.Fields)
	if sealed {
		if ok, err := c.AllowsView(tenant.SeeBodies); err != nil || !ok {
			if err == nil {
				err = fault.New(fault.NotAllowed, "requested_data", "Your role may not read the bodies of logs: omit request and response")
			}
			return nil, err
		}
	}
	o := export.Order{Filter: q.Filter, Offset: q.Offset, Limit: q.Limit, Fields: it.Form.Fields, Format: export.JSONL, Bodies: sealed}
	if it.Form.Format != "" {
		o.Format = it.Form.Format
	}
	if o.Format == export.Parquet {
		o.Codec = it.Form.Compression
	} else {
		o.Gzip = it.Form.Compression == export.Gzip
	}
	if err := x.family.Exports.Start(c.Context, c.Scope, it.ID, o); err != nil {
		return nil, err
	}
	return admin.Members{"message": "The export has started", "object": "export"}, nil
}

func (x *exports) cancel(c *admin.Call) (any, error) {
	it, err := x.col.Find(c)
	if err != nil {
		return nil, err
	}
	c.SetResource(it.ID)
	if err := x.family.Exports.Cancel(c.Context, c.Scope, it.ID); err != nil {
		return nil, err
	}
	return admin.Members{"message": "The export was stopped", "object": "export"}, nil
}

func (x *exports) restrictions(c *admin.Call) (any, error) {
	of, err := tenant.FetchSettings(c.Context, c.Resources, c.Scope)
	if err != nil {
		return nil, err
	}
	return map[string]any{"deniedFields": append([]string{}, of.Settings.DeniedExportFields...)}, nil
}

func (x *exports) download(c *admin.Call) (any, error) {
	it, err := x.col.Find(c)
	if err != nil {
		return nil, err
	}
	runs, err := x.family.Exports.Get(c.Context, c.Scope, it.ID)
	if err != nil {
		return nil, err
	}
	r := runs[it.ID]
	if !r.Fetchable(c.Now) {
		if r.Status == export.Success {
			return nil, fault.New(fault.InvalidRequest, "exportId", "The file has expired: it is stored for seven days, or for the retention of logs if that is shorter; start the export again")
		}
		return nil, fault.Newf(fault.InvalidRequest, "exportId", "The status is %s: there is a file when it is success", r.Status)
	}
	if err := mayRead(c, &r.Order); err != nil {
		return nil, err
	}
	link, err := x.link(c, r)
	if err != nil {
		return nil, err
	}
	return map[string]any{"signed_url": link}, nil
}

// mayRead checks that the caller could write a file now: its role, what the settings show it, or
// the fields that may be exported may have changed since. A role without logs has no exports either.
func mayRead(c *admin.Call, o *export.Order) error {
	of, err := tenant.FetchSettings(c.Context, c.Resources, c.Scope)
	if err != nil {
		return err
	}
	if rejectDenied(of, o.Fields) != nil {
		return fault.New(fault.NotAllowed, "exportId", "The file contains fields that may no longer be exported here; create another export without the fields of GET /v1/logs/exports/field-restrictions")
	}
	now := o.Filter
	if err := usagequery.Restrict(c, &now); err != nil {
		return err
	}
	if now.Nothing || len(now.UserIDs) != len(o.Filter.UserIDs) || len(now.Keys) != len(o.Filter.Keys) {
		return fault.New(fault.NotAllowed, "exportId", "The file contains logs that your role may no longer read; create another export")
	}
	return nil
}

// link is the address of the file: the bucket's own where it makes such.
func (x *exports) link(c *admin.Call, r *export.Run) (string, error) {
	valid := min(linkValid, r.Expires().Sub(c.Now))
	if links, ok := x.family.Bucket.(blob.Links); ok {
		return links.Link(c.Context, r.Key, valid)
	}
	token, err := export.Token(c.Context, x.family.Sealer, c.Scope.Org, r.Key, c.Now.Add(valid))
	if err != nil {
		return "", err
	}
	return admin.Address("", c.Request) + "/logs/exports/files/" + token, nil
}

// file sends what a token of link names.
func (x *exports) file(c *admin.Call) (any, error) {
	key, err := export.ReadToken(c.Context, x.family.Sealer, c.Param("token"), c.Now)
	if err != nil {
		return nil, err
	}
	body, size, err := x.family.Bucket.Open(c.Context, key, 0, -1)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, export.ErrNoFile
	}
	if err != nil {
		return nil, err
	}
	name := key[strings.LastIndexByte(key, '/')+1:]
	return admin.Response{Stream: body, Header: http.Header{
		"Content-Disposition": {`attachment; filename="` + name + `"`}, "Content-Length": {fmt.Sprint(size)},
	}}, nil
}
