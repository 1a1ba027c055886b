package scim

import (
	"fmt"
	"strings"

	"gateway/shared/fault"
)

// maxOperations is the number of operations in a PATCH.
const maxOperations = 1000

// maxPath is the length limit of a path in bytes.
const maxPath = 1024

// operation is an operation of a PATCH: RFC 7644, 3.5.2.
type operation struct {
	op       string // add, replace, remove
	at       string // path in the body, for faults
	path     string
	hasValue bool // it has a value
	value    any
}

// target is the target of an operation.
type target struct {
	path   attrPath // path of an attribute or, without a filter, of a part of it
	filter *Filter  // of its values
	sub    string   // part of the values that the filter finds
}

// Patch applies the body of a PATCH to a resource in place. After an error the resource must
// not be used.
func (s *Schema) Patch(resource, body map[string]any) error {
	ops, err := operations(body)
	if err != nil {
		return err
	}
	for i := range ops {
		if err := s.apply(resource, &ops[i]); err != nil {
			return located(err, ops[i].at)
		}
	}
	return nil
}

// located adds the operation to a fault.
func located(err error, at string) error {
	f := fault.From(err)
	t := TypeOf(f)
	field := at
	if f.Field != "" {
		field = at + "." + f.Field
	}
	out := fault.New(f.Code, field, f.Message)
	if t != "" {
		out = out.WithCause(t)
	}
	return out
}

func operations(body map[string]any) ([]operation, error) {
	schemas := listed(member(body, "schemas"))
	named := false
	for _, s := range schemas {
		named = named || strings.EqualFold(s, PatchURN)
	}
	if len(schemas) > 0 && !named {
		return nil, invalid(InvalidSyntax, "schemas", "must be a list with %s", PatchURN)
	}
	list, ok := member(body, "Operations").([]any)
	if !ok || len(list) == 0 || len(list) > maxOperations {
		return nil, invalid(InvalidSyntax, "Operations", "must be a list of 1 to %d operations", maxOperations)
	}
	out := make([]operation, len(list))
	for i, e := range list {
		at := fmt.Sprintf("Operations[%d]", i)
		m, ok := e.(map[string]any)
		if !ok {
			return nil, invalid(InvalidSyntax, at, "must be an object")
		}
		name, _ := member(m, "op").(string)
		path := member(m, "path")
		o := operation{op: strings.ToLower(name), at: at}
		if o.path, ok = path.(string); !ok && path != nil || len(o.path) > maxPath {
			return nil, invalid(InvalidPath, at+".path", "must be a string of at most %d bytes", maxPath)
		}
		for k, v := range m {
			if strings.EqualFold(k, "value") {
				o.value, o.hasValue = v, true
			}
		}
		switch {
		case o.op != "add" && o.op != "replace" && o.op != "remove":
			return nil, invalid(InvalidSyntax, at+".op", "must be add, replace or remove")
		case o.op == "remove" && o.path == "":
			return nil, invalid(NoTarget, at+".path", "is required to remove something")
		case o.op != "remove" && !o.hasValue:
			return nil, invalid(InvalidValue, at+".value", "is required")
		}
		out[i] = o
	}
	return out, nil
}

// listed returns the strings of a list.
func listed(v any) (out []string) {
	for _, e := range each(v) {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func (s *Schema) apply(resource map[string]any, o *operation) error {
	if o.path == "" {
		return s.members(resource, o)
	}
	t, err := parsePath(o.path)
	if err != nil {
		return err
	}
	if s.Extension != nil && t.filter == nil && t.sub == "" && strings.EqualFold(o.path, s.Extension.URN) {
		return s.extension(resource, o)
	}
	a := s.attribute(attrPath{urn: t.path.urn, name: t.path.name})
	if a == nil {
		if t.path.urn == "" && isDropped(t.path.name) {
			return nil
		}
		return invalid(InvalidPath, "path", "is not an attribute: %s", fault.Clip(o.path, 100))
	}
	if sub := cmpOr(t.path.sub, t.sub); sub != "" && find(a.sub, sub) == nil {
		return invalid(InvalidPath, "path", "is not a sub-attribute of %s: %s", a.name, fault.Clip(sub, 100))
	}
	if a.readOnly() {
		return invalid(Mutability, "path", "%s can only be read", a.name)
	}
	if a.name == "schemas" {
		return nil
	}
	in, err := s.holder(resource, t.path.urn)
	if err != nil {
		return err
	}
	if err := (&change{a: a, in: in, o: o, t: t}).do(); err != nil {
		return err
	}
	if s.Extension != nil {
		if ext, ok := resource[s.Extension.URN].(map[string]any); ok && len(ext) == 0 {
			delete(resource, s.Extension.URN)
		}
	}
	return nil
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func isDropped(name string) bool {
	for _, u := range ignoredAttributes {
		if strings.EqualFold(u, name) {
			return true
		}
	}
	return false
}

// holder returns the object that contains an attribute.
func (s *Schema) holder(resource map[string]any, urn string) (map[string]any, error) {
	if urn == "" || strings.EqualFold(urn, s.URN) {
		return resource, nil
	}
	ext, ok := resource[s.Extension.URN].(map[string]any)
	if !ok {
		ext = map[string]any{}
		resource[s.Extension.URN] = ext
	}
	return ext, nil
}

// members applies an operation without a path: each field of its value is an operation whose
// path is the field's name, which some providers write like a path.
func (s *Schema) members(resource map[string]any, o *operation) error {
	values, ok := o.value.(map[string]any)
	if !ok {
		return invalid(InvalidValue, "value", "must be an object if there is no path")
	}
	for _, k := range sortedKeys(values) {
		if p, ok := parseName(k); ok && p.sub == "" && p.urn == "" {
			if a := s.attribute(p); a == nil || a.readOnly() || a.name == "schemas" {
				continue // as in a PUT, read-only and unknown attributes are ignored
			}
		}
		if err := s.apply(resource, &operation{op: o.op, at: o.at, path: k, hasValue: true, value: values[k]}); err != nil {
			return err
		}
	}
	return nil
}

// extension changes the attributes of the extension together.
func (s *Schema) extension(resource map[string]any, o *operation) error {
	if o.op == "remove" {
		delete(resource, s.Extension.URN)
		return nil
	}
	values, ok := o.value.(map[string]any)
	if !ok {
		return invalid(InvalidValue, "value", "must be an object")
	}
	for _, k := range sortedKeys(values) {
		if find(s.Extension.attributes, k) == nil {
			continue
		}
		if err := s.apply(resource, &operation{op: o.op, at: o.at, path: s.Extension.URN + ":" + k, hasValue: true, value: values[k]}); err != nil {
			return err
		}
	}
	return nil
}

// parsePath parses the path of an operation: attribute, attribute.part, attribute[filter] or
// attribute[filter].part.
func parsePath(s string) (t target, err error) {
	p := &reader{text: s, kind: InvalidPath, field: "path"}
	if s != strings.TrimSpace(s) {
		return t, p.bad("it has spaces around it")
	}
	if t.path, err = p.path(); err != nil {
		return t, err
	}
	if p.at == len(s) {
		return t, nil
	}
	if s[p.at] != '[' {
		return t, p.bad("the end was expected")
	}
	p.at++
	if t.filter, err = p.or(1); err != nil {
		return t, err
	}
	if !p.next(']') {
		return t, p.bad("a ] is missing")
	}
	if rest := s[p.at:]; rest != "" {
		sub, ok := strings.CutPrefix(rest, ".")
		if q, good := parseName(sub); !ok || !good || q.sub != "" || q.urn != "" {
			return t, p.bad("a sub-attribute was expected, such as .value")
		}
		t.sub = sub
	}
	if t.path.sub != "" {
		return t, p.bad("a sub-attribute has no values to filter")
	}
	return t, nil
}
