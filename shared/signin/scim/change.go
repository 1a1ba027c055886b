package scim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// change is the change of one attribute.
type change struct {
	a  *attribute
	in map[string]any
	o  *operation
	t  target
}

// clean normalizes the value to the schema.
func (c *change) clean(a *attribute, v any) (any, error) {
	var cl cleaner
	out := cl.value(a, v, "value")
	return out, cl.rejection()
}

func (c *change) do() error {
	switch {
	case c.t.filter != nil:
		return c.applyFiltered()
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
	case c.a.kind == "complex" && !c.a.multi: // parts that are not named stay
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

// add adds values to the existing ones. If a new value is primary, no other value stays
// primary.
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

// keyOf identifies a value: two values with the same value and type are the same.
func keyOf(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprint(v)
	}
	if value, ok := m["value"].(string); ok {
		kind, _ := m["type"].(string)
		if kind == "User" {
			kind = "" // it has no meaning for members
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

// remove removes an attribute, or the values that the operation names, as some providers send.
func (c *change) remove() error {
	if !c.o.hasValue || c.o.value == nil || !c.a.multi {
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

// part changes one part of an attribute, for each of its values.
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

// set sets or removes a part of values.
func (c *change) set(sub *attribute, objects []any) error {
	if sub.readOnly() {
		return invalid(Mutability, "path", "%s.%s can only be read", c.a.name, sub.name)
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

// tidy removes values without parts.
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

// applyFiltered changes the values that a filter matches.
func (c *change) applyFiltered() error {
	if c.a.kind != "complex" {
		return invalid(InvalidPath, "path", "%s has no sub-attributes to filter by", c.a.name)
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
		c.put(rest) // values that do not exist need no removal
		return nil
	case len(found) == 0 && c.o.op == "remove":
		return nil
	case len(found) == 0:
		made, ok := c.newValue()
		if !ok || c.o.op == "replace" && !c.t.filter.fresh(c.a) {
			return invalid(NoTarget, "path", "matches no value of %s", c.a.name)
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

// newValue returns a value that the filter would match; it supports only comparisons with eq.
func (c *change) newValue() (map[string]any, bool) {
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

// fresh reports whether a replace creates the value that its filter does not match: one with a
// type of the schema, or the primary one. Some providers set the first value this way.
func (f *Filter) fresh(a *attribute) bool {
	if f.op == "and" {
		return f.left.fresh(a) && f.right.fresh(a)
	}
	sub := find(a.sub, f.path.name)
	s, _ := f.value.(string)
	return f.op == "eq" && sub != nil && (sub.name == "primary" || sub.name == "type" && slices.Contains(sub.values, strings.ToLower(s)))
}
