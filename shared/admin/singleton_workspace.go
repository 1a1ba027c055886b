package admin

import (
	"encoding/json"
	"maps"
	"slices"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/tenant"
)

// Overrides are the settings of one workspace: those settings of the organization that it may
// override. Fields have their stored names.
type Overrides[T any] struct {
	Path    string // with the variable of Parent
	Aliases []string
	Parent  *Parent // the collection of workspaces, AsWorkspace
	Kind    resource.Kind
	Scope   string
	Role    Role
	Title   string
	// Overridable reports whether a workspace can ever have a field; nil: all of them.
	Overridable func(member string) bool
	// Allowed reports whether the organization lets its workspaces set a field; nil: all of
	// them.
	Allowed func(of *T, member string) bool
	// Effective returns the effective ones of a workspace's values; nil: all that are Allowed.
	Effective func(of *T, own map[string]json.RawMessage) map[string]json.RawMessage
	// Annotate adds to a workspace's values what Effective needs later; nil: nothing.
	Annotate func(of *T, own map[string]json.RawMessage) error
}

// sections are those that workspaces may set something of.
func (o *Overrides[T]) sections(all []Field) []Field {
	var out []Field
	for _, section := range all {
		section.Fields = slices.DeleteFunc(slices.Clone(section.Fields), func(f Field) bool { return o.Overridable != nil && !o.Overridable(f.member()) })
		if len(section.Fields) > 0 {
			out = append(out, section)
		}
	}
	return out
}

func (o *Overrides[T]) retained(of *T, own map[string]json.RawMessage) map[string]json.RawMessage {
	if o.Effective != nil {
		return o.Effective(of, own)
	}
	out := make(map[string]json.RawMessage, len(own))
	for member, raw := range own {
		if o.Allowed == nil || o.Allowed(of, member) {
			out[member] = raw
		}
	}
	return out
}

func (s *Singleton[T]) workspaceRoutes(name string) []Route {
	o := s.Overrides
	base := Route{Path: o.Path, Aliases: o.Aliases, Level: Shared, Role: o.Role, Resource: o.Scope}
	read := base.with("GET", "getWorkspace"+name, "Read the "+o.Title+": the effective values and the source of each.", o.Scope+".read", s.inside(s.readWorkspace))
	read.Role = ""
	read.ResponseOf = s.workspaceResponse
	update := base.with("PUT", "updateWorkspace"+name, "Change the "+o.Title+": absent fields are unchanged, null restores the organization's value. Fields that only the organization may set are rejected.", o.Scope+".update", s.inside(s.updateWorkspace))
	update.Body = s.own
	return []Route{read, update}
}

// workspaceResponse describes the settings of a workspace with their origins.
func (s *Singleton[T]) workspaceResponse() Schema {
	members, origins := s.members(s.own), map[string]Schema{}
	for _, path := range paths(s.own) {
		origins[path] = Schema{"type": "string", "enum": []string{tenant.FromWorkspace, tenant.FromOrganisation, tenant.FromStandard}}
	}
	members["workspace_id"], members["origins"] = stringSchema, Closed(origins)
	return Closed(members)
}

// inside finds the workspace of a call before do.
func (s *Singleton[T]) inside(do func(*Call) (any, error)) func(*Call) (any, error) {
	return func(c *Call) (any, error) {
		if err := s.Overrides.Parent.enter(c); err != nil {
			return nil, err
		}
		c.SetResource(c.Scope.Workspace)
		return do(c)
	}
}

// ownSettings are those of the call's workspace, and those of the organization that they
// are read over.
func (s *Singleton[T]) ownSettings(c *Call, get getter) (of, own settings, form *T, err error) {
	if of, err = s.ofOrganisation(c, get); err != nil {
		return of, own, nil, err
	}
	form, bad := formOf[T](of.set)
	if refused := fault.Invalids(bad); refused != nil {
		return of, own, nil, refused // of stored values: not the caller's fault
	}
	own, err = load(get, resource.Record{Scope: c.Scope, Kind: s.Overrides.Kind, ID: tenant.OverridesID, Status: "active"}, "", nil)
	return of, own, form, err
}

// readWorkspace shows what holds in a workspace and where it comes from.
func (s *Singleton[T]) readWorkspace(c *Call) (any, error) {
	of, own, form, err := s.ownSettings(c, reader(c))
	if err != nil {
		return nil, err
	}
	retained := s.Overrides.retained(form, own.set)
	origins, values := map[string]string{}, map[string]json.RawMessage{}
	for member, path := range paths(s.own) {
		v := tenant.Hold(member, retained, of.set, s.standard)
		values[member], origins[path] = v.Raw, v.Origin
	}
	out := s.show(c, s.own, &own, values)
	out["workspace_id"], out["origins"] = c.Scope.Workspace, origins
	return out, nil
}

func (s *Singleton[T]) updateWorkspace(c *Call) (any, error) {
	return nil, c.Change(func(tx *resource.Tx) error {
		of, own, form, err := s.ownSettings(c, tx.Get)
		if err != nil {
			return err
		}
		if err := s.allowed(c, form); err != nil {
			return err
		}
		was := own.set
		own.set = s.Overrides.retained(form, was)
		before := over(of.set, own.set)
		apply(s.own, s.withoutInherited(c, own.set, before), own.set, nil)
		effective := over(of.set, own.set)
		if err := s.check(effective); err != nil {
			return err
		}
		if s.Guard != nil {
			if err := s.Guard(c, before, effective); err != nil {
				return err
			}
		}
		for member := range own.set {
			own.set[member] = effective[member]
		}
		noteSections(c, s.own, was, own.set)
		if s.Overrides.Annotate != nil {
			if err := s.Overrides.Annotate(form, own.set); err != nil {
				return err
			}
		}
		return own.save(c, tx, "")
	})
}

// withoutInherited returns the body without members that a read showed as the organization's
// or the standard, when the read is sent back with its origins and they are unchanged: the
// workspace still inherits them.
func (s *Singleton[T]) withoutInherited(c *Call, own, effective map[string]json.RawMessage) Values {
	var sent struct {
		Origins map[string]string `json:"origins"`
	}
	if json.Unmarshal(c.Raw(), &sent) != nil || len(sent.Origins) == 0 {
		return c.Body
	}
	out := maps.Clone(c.Body.raw)
	for i := range s.own {
		section := &s.own[i]
		fields, ok := c.Body.Object(section.Name)
		if !ok {
			continue
		}
		for j := range section.Fields {
			f := &section.Fields[j]
			_, has := own[f.member()]
			origin := sent.Origins[section.Name+"."+f.Name]
			if has || origin == "" || origin == tenant.FromWorkspace || !fields.Has(f.Name) {
				continue
			}
			shown, err := json.Marshal(f.show(tenant.Hold(f.member(), nil, effective, s.standard).Raw))
			if err == nil && sameJSON(fields.Raw(f.Name), shown, true) {
				delete(fields.raw, f.Name)
			}
		}
		raw, err := json.Marshal(fields.raw)
		if err != nil {
			return c.Body // its fields are JSON
		}
		out[section.Name] = raw
	}
	return Values{out}
}

// over returns the members of settings with those of a workspace in their place.
func over(of, own map[string]json.RawMessage) map[string]json.RawMessage {
	out := maps.Clone(of)
	maps.Copy(out, own)
	return out
}

// allowed rejects fields that the organization reserves. To reset an entire section, a
// workspace must be allowed at least one of its fields.
func (s *Singleton[T]) allowed(c *Call, of *T) error {
	var bad []fault.Detail
	refuse := func(field string) {
		bad = append(bad, fault.Detail{Field: field, Message: "is set by the organization for all of its workspaces"})
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(c.Raw(), &sent); err != nil {
		return fault.Invalid("", "must be a JSON object")
	}
	for i := range s.Sections { // sections of the organization alone are no fields of the route
		name := s.Sections[i].Name
		if _, there := sent[name]; there && !slices.ContainsFunc(s.own, func(f Field) bool { return f.Name == name }) {
			refuse(name)
		}
	}
	for i := range s.own {
		section := &s.own[i]
		fields, _ := c.Body.Object(section.Name)
		one := false
		for j := range section.Fields {
			f := &section.Fields[j]
			may := s.Overrides.Allowed == nil || s.Overrides.Allowed(of, f.member())
			if one = one || may; !may && fields.Has(f.Name) {
				refuse(section.Name + "." + f.Name)
			}
		}
		if !one && c.Body.Null(section.Name) {
			refuse(section.Name)
		}
	}
	if f := fault.Invalids(bad); f != nil {
		return f
	}
	return nil
}
