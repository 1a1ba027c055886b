package scim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gateway/shared/fault"
)

// Limits of resources.
const (
	maxText   = 1024   // characters of a value
	maxValues = 10_000 // of an attribute
)

// Read normalizes a client's resource: names to the schema's spelling, strings to booleans, and
// single values to lists where required. It omits read-only and unknown attributes. It reports
// all faults together.
func (s *Schema) Read(body map[string]any) (map[string]any, error) {
	c := &cleaner{}
	out := c.object(s.attributes, common, body, "")
	if s.Extension != nil {
		if v := member(body, s.Extension.URN); v != nil {
			if m, ok := v.(map[string]any); ok {
				if ext := c.object(s.Extension.attributes, nil, m, s.Extension.URN); len(ext) > 0 {
					out[s.Extension.URN] = ext
				}
			} else {
				c.add(s.Extension.URN, "must be an object")
			}
		}
	}
	c.schemas(s, body)
	return out, c.rejection()
}

type cleaner struct{ bad []fault.Detail }

// maxBad is the number of reported faults.
const maxBad = 50

func (c *cleaner) add(field, format string, args ...any) {
	if len(c.bad) < maxBad {
		c.bad = append(c.bad, fault.Detail{Field: field, Message: fmt.Sprintf(format, args...)})
	}
}

func (c *cleaner) rejection() error {
	if f := fault.Invalids(c.bad); f != nil {
		return f.WithCause(InvalidValue)
	}
	return nil
}

// schemas checks that a resource names its schema, if it names any.
func (c *cleaner) schemas(s *Schema, body map[string]any) {
	v := member(body, "schemas")
	if v == nil {
		return
	}
	list, ok := v.([]any)
	named := false
	for _, e := range list {
		urn, text := e.(string)
		ok = ok && text
		named = named || strings.EqualFold(urn, s.URN)
	}
	if !ok || !named {
		c.add("schemas", "must be a list with %s", s.URN)
	}
}

func (c *cleaner) object(list, more []attribute, in map[string]any, at string) map[string]any {
	out := make(map[string]any, len(in))
	for _, k := range sortedKeys(in) {
		a := find(list, k)
		if a == nil {
			a = find(more, k)
		}
		if a == nil || a.name == "schemas" || a.readOnly() {
			continue
		}
		if _, twice := out[a.name]; twice {
			c.add(below(at, a.name), "is sent twice, in different case")
			continue
		}
		if v := c.value(a, in[k], below(at, a.name)); v != nil {
			out[a.name] = v
		}
	}
	return out
}

// below returns the path of an attribute: after the URN of a schema it follows a colon.
func below(at, name string) string {
	switch {
	case at == "":
		return name
	case strings.HasPrefix(at, "urn:") && !strings.Contains(at[strings.LastIndexByte(at, ':'):], "["):
		return at + ":" + name
	}
	return at + "." + name
}

func (c *cleaner) value(a *attribute, v any, at string) any {
	if v == nil {
		return nil
	}
	if !a.multi {
		if list, ok := v.([]any); ok && len(list) == 1 { // some providers send it so
			v = list[0]
		}
		return c.one(a, v, at)
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	if len(list) > maxValues {
		c.add(at, "must have at most %d values", maxValues)
		return nil
	}
	out := make([]any, 0, len(list))
	for i, e := range list {
		if e = c.one(a, e, fmt.Sprintf("%s[%d]", at, i)); e != nil {
			out = append(out, e)
		}
	}
	if len(out) == 0 && len(list) > 0 {
		return nil
	}
	return out
}

func (c *cleaner) one(a *attribute, v any, at string) any {
	switch a.kind {
	case "boolean":
		if s, ok := v.(string); ok {
			v = spelledBool(s)
		}
		if b, ok := v.(bool); ok {
			return b
		}
		c.add(at, "must be true or false")
		return nil
	case "complex":
		m, ok := v.(map[string]any)
		if s, text := v.(string); text && (a.multi || find(a.sub, "value") != nil) { // some providers send only its value
			m, ok = map[string]any{"value": s}, true
		}
		if !ok {
			c.add(at, "must be an object")
			return nil
		}
		if m = c.object(a.sub, nil, m, at); len(m) == 0 {
			return nil
		}
		return m
	}
	s, ok := v.(string)
	switch {
	case !ok:
		c.add(at, "must be a string")
		return nil
	case utf8.RuneCountInString(s) > maxText:
		c.add(at, "must have at most %d characters", maxText)
		return nil
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }):
		c.add(at, "must not have control characters")
		return nil
	}
	return s
}

func sortedKeys(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Copy copies a resource.
func Copy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = Copy(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = Copy(v[i])
		}
		return out
	}
	return v
}

// Text returns a string of a resource, by the name of an attribute or of a part.
func Text(resource map[string]any, path string) string {
	p, _ := parseName(path)
	for _, v := range valuesAt(resource, p) {
		if s, ok := v.(string); ok {
			return s
		}
	}
	return ""
}

// Bool returns a boolean of a resource; present is false if it has none.
func Bool(resource map[string]any, name string) (yes, present bool) {
	yes, present = member(resource, name).(bool)
	return yes, present
}

// Primary returns the primary value, or else the first.
func Primary(resource map[string]any, name string) string {
	first := ""
	for _, v := range each(member(resource, name)) {
		m, _ := v.(map[string]any)
		value, _ := m["value"].(string)
		if value == "" {
			continue
		}
		if primary, _ := m["primary"].(bool); primary {
			return value
		}
		if first == "" {
			first = value
		}
	}
	return first
}

// Values returns the values of a multi-valued attribute.
func Values(resource map[string]any, name string) (out []string) {
	for _, v := range each(member(resource, name)) {
		if m, ok := v.(map[string]any); ok {
			if s, ok := m["value"].(string); ok && s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

// Parse decodes a JSON object. The caller has checked nesting and duplicate names.
func Parse(raw []byte) (map[string]any, error) {
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil || out == nil {
		return nil, invalid(InvalidSyntax, "", "the body must be a JSON object")
	}
	return out, nil
}
