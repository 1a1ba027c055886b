package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Singleton describes settings: one form T of the organization, read and changed in sections. A
// value that is not set, or is reset with null, is that of Standard.
//
// With Overrides a workspace has the same sections. Its values override the organization's.
// Reads of a workspace return each effective value and its source.
type Singleton[T any] struct {
	Object, Path string
	Kind         resource.Kind // of the record, with the organization's id
	In           string        // member of the record's body that holds T; "": all of it
	Scope        string        // family of scopes: .read and .update
	Role         Role
	Title        string  // in prose: settings of the organization
	Sections     []Field // objects; their fields are fields of T
	Standard     T
	// Recent are sections that only people change who have signed in just now, as by
	// Route.Recent.
	Recent []string
	// Changed gets the stored fields before and after a change of the organization's, and may
	// add to the latter and stage other changes; may be nil.
	Changed func(c *Call, tx *resource.Tx, was, now map[string]json.RawMessage) error
	// Guard sees the effective fields before and after a change by a caller, of the
	// organization or of one workspace, and rejects what the caller may not give; nil: nothing.
	Guard     func(c *Call, was, now map[string]json.RawMessage) error
	Overrides *Overrides[T]

	standard map[string]json.RawMessage
	own      []Field // sections of workspaces
	wrong    error
}

// Routes makes the routes of the description.
func (s *Singleton[T]) Routes() []Route {
	if s.compile(); s.wrong != nil {
		return []Route{{Method: "GET", Path: s.Path, mistake: s.wrong}}
	}
	name := operation(s.Object)
	base := Route{Path: s.Path, Level: InOrganisation, Role: s.Role, Resource: s.Scope}
	out := []Route{
		base.with("GET", "get"+name, "Read the "+s.Title+".", s.Scope+".read", func(c *Call) (any, error) { return s.read(c) }),
		base.with("PUT", "update"+name, "Change the "+s.Title+": absent sections and fields are unchanged, null restores the default. They apply to requests within 2 seconds.", s.Scope+".update", s.update),
	}
	out[0].ResponseOf = func() Schema { return Closed(s.members(s.Sections)) }
	out[1].Body = s.Sections
	if s.Overrides != nil {
		out = append(out, s.workspaceRoutes(name)...)
	}
	return out
}

func (r Route) with(method, name, doc, scope string, do func(*Call) (any, error)) Route {
	r.Method, r.Name, r.Doc, r.Scopes, r.Do = method, name, doc, []string{scope}, do
	if method != "GET" {
		r.BodyMode, r.Action, r.Response = PartialBody, audit.Update, emptySchema
	}
	return r
}

func (s *Singleton[T]) compile() {
	s.Sections = slices.Clone(s.Sections)
	for i := range s.Sections {
		f := &s.Sections[i]
		f.Type, f.AllFields = Object, true
		if f.Fields, s.wrong = derive(f.Fields, reflect.TypeFor[T]()); s.wrong != nil {
			s.wrong = fmt.Errorf("admin: %s: section %s: %w", s.Path, f.Name, s.wrong)
			return
		}
	}
	if s.standard, s.wrong = membersOf(s.Standard); s.Overrides != nil {
		s.own = s.Overrides.sections(s.Sections)
	}
}

func membersOf(v any) (map[string]json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out map[string]json.RawMessage
	return out, json.Unmarshal(raw, &out)
}

// members are the schemas of a response's fields.
func (s *Singleton[T]) members(sections []Field) map[string]Schema {
	members := map[string]Schema{"object": listOf(s.Object), "organisation_id": stringSchema, "last_updated_at": timeSchema}
	for i := range sections {
		members[sections[i].Name] = sections[i].shownSchema()
	}
	return members
}

// paths name the stored fields of sections in rejections and origins.
func paths(sections []Field) map[string]string {
	out := map[string]string{}
	for i := range sections {
		for j := range sections[i].Fields {
			f := &sections[i].Fields[j]
			out[f.member()] = sections[i].Name + "." + f.Name
		}
	}
	return out
}

// settings are stored settings: the record and the fields that it holds.
type settings struct {
	rec  resource.Record
	body map[string]json.RawMessage // of the record
	set  map[string]json.RawMessage // of T
}

// load reads settings; fields that are not stored yet are those of initial.
func load(get getter, rec resource.Record, in string, initial map[string]json.RawMessage) (settings, error) {
	out := settings{rec: rec, body: map[string]json.RawMessage{}, set: map[string]json.RawMessage{}}
	stored, ok, err := get(rec.Scope, rec.Kind, rec.ID)
	if err != nil {
		return out, err
	}
	if !ok {
		for name, raw := range initial {
			out.set[name] = raw
		}
		return out, nil
	}
	out.rec = stored
	if err := json.Unmarshal(stored.Body, &out.body); err != nil {
		return out, fmt.Errorf("admin: stored %s %s: %w", rec.Kind, rec.ID, err)
	}
	if in == "" {
		out.set = out.body
	} else if raw, ok := out.body[in]; ok {
		err = json.Unmarshal(raw, &out.set)
	}
	return out, err
}

// save stages the settings.
func (st *settings) save(c *Call, tx *resource.Tx, in string) error {
	var err error
	if in == "" {
		st.body = st.set
	} else {
		if st.body[in], err = json.Marshal(st.set); err != nil {
			return fmt.Errorf("admin: encode %s: %w", st.rec.Kind, err)
		}
	}
	if st.rec.Body, err = json.Marshal(st.body); err != nil {
		return fmt.Errorf("admin: encode %s: %w", st.rec.Kind, err)
	}
	st.rec.UpdatedBy = c.Actor()
	if st.rec.Rev == 0 {
		st.rec.CreatedBy = c.Actor()
		return tx.Create(&st.rec)
	}
	return tx.Update(&st.rec)
}

func (s *Singleton[T]) record(c *Call) resource.Record {
	org := c.Organisation()
	return resource.Record{Scope: org, Kind: s.Kind, ID: org.Org, Name: org.Org, Status: "active"}
}

func (s *Singleton[T]) ofOrganisation(c *Call, get getter) (settings, error) {
	return load(get, s.record(c), s.In, s.standard)
}

// getter reads a record.
type getter func(store.Scope, resource.Kind, string) (resource.Record, bool, error)

// reader reads outside a change, and a Tx within one.
func reader(c *Call) getter {
	return func(sc store.Scope, k resource.Kind, id string) (resource.Record, bool, error) {
		return c.Resources.Get(c.Context, sc, k, id)
	}
}

func (s *Singleton[T]) read(c *Call) (any, error) {
	c.SetResource(c.Caller.Scope.Org)
	of, err := s.ofOrganisation(c, reader(c))
	if err != nil {
		return nil, err
	}
	return s.show(c, s.Sections, &of, of.set), nil
}

func (s *Singleton[T]) show(c *Call, sections []Field, st *settings, values map[string]json.RawMessage) Members {
	out := Members{"object": s.Object, "organisation_id": c.Caller.Scope.Org, "last_updated_at": FormatTime(st.rec.Updated)}
	for i := range sections {
		section := Members{}
		for j := range sections[i].Fields {
			f := &sections[i].Fields[j]
			section[f.Name] = f.show(values[f.member()])
		}
		out[sections[i].Name] = section
	}
	return out
}

func (s *Singleton[T]) update(c *Call) (any, error) {
	c.SetResource(c.Caller.Scope.Org)
	for _, section := range s.Recent {
		if !c.Body.HasValue(section) {
			continue
		}
		if err := c.signedInLately(); err != nil {
			return nil, err
		}
	}
	return nil, c.Change(func(tx *resource.Tx) error {
		st, err := s.ofOrganisation(c, tx.Get)
		if err != nil {
			return err
		}
		was := maps.Clone(st.set)
		apply(s.Sections, c.Body, st.set, s.standard)
		if err := s.check(st.set); err != nil {
			return err
		}
		if s.Guard != nil {
			if err := s.Guard(c, was, st.set); err != nil {
				return err
			}
		}
		if s.Changed != nil {
			if err := s.Changed(c, tx, was, st.set); err != nil {
				return err
			}
		}
		noteSections(c, s.Sections, was, st.set)
		return st.save(c, tx, s.In)
	})
}

// apply puts the sections of a body into set. A section or a value that is null becomes
// what initial has, or else is removed.
func apply(sections []Field, body Values, set, initial map[string]json.RawMessage) {
	for i := range sections {
		section := sections[i].Name
		values, _ := body.Object(section)
		for j := range sections[i].Fields {
			f := &sections[i].Fields[j]
			if !values.Has(f.Name) && !body.Null(section) {
				continue
			}
			now := f.stored(values.Raw(f.Name))
			if !values.HasValue(f.Name) {
				now = initial[f.member()]
			}
			if now == nil {
				delete(set, f.member())
			} else {
				set[f.member()] = now
			}
		}
	}
}

// noteSections adds the changed settings to the audit record.
func noteSections(c *Call, sections []Field, was, now map[string]json.RawMessage) {
	diff := map[string][2]any{}
	for member, path := range paths(sections) {
		if string(was[member]) != string(now[member]) {
			diff[path] = [2]any{was[member], now[member]}
		}
	}
	NoteChanges(c, diff)
}

// check validates the fields as T, and normalizes them to the JSON that T writes.
func (s *Singleton[T]) check(set map[string]json.RawMessage) error {
	form, bad := formOf[T](set)
	if v, ok := any(form).(interface{ Validate() []fault.Detail }); ok && form != nil {
		bad = append(bad, v.Validate()...)
	}
	at := paths(s.Sections)
	for i := range bad {
		member, below := bad[i].Field, ""
		if n := strings.IndexAny(member, ".["); n >= 0 {
			member, below = member[:n], member[n:]
		}
		if path, ok := at[member]; ok {
			bad[i].Field = path + below
		}
	}
	if f := fault.Invalids(bad); f != nil {
		return f
	}
	written, err := membersOf(form)
	if err != nil {
		return fmt.Errorf("admin: encode %s: %w", s.Kind, err)
	}
	for member := range set {
		if raw, ok := written[member]; ok { // T omits zero values
			set[member] = raw
		}
	}
	return nil
}
