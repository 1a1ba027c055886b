package scim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gateway/shared/fault"
)

// maxOperations bounds a PATCH.
const maxOperations = 1000

// maxPath bounds a path, in bytes.
const maxPath = 1024

// operation is one of a PATCH: RFC 7644, 3.5.2.
type operation struct {
	op    string // add, replace, remove
	at    string // of the body, for refusals
	path  string
	given bool // a value
	value any
}

// target is where an operation acts.
type target struct {
	path   attrPath // of an attribute, or of a part of it where there is no filter
	filter *Filter  // of its values
	sub    string   // part of the values that the filter finds
}

// Patch changes a resource as the body of a PATCH says. The resource is changed in
// place: on a refusal it is of no use.
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

// located names the operation in a refusal.
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
		return nil, refuse(InvalidSyntax, "schemas", "must be a list with %s", PatchURN)
	}
	list, ok := member(body, "Operations").([]any)
	if !ok || len(list) == 0 || len(list) > maxOperations {
		return nil, refuse(InvalidSyntax, "Operations", "must be a list of 1 to %d operations", maxOperations)
	}
	out := make([]operation, len(list))
	for i, e := range list {
		at := fmt.Sprintf("Operations[%d]", i)
		m, ok := e.(map[string]any)
		if !ok {
			return nil, refuse(InvalidSyntax, at, "must be an object")
		}
		name, _ := member(m, "op").(string)
		path := member(m, "path")
		o := operation{op: strings.ToLower(name), at: at}
		if o.path, ok = path.(string); !ok && path != nil || len(o.path) > maxPath {
			return nil, refuse(InvalidPath, at+".path", "must be a string of at most %d bytes", maxPath)
		}
		for k, v := range m {
			if strings.EqualFold(k, "value") {
				o.value, o.given = v, true
			}
		}
		switch {
		case o.op != "add" && o.op != "replace" && o.op != "remove":
			return nil, refuse(InvalidSyntax, at+".op", "must be add, replace or remove")
		case o.op == "remove" && o.path == "":
			return nil, refuse(NoTarget, at+".path", "is required to remove something")
		case o.op != "remove" && !o.given:
			return nil, refuse(InvalidValue, at+".value", "is required")
		}
		out[i] = o
	}
	return out, nil
}

// listed are the texts of a list.
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
		if t.path.urn == "" && isUnkept(t.path.name) {
			return nil
		}
		return refuse(InvalidPath, "path", "names no attribute: %s", fault.Clip(o.path, 100))
	}
	if sub := cmpOr(t.path.sub, t.sub); sub != "" && find(a.sub, sub) == nil {
		return refuse(InvalidPath, "path", "names no part of %s: %s", a.name, fault.Clip(sub, 100))
	}
	if a.readOnly() {
		return refuse(Mutability, "path", "%s can only be read", a.name)
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

func isUnkept(name string) bool {
	for _, u := range unkept {
		if strings.EqualFold(u, name) {
			return true
		}
	}
	return false
}

// holder is the object that an attribute stands in.
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

// members applies an operation without a path: each member of its value is one with
// the member's name as its path, which providers write as a path too.
func (s *Schema) members(resource map[string]any, o *operation) error {
	values, ok := o.value.(map[string]any)
	if !ok {
		return refuse(InvalidValue, "value", "must be an object where there is no path")
	}
	for _, k := range sortedKeys(values) {
		if p, ok := parseName(k); ok && p.sub == "" && p.urn == "" {
			if a := s.attribute(p); a == nil || a.readOnly() || a.name == "schemas" {
				continue // as in a PUT: what is only read, or unknown, is left out
			}
		}
		if err := s.apply(resource, &operation{op: o.op, at: o.at, path: k, given: true, value: values[k]}); err != nil {
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
		return refuse(InvalidValue, "value", "must be an object")
	}
	for _, k := range sortedKeys(values) {
		if find(s.Extension.attributes, k) == nil {
			continue
		}
		if err := s.apply(resource, &operation{op: o.op, at: o.at, path: s.Extension.URN + ":" + k, given: true, value: values[k]}); err != nil {
			return err
		}
	}
	return nil
}

// parsePath reads the path of an operation: attribute, attribute.part,
// attribute[filter] or attribute[filter].part.
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
		return t, p.bad("nothing was expected")
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
			return t, p.bad("a part of the attribute was expected, such as .value")
		}
		t.sub = sub
	}
	if t.path.sub != "" {
		return t, p.bad("a part of an attribute has no values to choose from")
	}
	return t, nil
}

// change is one attribute being changed.
type change struct {
	a  *attribute
	in map[string]any
	o  *operation
	t  target
}

// clean is the value as the schema has it.
func (c *change) clean(a *attribute, v any) (any, error) {
	var cl cleaner
	out := cl.value(a, v, "value")
	return out, cl.refusal()
}

func (c *change) do() error {
	switch {
	case c.t.filter != nil:
		return c.chosen()
	case c.t.path.sub != "":
		return c.part()
	case c.o.op == "remove":
		return c.remove()
	}
	v, err := c.clean(c.a, c.o.value)
	switch {
	case err != nil:
		return err
	case v == nil && c.o.op == "replace", c.a.multi && c.o.op == "replace" && len(each(v)) == 0:
		delete(c.in, c.a.name)
	case v == nil:
	case c.a.multi && c.o.op == "add":
		c.add(each(v))
	case c.a.kind == "complex" && !c.a.multi: // what is not named stays
		old, _ := c.in[c.a.name].(map[string]any)
		merged, _ := Copy(old).(map[string]any)
		if merged == nil {
			merged = map[string]any{}
		}
		for k, e := range v.(map[string]any) {
			merged[k] = e
		}
		c.in[c.a.name] = merged
	default:
		c.in[c.a.name] = v
	}
	return nil
}

// add puts values beside those that there are. A new one that comes first is the only
// one that does.
func (c *change) add(values []any) {
	have := each(c.in[c.a.name])
	known := make(map[string]int, len(have))
	for i, h := range have {
		known[keyOf(h)] = i
	}
	for _, v := range values {
		if isPrimary(v) {
			for _, h := range have {
				if m, ok := h.(map[string]any); ok && isPrimary(m) {
					m["primary"] = false
				}
			}
		}
		if i, there := known[keyOf(v)]; there {
			merge(have[i], v)
			continue
		}
		known[keyOf(v)] = len(have)
		have = append(have, v)
	}
	c.in[c.a.name] = have
}

// keyOf is what makes two values the same one: value and type.
func keyOf(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprint(v)
	}
	if value, ok := m["value"].(string); ok {
		kind, _ := m["type"].(string)
		if kind == "User" {
			kind = "" // of members, where it says nothing
		}
		return strings.ToLower(kind) + "\x00" + value
	}
	return fmt.Sprint(m)
}

func merge(into, from any) {
	a, okA := into.(map[string]any)
	b, okB := from.(map[string]any)
	if okA && okB {
		for k, v := range b {
			a[k] = v
		}
	}
}

func isPrimary(v any) bool {
	m, _ := v.(map[string]any)
	yes, _ := m["primary"].(bool)
	return yes
}

// remove takes an attribute away, or those of its values that the operation names, as
// some providers do.
func (c *change) remove() error {
	if !c.o.given || c.o.value == nil || !c.a.multi {
		delete(c.in, c.a.name)
		return nil
	}
	v, err := c.clean(c.a, c.o.value)
	if err != nil {
		return err
	}
	gone := map[string]bool{}
	for _, e := range each(v) {
		if m, ok := e.(map[string]any); ok {
			gone[fmt.Sprint(m["value"])] = true
		}
	}
	var left []any
	for _, h := range each(c.in[c.a.name]) {
		if m, ok := h.(map[string]any); ok && gone[fmt.Sprint(m["value"])] {
			continue
		}
		left = append(left, h)
	}
	c.put(left)
	return nil
}

func (c *change) put(values []any) {
	if len(values) == 0 {
		delete(c.in, c.a.name)
		return
	}
	c.in[c.a.name] = values
}

// part changes one part of an attribute, of several values in each.
func (c *change) part() error {
	sub := find(c.a.sub, c.t.path.sub)
	objects := each(c.in[c.a.name])
	if len(objects) == 0 && c.o.op != "remove" {
		m := map[string]any{}
		if objects = []any{m}; c.a.multi {
			c.in[c.a.name] = objects
		} else {
			c.in[c.a.name] = m
		}
	}
	if err := c.set(sub, objects); err != nil {
		return err
	}
	c.tidy()
	return nil
}

// set gives a part of values another value, or takes it away.
func (c *change) set(sub *attribute, objects []any) error {
	if sub.readOnly() {
		return refuse(Mutability, "path", "%s.%s can only be read", c.a.name, sub.name)
	}
	var v any
	if c.o.op != "remove" {
		var err error
		if v, err = c.clean(sub, c.o.value); err != nil {
			return err
		}
	}
	for _, e := range objects {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}
		if v == nil {
			delete(m, sub.name)
			continue
		}
		m[sub.name] = v
	}
	return nil
}

// tidy drops values that have nothing left.
func (c *change) tidy() {
	if !c.a.multi {
		if m, ok := c.in[c.a.name].(map[string]any); ok && len(m) == 0 {
			delete(c.in, c.a.name)
		}
		return
	}
	var left []any
	for _, e := range each(c.in[c.a.name]) {
		if m, ok := e.(map[string]any); ok && len(m) == 0 {
			continue
		}
		left = append(left, e)
	}
	c.put(left)
}

// chosen changes the values that a filter finds.
func (c *change) chosen() error {
	if c.a.kind != "complex" {
		return refuse(InvalidPath, "path", "%s has no parts to choose by", c.a.name)
	}
	all := each(c.in[c.a.name])
	var found, rest []any
	for _, e := range all {
		if m, ok := e.(map[string]any); ok && c.t.filter.matches(m, true) {
			found = append(found, e)
		} else {
			rest = append(rest, e)
		}
	}
	switch {
	case c.o.op == "remove" && c.t.sub == "":
		c.put(rest) // what is not there need not go
		return nil
	case len(found) == 0 && c.o.op == "remove":
		return nil
	case len(found) == 0:
		made, ok := c.made()
		if !ok || c.o.op == "replace" && !c.t.filter.fresh(c.a) {
			return refuse(NoTarget, "path", "finds no value of %s", c.a.name)
		}
		found, all = []any{made}, append(all, made)
	}
	if c.t.sub != "" {
		if err := c.set(find(c.a.sub, c.t.sub), found); err != nil {
			return err
		}
	} else {
		v, err := c.clean(&attribute{name: c.a.name, kind: "complex", sub: c.a.sub}, c.o.value)
		if err != nil {
			return err
		}
		for _, e := range found {
			merge(e, v)
		}
	}
	for _, e := range found {
		if isPrimary(e) {
			for _, other := range rest {
				if m, ok := other.(map[string]any); ok && isPrimary(m) {
					m["primary"] = false
				}
			}
		}
	}
	c.put(all)
	c.tidy()
	return nil
}

// made is a value that the filter would find: of comparisons with eq alone.
func (c *change) made() (map[string]any, bool) {
	out := map[string]any{}
	ok := c.t.filter.fill(out)
	m, _ := c.clean(&attribute{name: c.a.name, kind: "complex", sub: c.a.sub}, out)
	object, isObject := m.(map[string]any)
	return object, ok && isObject && reflect.DeepEqual(lower(object), lower(out))
}

func lower(m map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		if s, ok := v.(string); ok {
			if b := spelledBool(s); b != nil {
				v = b
			}
		}
		out[strings.ToLower(k)] = v
	}
	return out
}

func (f *Filter) fill(out map[string]any) bool {
	switch f.op {
	case "and":
		return f.left.fill(out) && f.right.fill(out)
	case "eq":
		out[f.path.name] = f.value
		return f.value != nil && f.path.sub == "" && f.path.urn == ""
	}
	return false
}

// fresh tells whether a replace makes the value that its filter does not find: one of a
// type that the schema knows, or the primary one. Providers ask for it that know no
// other way to set the first one.
func (f *Filter) fresh(a *attribute) bool {
	if f.op == "and" {
		return f.left.fresh(a) && f.right.fresh(a)
	}
	sub := find(a.sub, f.path.name)
	s, _ := f.value.(string)
	return f.op == "eq" && sub != nil && (sub.name == "primary" || sub.name == "type" && slices.Contains(sub.values, strings.ToLower(s)))
}
