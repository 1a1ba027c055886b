package admin

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Collection describes a family of stored resources; Routes derives its routes. T is the stored
// form: its JSON is the body of the record.
type Collection[T any] struct {
	Kind    resource.Kind
	Object  string // the object field of responses, and the word in prose: config
	Path    string // of the collection: /configs
	Aliases []string
	Param   string // the variable of the item's path; default id
	// UUIDOnly means that a path names items by id only, never by slug.
	UUIDOnly bool

	// Scope is the family of scopes: Scope.list, .read, .create, .update,
	// .delete. Scopes replaces it where several families will do.
	Scope    string
	Scopes   func(action string) []string
	Resource string // of the audit log; default Scope
	Level    Level
	// WorkspaceFields are fields of bodies and lists that refer to a record, with the kind of that
	// record. The record determines the workspace of a call that names none.
	WorkspaceFields map[string]resource.Kind
	ReadRole        Role
	WriteRole       Role
	// Adjust changes a route last: list, create, read, update, delete, and those of
	// Versions and BulkWrite.
	Adjust func(action string, r *Route)

	Fields   []Field            // of bodies; what they leave open is read from T
	Computed []ComputedField[T] // of responses, beside the fields
	Slugs    *Slugs             // nil: no slug is made; a given one may still be a field
	Limits   limited[T]         // *Limits[T]
	List     List
	// Levels makes it a resource of the organization or of one workspace, Parent
	// one that belongs to another resource, Versions one with a history.
	Levels   levelled[T] // *Levels[T]
	Parent   *Parent
	Versions versioned[T] // *Versions[T]
	// Excluded names routes that the family does not have: list, read, create,
	// update, delete.
	Excluded []string
	// ArchiveOnDelete archives deleted records. All routes treat them as missing, except lists
	// that request them. ArchivedReachable lets reads and updates access them.
	ArchiveOnDelete   bool
	ArchivedReachable bool
	// ReadQuery are query parameters of the single read; DeleteBody is the body
	// of a delete.
	ReadQuery  []Field
	DeleteBody []Field

	// Admit rejects a call before anything is read; it may also move the call to the scope that
	// its path implies. Authorize reports whether the caller may act on a record; lists omit the
	// others.
	Admit     func(c *Call, action string) error
	Authorize func(c *Call, action string, row *resource.Row) bool
	// ListScopes are the scopes that a list covers; nil: the call's.
	ListScopes func(c *Call) ([]store.Scope, error)

	// New gives the form that a create starts from; nil: the zero value.
	New func(c *Call) T
	// Check returns validation errors of a form that is about to be stored. If nil, T's
	// Validate() []fault.Detail is used, if T has one.
	Check func(c *Call, ch *Change[T]) []fault.Detail
	// Before and After run around the staging of a create or update. Before may
	// still change record and form; After may add rows that name the record (Use,
	// Due, credentials). They may run several times per call. Retire is Before of
	// a delete.
	Before func(c *Call, tx *resource.Tx, ch *Change[T]) error
	After  func(c *Call, tx *resource.Tx, ch *Change[T]) error
	Retire func(c *Call, tx *resource.Tx, it Item[T]) error
	// Committed runs once after a create, update or delete (Rec nil).
	Committed func(c *Call, ch *Change[T])

	// Decorate adds computed fields to a page or a single object.
	Decorate func(c *Call, items []Item[T], objects []Members) error
	// Wrapped adds success and data, a copy of the object, to reads of one.
	Wrapped bool
	// Created and Updated specify what of the object a create and an update response;
	// default id and slug, and nothing.
	Created, Updated *Reply

	once     sync.Once
	made     machine[T]
	wrong    error
	children []resource.Kind // that go with a record
}

// Reply is a response that has fields of the object.
type Reply struct {
	Members []string // nil: all
	Wrapped bool     // with success and data
}

// Change is what a call does to a record.
type Change[T any] struct {
	Old     *resource.Record // as stored; nil for a new one
	OldForm *T               // its form; the zero value for a new one
	Rec     *resource.Record // as it will be; nil for one that is deleted
	Form    *T
	// Draft is the version that the call made and that is not published yet; nil
	// without one.
	Draft *resource.Record
}

// Creates reports whether the record is new.
func (ch *Change[T]) Creates() bool { return ch.Old == nil }

// Item is the record as it will be.
func (ch *Change[T]) Item() Item[T] { return Item[T]{ch.Rec, ch.Form} }

// List describes the list of a Collection.
type List struct {
	Paging   Paging
	Envelope *Envelope // default ListEnvelope
	Query    []Field
	// Status adds the query parameter status, a comma list of active and
	// archived; without it only live records are listed.
	Status bool
	// Ended lists archived records beside the live ones: those that have come to
	// an end and are still of interest.
	Ended bool
	// Tags adds the query parameter tags, a JSON object that must be part of a
	// record's tags.
	Tags bool
	// Search adds the query parameter search, a part of the name or the slug. IDs
	// adds a parameter of that name, a comma list of ids.
	Search bool
	IDs    string
	Omit   []string // base fields that entries do not have: object
	// Match filters rows; nil takes all.
	Match func(c *Call, row *resource.Row) bool
}

// Generic code is compiled into a program once for each type. What few families have is
// therefore reached through an interface, so that a family without it links none of it.
type (
	limited[T any] interface {
		fields() []Field
		shown() []Field
		prepare(in Values, ch *Change[T], now time.Time) []fault.Detail
		fallbacks(tx *resource.Tx, ch *Change[T]) error
		committed(c *Call, ch *Change[T])
		Decorate(c *Call, items []Item[T], objects []Members) error
	}
	levelled[T any] interface {
		describe(col *Collection[T])
		visible(l lister[T], c *Call, sc store.Scope, rows []resource.Row) ([]resource.Row, error)
	}
	versioned[T any] interface {
		history(col *Collection[T], m *machine[T]) past[T]
		publishes() bool
		patches() bool
		drafted() *Reply
	}
	// past serves the versions of a collection's records; see history.
	past[T any] interface {
		routes(item string) []Route
		at(c *Call, it Item[T]) (Item[T], error)
		moves(in Values, ch *Change[T]) bool
		drafts(c *Call) bool
		stageDraft(c *Call, tx *resource.Tx, it Item[T]) (Change[T], error)
		rewrite(c *Call, tx *resource.Tx, it Item[T]) error
		ready(c *Call, it Item[T], n int64) error
		publishIn(c *Call, tx *resource.Tx, it Item[T], n int64) error
	}
)

// machine are the parts that a description is compiled to.
type machine[T any] struct {
	fields []Field
	shape  *shape
	finder finder[T]
	shower shower[T]
	lister lister[T]
	writer writer[T]
	past   past[T] // nil without a history
}

// compile reads the stored type once. The error is a mistake of the description.
func (col *Collection[T]) compile() (*machine[T], error) {
	col.once.Do(func() {
		m := &col.made
		if m.fields, col.wrong = derive(col.bodyFields(), reflect.TypeFor[T]()); col.wrong != nil {
			col.wrong = fmt.Errorf("admin: collection %s: %w", col.Path, col.wrong)
			return
		}
		if col.Levels != nil {
			col.Levels.describe(col)
		}
		if col.Parent != nil {
			if col.wrong = col.Parent.describe(col.Kind, &col.Level, &col.Scopes, &col.Scope, &col.Resource); col.wrong != nil {
				return
			}
		}
		var limits []Field
		if col.Limits != nil {
			limits = col.Limits.shown()
		}
		m.shape = newShape(col.Object, col.Level, col.Slugs != nil, &col.List, m.fields, limits)
		for _, sh := range col.Computed {
			m.shape.put(sh.Field, sh.showing())
		}
		m.shape.markRead(m.fields)
		m.finder = finder[T]{col}
		m.shower = shower[T]{col, m.shape}
		m.lister = lister[T]{col, m}
		m.writer = writer[T]{col, m}
		if col.Versions != nil {
			m.past = col.Versions.history(col, m)
		}
	})
	return &col.made, col.wrong
}

// bodyFields are the fields and those that the limits and versions bring.
func (col *Collection[T]) bodyFields() []Field {
	fields := slices.Clone(col.Fields)
	if col.Limits != nil {
		fields = append(fields, col.Limits.fields()...)
	}
	if col.Versions != nil && col.Versions.patches() {
		fields = append(fields, patchesField()...)
	}
	return fields
}

// Routes makes the routes of the description.
func (col *Collection[T]) Routes() []Route {
	m, err := col.compile()
	if err != nil {
		return []Route{{Method: "GET", Path: col.Path, mistake: err}}
	}
	item := col.Path + "/{" + col.param() + "}"
	d := described{
		path: col.Path, item: item, aliases: col.Aliases, param: col.param(), object: col.Object, reads: col.ReadRole, writes: col.WriteRole,
		fields: m.fields, listQuery: col.List.parameters(m.fields), readQuery: col.readQuery(), deleteBody: col.DeleteBody,
	}
	d.latest = col.Versions != nil && col.Versions.publishes()
	routes := d.routes(
		func() Schema { return col.envelope().Schema(m.shape.schema(true)) },
		func() Schema { return replySchema(m.shape, col.Created, "id", "slug") },
		func() Schema { return wrappedSchema(col.Wrapped, m.shape.schema(false)) }, m.shower.updateSchema)
	var out []Route
	for i, do := range []func(*Call) (any, error){m.lister.list, m.writer.create, m.finder.read, m.writer.update, m.writer.delete} {
		if r := &routes[i]; !slices.Contains(col.Excluded, r.action) {
			r.Do = do
			out = append(out, col.finish(r.action, r.Route))
		}
	}
	if m.past != nil {
		out = append(out, m.past.routes(item)...)
	}
	return out
}

func (col *Collection[T]) readQuery() []Field {
	query := slices.Clone(col.ReadQuery)
	if col.Versions != nil && col.Versions.publishes() {
		query = append(query, versionQuery()...)
	}
	return query
}

// finish gives a route of the collection its place, scopes and guard.
func (col *Collection[T]) finish(action string, r Route) Route {
	r.Level, r.Resource, r.Scopes, r.Do = col.Level, col.resource(), col.ScopesFor(action), col.WithItem(action, r.Do)
	r.OrgKeyWithoutWorkspace = col.unplaced(action) || col.Parent != nil && col.Level == InWorkspace
	if col.Adjust != nil {
		col.Adjust(action, &r)
	}
	return r
}

// WithItem makes a custom route of one item: the call is where the item is, and the
// caller may do the action to it.
func (col *Collection[T]) WithItem(action string, do func(*Call) (any, error)) func(*Call) (any, error) {
	return func(c *Call) (any, error) {
		if err := col.enter(c, action); err != nil {
			return nil, err
		}
		return do(c)
	}
}

// ItemRoutes completes custom routes of one item with what those of the collection
// have: place, scopes, roles, and what the audit log calls them. Their Do is made
// with WithItem.
func (col *Collection[T]) ItemRoutes(routes ...Route) []Route {
	_, _ = col.compile() // a mistake shows in Routes
	for i := range routes {
		r := &routes[i]
		r.Level, r.Resource, r.OrgKeyWithoutWorkspace = col.Level, col.resource(), col.unplaced("update")
		action := "update"
		if r.Role = col.WriteRole; r.Method == "GET" {
			action, r.Role = "read", col.ReadRole
		}
		if r.Scopes == nil {
			r.Scopes = col.ScopesFor(action)
		}
	}
	return routes
}

// enter settles where a call acts and whether it may.
func (col *Collection[T]) enter(c *Call, action string) error {
	c.action = action
	if _, err := col.compile(); err != nil {
		return err
	}
	if col.Parent != nil {
		if err := col.Parent.enter(c); err != nil {
			return err
		}
	}
	if err := col.place(c, action); err != nil {
		return err
	}
	if col.Admit != nil {
		return col.Admit(c, action)
	}
	return nil
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

// kind is the kind of the records that the call is about.
func (col *Collection[T]) kind(c *Call) resource.Kind {
	if col.Parent != nil {
		return col.Parent.kindOf(c, col.Kind)
	}
	return col.Kind
}

func (col *Collection[T]) envelope() *Envelope {
	if col.List.Envelope == nil {
		return &ListEnvelope
	}
	return col.List.Envelope
}

// missing is the response for an id that does not exist, was deleted or is out of the
// caller's reach. All of them look the same.
func (col *Collection[T]) missing() error {
	return fault.Newf(fault.NotFound, col.param(), "This %s does not exist", title(col.Object))
}

// Edit changes the item that the path names in one transaction of a custom route:
// f changes record and form, which are then saved; After runs as for an update.
func (col *Collection[T]) Edit(c *Call, f func(tx *resource.Tx, ch *Change[T]) error) error {
	return c.Change(func(tx *resource.Tx) error {
		it, err := col.FindIn(c, tx)
		if err != nil {
			return err
		}
		was, err := readForm[T](col.Kind, it.Record)
		if err != nil {
			return err
		}
		old := *it.Record
		ch := &Change[T]{Old: &old, OldForm: was, Rec: it.Record, Form: it.Form}
		if err := f(tx, ch); err != nil {
			return err
		}
		if err := col.Save(c, tx, ch.Item()); err != nil || col.After == nil {
			return err
		}
		return col.After(c, tx, ch)
	})
}

// Save stages an update of a record that a custom route changed, with its form.
func (col *Collection[T]) Save(c *Call, tx *resource.Tx, it Item[T]) error {
	it.UpdatedBy = c.Actor()
	if err := writeForm(col.Kind, it.Record, it.Form); err != nil {
		return err
	}
	return tx.Update(it.Record)
}

// readForm reads the stored form of a record; writeForm writes it.
func readForm[T any](kind resource.Kind, rec *resource.Record) (*T, error) {
	form := new(T)
	if len(rec.Body) == 0 {
		return form, nil
	}
	if err := json.Unmarshal(rec.Body, form); err != nil {
		return nil, fmt.Errorf("admin: stored %s %s: %w", kind, rec.ID, err)
	}
	return form, nil
}

func writeForm[T any](kind resource.Kind, rec *resource.Record, form *T) error {
	var err error
	if rec.Body, err = json.Marshal(form); err != nil {
		return fmt.Errorf("admin: encode %s: %w", kind, err)
	}
	return nil
}
