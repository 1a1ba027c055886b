package admin

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Singleton describes settings: one form T of the organisation, read and changed
// in sections. What is not set, and what null sets back, is the Standard.
//
// With Overrides a workspace has the same sections: what it sets wins, what it
// does not set is the organisation's. Reads of a workspace tell the value that
// holds and where it comes from.
type Singleton[T any] struct {
	Object, Path string
	Kind         resource.Kind // of the record, whose id is the organisation's
	In           string        // member of the record's body that holds T; "": all of it
	Scope        string        // family of scopes: .read and .update
	Role         Role
	Title        string  // in prose: settings of the organisation
	Sections     []Field // objects, whose members are members of T
	Standard     T
	Overrides    *Overrides[T]

	standard map[string]json.RawMessage
	wrong    error
}

// Overrides are the settings of one workspace.
type Overrides[T any] struct {
	Path   string  // with the variable of Parent
	Parent *Parent // the collection of workspaces, AsWorkspace
	Kind   resource.Kind
	Scope  string
	Role   Role
	Title  string
	// Allowed tells whether the organisation lets its workspaces set a section;
	// nil: every one.
	Allowed func(of *T, section string) bool
}

// Origins of a value.
const (
	fromWorkspace    = "workspace"
	fromOrganisation = "organisation"
	fromStandard     = "standard"
)

// overrideID is the id of the one record of a workspace.
const overrideID = "settings"

// Routes makes the routes of the description.
func (s *Singleton[T]) Routes() []Route {
	if s.compile(); s.wrong != nil {
		return []Route{{Method: "GET", Path: s.Path, mistake: s.wrong}}
	}
	name := operation(s.Object)
	base := Route{Path: s.Path, Where: InOrganisation, Role: s.Role, Resource: s.Scope}
	out := []Route{
		base.with("GET", "get"+name, "Read the "+s.Title+".", s.Scope+".read", func(c *Call) (any, error) { return s.read(c) }),
		base.with("PUT", "update"+name, "Change the "+s.Title+": absent sections and members stay, null sets the standard. Requests go by them within 2 seconds.", s.Scope+".update", s.update),
	}
	out[0].Answer = s.schema(false)
	out[1].Body = s.Sections
	if o := s.Overrides; o != nil {
		base = Route{Path: o.Path, Where: Shared, Role: o.Role, Resource: o.Scope}
		of := []Route{
			base.with("GET", "getWorkspace"+name, "Read the "+o.Title+": the values that hold, and where they come from.", o.Scope+".read", s.inside(s.readWorkspace)),
			base.with("PUT", "updateWorkspace"+name, "Change the "+o.Title+": absent members stay, null takes the organisation's.", o.Scope+".update", s.inside(s.updateWorkspace)),
		}
		of[0].Answer, of[1].Body = s.schema(true), s.Sections
		out = append(out, of...)
	}
	return out
}

func (r Route) with(method, name, doc, scope string, do func(*Call) (any, error)) Route {
	r.Method, r.Name, r.Doc, r.Scopes, r.Do = method, name, doc, []string{scope}, do
	if method != "GET" {
		r.BodyMode, r.Action, r.Answer = PartialBody, audit.Update, emptySchema
	}
	return r
}

func (s *Singleton[T]) compile() {
	s.Sections = slices.Clone(s.Sections)
	for i := range s.Sections {
		f := &s.Sections[i]
		f.Type, f.Full = Object, true
		if f.Fields, s.wrong = derive(f.Fields, reflect.TypeFor[T]()); s.wrong != nil {
			s.wrong = fmt.Errorf("admin: %s: section %s: %w", s.Path, f.Name, s.wrong)
			return
		}
	}
	s.standard, s.wrong = membersOf(s.Standard)
}

func membersOf(v any) (map[string]json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out map[string]json.RawMessage
	return out, json.Unmarshal(raw, &out)
}

func (s *Singleton[T]) schema(workspace bool) Schema {
	members := map[string]Schema{"object": listOf(s.Object), "organisation_id": stringSchema, "last_updated_at": timeSchema}
	origins := map[string]Schema{}
	for i := range s.Sections {
		members[s.Sections[i].Name] = s.Sections[i].shownSchema()
		for j := range s.Sections[i].Fields {
			origins[s.path(i, j)] = Schema{"type": "string", "enum": []string{fromWorkspace, fromOrganisation, fromStandard}}
		}
	}
	if workspace {
		members["workspace_id"], members["origins"] = stringSchema, Closed(origins)
	}
	return Closed(members)
}

// path names a member in refusals and origins.
func (s *Singleton[T]) path(section, member int) string {
	return s.Sections[section].Name + "." + s.Sections[section].Fields[member].Name
}

// settings are stored settings: the record and the members that it holds.
type settings struct {
	rec  resource.Record
	body map[string]json.RawMessage // of the record
	set  map[string]json.RawMessage // of T
}

// load reads settings; what is not stored yet has the members of initial.
func load(get func(store.Scope, resource.Kind, string) (resource.Record, bool, error), rec resource.Record, in string, initial map[string]json.RawMessage) (settings, error) {
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

func (s *Singleton[T]) ofOrganisation(c *Call, get func(store.Scope, resource.Kind, string) (resource.Record, bool, error)) (settings, error) {
	return load(get, s.record(c), s.In, s.standard)
}

// reader reads outside of a change, as a Tx does within.
func reader(c *Call) func(store.Scope, resource.Kind, string) (resource.Record, bool, error) {
	return func(sc store.Scope, k resource.Kind, id string) (resource.Record, bool, error) {
		return c.Resources.Get(c.Context, sc, k, id)
	}
}

func (s *Singleton[T]) read(c *Call) (any, error) {
	c.About(c.Caller.Scope.Org)
	of, err := s.ofOrganisation(c, reader(c))
	if err != nil {
		return nil, err
	}
	return s.show(c, &of, func(member string) json.RawMessage { return of.set[member] }), nil
}

func (s *Singleton[T]) show(c *Call, st *settings, value func(member string) json.RawMessage) Members {
	out := Members{"object": s.Object, "organisation_id": c.Caller.Scope.Org, "last_updated_at": FormatTime(st.rec.Updated)}
	for i := range s.Sections {
		section := Members{}
		for j := range s.Sections[i].Fields {
			f := &s.Sections[i].Fields[j]
			section[f.Name] = f.show(value(f.member()))
		}
		out[s.Sections[i].Name] = section
	}
	return out
}

func (s *Singleton[T]) update(c *Call) (any, error) {
	c.About(c.Caller.Scope.Org)
	return nil, c.Change(func(tx *resource.Tx) error {
		st, err := s.ofOrganisation(c, tx.Get)
		if err != nil {
			return err
		}
		NoteChanges(c, s.apply(c.Body, st.set, s.standard))
		if err := s.check(st.set); err != nil {
			return err
		}
		return st.save(c, tx, s.In)
	})
}

// apply puts the sections of a body into set. No value of a section that is null,
// and null, are what initial has, else nothing. It tells what changed.
func (s *Singleton[T]) apply(body Values, set, initial map[string]json.RawMessage) map[string][2]any {
	diff := map[string][2]any{}
	for i := range s.Sections {
		section := s.Sections[i].Name
		given, _ := body.Object(section)
		for j := range s.Sections[i].Fields {
			f := &s.Sections[i].Fields[j]
			if !given.Has(f.Name) && !body.Null(section) {
				continue
			}
			was, now := set[f.member()], f.stored(given.Raw(f.Name))
			if !given.Given(f.Name) {
				now = initial[f.member()]
			}
			if now == nil {
				delete(set, f.member())
			} else {
				set[f.member()] = now
			}
			if string(was) != string(now) {
				diff[s.path(i, j)] = [2]any{was, now}
			}
		}
	}
	return diff
}

// check reads the members as T, which may refuse them.
func (s *Singleton[T]) check(set map[string]json.RawMessage) error {
	form, bad := decodeForm[T](set)
	if v, ok := any(form).(interface{ Validate() []fault.Detail }); ok && form != nil {
		bad = append(bad, v.Validate()...)
	}
	if f := fault.Invalids(bad); f != nil {
		return f
	}
	return nil
}

// inside finds the workspace of a call before do.
func (s *Singleton[T]) inside(do func(*Call) (any, error)) func(*Call) (any, error) {
	return func(c *Call) (any, error) {
		if err := s.Overrides.Parent.enter(c); err != nil {
			return nil, err
		}
		c.About(c.Scope.Workspace)
		return do(c)
	}
}

func (s *Singleton[T]) own(c *Call, get func(store.Scope, resource.Kind, string) (resource.Record, bool, error)) (settings, error) {
	return load(get, resource.Record{Scope: c.Scope, Kind: s.Overrides.Kind, ID: overrideID, Status: "active"}, "", nil)
}

// readWorkspace shows what holds in a workspace and where it comes from.
func (s *Singleton[T]) readWorkspace(c *Call) (any, error) {
	of, err := s.ofOrganisation(c, reader(c))
	if err != nil {
		return nil, err
	}
	own, err := s.own(c, reader(c))
	if err != nil {
		return nil, err
	}
	form, _ := decodeForm[T](of.set)
	origins := map[string]string{}
	effective := map[string]json.RawMessage{}
	for i := range s.Sections {
		may := s.Overrides.Allowed == nil || form != nil && s.Overrides.Allowed(form, s.Sections[i].Name)
		for j := range s.Sections[i].Fields {
			member, origin := s.Sections[i].Fields[j].member(), fromStandard
			value, set := of.set[member]
			if set && string(value) != string(s.standard[member]) {
				origin = fromOrganisation
			}
			if v, ok := own.set[member]; ok && may {
				value, origin = v, fromWorkspace
			}
			effective[member], origins[s.path(i, j)] = value, origin
		}
	}
	out := s.show(c, &own, func(member string) json.RawMessage { return effective[member] })
	out["workspace_id"], out["origins"] = c.Scope.Workspace, origins
	return out, nil
}

func (s *Singleton[T]) updateWorkspace(c *Call) (any, error) {
	return nil, c.Change(func(tx *resource.Tx) error {
		of, err := s.ofOrganisation(c, tx.Get)
		if err != nil {
			return err
		}
		if err := s.allowed(c, of.set); err != nil {
			return err
		}
		own, err := s.own(c, tx.Get)
		if err != nil {
			return err
		}
		NoteChanges(c, s.apply(c.Body, own.set, nil))
		effective := map[string]json.RawMessage{}
		for _, from := range []map[string]json.RawMessage{of.set, own.set} {
			for member, v := range from {
				effective[member] = v
			}
		}
		if err := s.check(effective); err != nil {
			return err
		}
		return own.save(c, tx, "")
	})
}

// allowed refuses sections that the organisation keeps to itself.
func (s *Singleton[T]) allowed(c *Call, of map[string]json.RawMessage) error {
	form, bad := decodeForm[T](of)
	if s.Overrides.Allowed == nil || form == nil {
		return nil
	}
	for i := range s.Sections {
		if name := s.Sections[i].Name; c.Body.Has(name) && !s.Overrides.Allowed(form, name) {
			bad = append(bad, fault.Detail{Field: name, Message: "is set by the organisation for all of its workspaces"})
		}
	}
	if f := fault.Invalids(bad); f != nil {
		return f
	}
	return nil
}
