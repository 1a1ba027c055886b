package admin

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Collection describes a family of stored resources; Routes makes its five
// routes from it. T is the stored form, the room's type: its JSON is the body of
// the record.
type Collection[T any] struct {
	Kind    resource.Kind
	Object  string // the object field of answers, and the word in prose: config
	Path    string // of the collection: /configs
	Aliases []string
	Param   string // the variable of the item's path; default id
	// UUIDOnly says that a path names items by id only, never by slug.
	UUIDOnly bool

	// Scope is the family of scopes: Scope.list, .read, .create, .update,
	// .delete. Scopes replaces it where several families will do.
	Scope     string
	Scopes    func(action string) []string
	Resource  string // of the audit log; default Scope
	Where     Where
	ReadRole  Role
	WriteRole Role
	// Missing is the code for an id that does not exist in the caller's reach:
	// fault.NotAllowed (403 AB03, the default) or fault.NotFound (404 AB08).
	Missing fault.Code

	Fields []Field
	Slugs  *Slugs // nil: no slug is made; a given one may still be a field
	List   List
	// Without names routes that the family does not have: list, read, create,
	// update, delete.
	Without []string
	// KeepVersions writes a version when a record is made, and when Versioned
	// says so for an update (nil: whenever the stored form changes).
	KeepVersions bool
	Versioned    func(in Values) bool
	// ArchiveOnDelete keeps deleted records as archived ones, which are then
	// missing for all routes but lists that ask for them. ArchivedReachable
	// lets reads and updates reach them.
	ArchiveOnDelete   bool
	ArchivedReachable bool
	// ReadQuery are query parameters of the single read; DeleteBody is the body
	// of a delete.
	ReadQuery  []Field
	DeleteBody []Field

	// Visible narrows what a caller reaches beyond the scope (Where Shared).
	Visible func(c *Call, id string) bool

	// New gives the form that a create starts from; nil: the zero value.
	New func(c *Call) T
	// Check gives the room's errors of a form that is about to be stored.
	Check func(c *Call, rec *resource.Record, form *T) []fault.Detail
	// Before and after the record is staged. Before may still change record and
	// form; after may add rows that name the record (Use, Due, credentials).
	// They may run several times per call. old is the record as stored.
	BeforeCreate func(c *Call, tx *resource.Tx, rec *resource.Record, form *T) error
	AfterCreate  func(c *Call, tx *resource.Tx, rec *resource.Record, form *T) error
	BeforeUpdate func(c *Call, tx *resource.Tx, old, rec *resource.Record, was, form *T) error
	AfterUpdate  func(c *Call, tx *resource.Tx, old, rec *resource.Record, was, form *T) error
	BeforeDelete func(c *Call, tx *resource.Tx, rec *resource.Record, form *T) error
	// Committed runs once after a create (old nil), update or delete (rec nil).
	Committed func(c *Call, old, rec *resource.Record)

	// Render is a record as answers show it; nil: Standard.
	Render func(c *Call, rec *resource.Record, form *T) (map[string]any, error)
	// Decorate adds what is not stored, such as usage, to a page or a single
	// object.
	Decorate func(c *Call, recs []resource.Record, objects []map[string]any) error
	// Single, Created and Updated shape answers; nil: the object itself,
	// {id, slug}, {}.
	Single  func(object map[string]any) any
	Created func(c *Call, rec *resource.Record, form *T) (any, error)
	Updated func(c *Call, rec *resource.Record, form *T) (any, error)

	// SingleSchema, CreatedSchema and UpdatedSchema document those answers.
	SingleSchema, CreatedSchema, UpdatedSchema Schema
	ExtraShown                                 []Field // shown beside Fields, for the document
}

// List describes the list of a Collection.
type List struct {
	Paging   Paging
	Envelope Envelope // default ListEnvelope
	Schema   func(entry Schema) Schema
	Query    []Field
	// Status adds the query parameter status, a comma list of active and
	// archived; without it only live records are listed.
	Status bool
	// Tags adds the query parameter tags, a JSON object that must be part of a
	// record's tags.
	Tags bool
	// Match filters rows; nil takes all.
	Match func(c *Call, row *resource.Row) bool
	// Brief is an entry's form in the list; nil: as in the single read.
	Brief func(object map[string]any) map[string]any
}

// Routes makes the routes of the description.
func (col *Collection[T]) Routes() []Route {
	item := col.Path + "/{" + col.param() + "}"
	var itemAliases []string
	for _, a := range col.Aliases {
		itemAliases = append(itemAliases, a+"/{"+col.param()+"}")
	}
	title := strings.ReplaceAll(col.Object, "-", " ")
	id := operation(col.Object)
	shown := col.Shown()
	base := Route{Where: col.Where, Resource: col.resource()}
	routes := map[string]Route{
		"list": {Method: "GET", Path: col.Path, Aliases: col.Aliases, Name: "list" + id + "s", Doc: "List " + title + "s.", Role: col.ReadRole,
			Query: col.listQuery(), Answer: col.listSchema(shown), Do: col.list},
		"create": {Method: "POST", Path: col.Path, Aliases: col.Aliases, Name: "create" + id, Doc: "Create a " + title + ".", Role: col.WriteRole,
			Body: col.Fields, Answer: col.createdSchema(), Action: audit.Create, Errors: []int{409}, Do: col.create},
		"read": {Method: "GET", Path: item, Aliases: itemAliases, Name: "get" + id, Doc: "Read a " + title + ".", Role: col.ReadRole,
			Query: col.ReadQuery, Answer: col.singleSchema(shown), Do: col.read},
		"update": {Method: "PUT", Path: item, Aliases: itemAliases, Name: "update" + id, Doc: "Change a " + title + ": absent fields stay, null clears.", Role: col.WriteRole,
			Body: col.Fields, BodyMode: PartialBody, Answer: orEmpty(col.UpdatedSchema), Action: audit.Update, Errors: []int{409}, Do: col.update},
		"delete": {Method: "DELETE", Path: item, Aliases: itemAliases, Name: "delete" + id, Doc: "Delete a " + title + ".", Role: col.WriteRole,
			Body: col.DeleteBody, BodyMode: OptionalBody, Answer: emptySchema, Action: audit.Delete, Errors: []int{409}, Do: col.delete},
	}
	var out []Route
	for _, action := range []string{"list", "create", "read", "update", "delete"} {
		if contains(col.Without, action) {
			continue
		}
		r := routes[action]
		r.Where, r.Resource, r.Scopes = base.Where, base.Resource, col.ScopesFor(action)
		out = append(out, r)
	}
	return out
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// operation is a word such as mcp-server as part of an operationId: McpServer.
func operation(object string) string {
	var b strings.Builder
	for _, part := range strings.FieldsFunc(object, func(r rune) bool { return r == '-' || r == '_' }) {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

func (col *Collection[T]) param() string {
	if col.Param == "" {
		return "id"
	}
	return col.Param
}

func (col *Collection[T]) resource() string {
	if col.Resource == "" {
		return col.Scope
	}
	return col.Resource
}

// ScopesFor are the scopes of which an action needs one.
func (col *Collection[T]) ScopesFor(action string) []string {
	if col.Scopes != nil {
		return col.Scopes(action)
	}
	return []string{col.Scope + "." + action}
}

// missing is the one answer for an id out of the caller's reach.
func (col *Collection[T]) missing() error {
	if col.Missing == fault.NotFound {
		return fault.Newf(fault.NotFound, col.param(), "This %s does not exist", strings.ReplaceAll(col.Object, "-", " "))
	}
	return Denied()
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// Find reads the record that the path names, with its form. Custom actions use
// it; the error is the family's answer for what is out of reach.
func (col *Collection[T]) Find(c *Call) (resource.Record, *T, error) {
	return col.find(c, func(sc store.Scope, k resource.Kind, id string) (resource.Record, bool, error) {
		return c.Resources.Get(c.Context, sc, k, id)
	})
}

// FindIn is Find within a change.
func (col *Collection[T]) FindIn(c *Call, tx *resource.Tx) (resource.Record, *T, error) {
	return col.find(c, tx.Get)
}

func (col *Collection[T]) find(c *Call, get func(store.Scope, resource.Kind, string) (resource.Record, bool, error)) (resource.Record, *T, error) {
	id := c.Param(col.param())
	c.About(id)
	if col.UUIDOnly && !uuidForm.MatchString(id) {
		return resource.Record{}, nil, col.missing()
	}
	rec, ok, err := get(c.Scope, col.Kind, id)
	if err != nil {
		return resource.Record{}, nil, err
	}
	if !ok || (rec.Archived() && !col.ArchivedReachable) || (col.Visible != nil && !col.Visible(c, rec.ID)) {
		return resource.Record{}, nil, col.missing()
	}
	c.About(rec.ID)
	form, err := col.decode(&rec)
	return rec, form, err
}

func (col *Collection[T]) decode(rec *resource.Record) (*T, error) {
	form := new(T)
	if len(rec.Body) == 0 {
		return form, nil
	}
	if err := json.Unmarshal(rec.Body, form); err != nil {
		return nil, fmt.Errorf("admin: stored %s %s: %w", col.Kind, rec.ID, err)
	}
	return form, nil
}

func (col *Collection[T]) read(c *Call) (any, error) {
	rec, form, err := col.Find(c)
	if err != nil {
		return nil, err
	}
	obj, err := col.render(c, &rec, form)
	if err != nil {
		return nil, err
	}
	if col.Decorate != nil {
		if err := col.Decorate(c, []resource.Record{rec}, []map[string]any{obj}); err != nil {
			return nil, err
		}
	}
	if col.Single != nil {
		return col.Single(obj), nil
	}
	return obj, nil
}

func (col *Collection[T]) render(c *Call, rec *resource.Record, form *T) (map[string]any, error) {
	if col.Render != nil {
		return col.Render(c, rec, form)
	}
	return col.Standard(rec)
}

// Standard is a record as its description shows it: what every record has, and
// the stored fields that are not hidden; null where a field has no value.
func (col *Collection[T]) Standard(rec *resource.Record) (map[string]any, error) {
	obj := map[string]any{
		"id": rec.ID, "name": rec.Name, "status": rec.Status, "organisation_id": rec.Scope.Org,
		"created_at": FormatTime(rec.Created), "last_updated_at": FormatTime(rec.Updated), "object": col.Object,
	}
	if rec.Slug != "" {
		obj["slug"] = rec.Slug
	}
	if rec.Scope.Workspace != "" {
		obj["workspace_id"] = rec.Scope.Workspace
	}
	var body map[string]json.RawMessage
	if len(rec.Body) > 0 {
		if err := json.Unmarshal(rec.Body, &body); err != nil {
			return nil, fmt.Errorf("admin: stored %s %s: %w", col.Kind, rec.ID, err)
		}
	}
	var masked map[string]string
	if raw, ok := body[maskedMember]; ok {
		_ = json.Unmarshal(raw, &masked) // a string map, written below
	}
	for i := range col.Fields {
		f := &col.Fields[i]
		switch {
		case f.Hidden || f.Trigger:
		case f.Name == "tags" && f.Column:
			obj["tags"] = rec.Tags
		case f.Column:
		case f.Secret:
			if m, ok := masked[f.Name]; ok {
				obj["masked_"+f.Name] = m
			}
		default:
			obj[f.Name] = body[f.Name] // a nil RawMessage is null
		}
	}
	return obj, nil
}

func (col *Collection[T]) list(c *Call) (any, error) {
	page, err := col.List.Paging.Of(c.Query)
	if err != nil {
		return nil, err
	}
	rows, err := col.rows(c)
	if err != nil {
		return nil, err
	}
	part := Cut(rows, page)
	ids := make([]string, len(part))
	for i := range part {
		ids[i] = part[i].ID
	}
	recs, err := c.Resources.GetMany(c.Context, c.Scope, col.Kind, ids)
	if err != nil {
		return nil, err
	}
	objects := make([]map[string]any, 0, len(recs))
	for i := range recs {
		form, err := col.decode(&recs[i])
		if err != nil {
			return nil, err
		}
		obj, err := col.render(c, &recs[i], form)
		if err != nil {
			return nil, err
		}
		objects = append(objects, obj)
	}
	if col.Decorate != nil {
		if err := col.Decorate(c, recs, objects); err != nil {
			return nil, err
		}
	}
	entries := make([]any, len(objects))
	for i, obj := range objects {
		if col.List.Brief != nil {
			obj = col.List.Brief(obj)
		}
		entries[i] = obj
	}
	return col.envelope()(entries, len(rows), page), nil
}

func (col *Collection[T]) envelope() Envelope {
	if col.List.Envelope == nil {
		return ListEnvelope
	}
	return col.List.Envelope
}

// rows are all rows of the list that the query selects, newest first.
func (col *Collection[T]) rows(c *Call) ([]resource.Row, error) {
	live, archived, err := wantedStatus(c.Query.Text("status"), col.List.Status)
	if err != nil {
		return nil, err
	}
	var all []resource.Row
	if live {
		if all, err = c.Resources.List(c.Context, c.Scope, col.Kind); err != nil {
			return nil, err
		}
	}
	if archived {
		old, err := c.Resources.ListArchived(c.Context, c.Scope, col.Kind)
		if err != nil {
			return nil, err
		}
		all = mergeRows(all, old)
	}
	tags := c.Query.TextMap("tags")
	if len(tags) == 0 && col.List.Match == nil && col.Visible == nil {
		return all, nil
	}
	out := make([]resource.Row, 0, len(all))
	for i := range all {
		row := &all[i]
		if hasTags(row.Tags, tags) && (col.List.Match == nil || col.List.Match(c, row)) && (col.Visible == nil || col.Visible(c, row.ID)) {
			out = append(out, *row)
		}
	}
	return out, nil
}

// wantedStatus reads the comma list of a status parameter.
func wantedStatus(list string, offered bool) (live, archived bool, err error) {
	if !offered || list == "" {
		return true, false, nil
	}
	for _, s := range strings.Split(list, ",") {
		switch strings.TrimSpace(s) {
		case "active":
			live = true
		case resource.StatusArchived:
			archived = true
		default:
			return false, false, fault.Invalid("status", "must be active, archived, or both with a comma")
		}
	}
	return live, archived, nil
}

// mergeRows joins two lists that are newest first.
func mergeRows(a, b []resource.Row) []resource.Row {
	out := make([]resource.Row, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if b[0].Created.After(a[0].Created) {
			out, b = append(out, b[0]), b[1:]
		} else {
			out, a = append(out, a[0]), a[1:]
		}
	}
	return append(append(out, a...), b...)
}

func hasTags(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

func (col *Collection[T]) listQuery() []Field {
	q := append(col.List.Paging.Fields(), col.List.Query...)
	if col.List.Status {
		q = append(q, Field{Name: "status", Type: String, Max: 64, Default: "active", Doc: "active, archived, or both with a comma."})
	}
	if col.List.Tags {
		q = append(q, Field{Name: "tags", Type: Map, Of: &Field{Type: String}, Max: 50, Doc: "JSON object of tags that must all match."})
	}
	return q
}
