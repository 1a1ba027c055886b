package admin

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// maxBodyDepth is how deep bodies may nest.
const maxBodyDepth = 64

// Values are the fields that a request gave, in three states: absent, null, or
// with a value. They have passed their description.
type Values struct{ raw map[string]json.RawMessage }

// Has reports whether the field was given, be it null.
func (v Values) Has(name string) bool { _, ok := v.raw[name]; return ok }

// Null reports whether the field was given as null.
func (v Values) Null(name string) bool { return string(v.raw[name]) == "null" }

// HasValue reports whether the field has a value.
func (v Values) HasValue(name string) bool { return v.Has(name) && !v.Null(name) }

// Raw is the JSON of the field; nil when absent.
func (v Values) Raw(name string) json.RawMessage { return v.raw[name] }

// Empty reports whether nothing was given.
func (v Values) Empty() bool { return len(v.raw) == 0 }

// Decode decodes the field; absent and null leave dst alone.
func (v Values) Decode(name string, dst any) error {
	if !v.HasValue(name) {
		return nil
	}
	if err := json.Unmarshal(v.raw[name], dst); err != nil {
		return fault.Invalid(name, "does not have the expected form")
	}
	return nil
}

// ValuesOf are the fields of an object that has passed its description.
func ValuesOf(members map[string]json.RawMessage) Values { return Values{members} }

// Object reads an object; ok is false when it is absent or null.
func (v Values) Object(name string) (members Values, ok bool) {
	return Values{read[map[string]json.RawMessage](v, name)}, v.HasValue(name)
}

// Objects reads an array of objects; nil when it is absent or null.
func (v Values) Objects(name string) []Values {
	var out []Values
	for _, members := range read[[]map[string]json.RawMessage](v, name) {
		out = append(out, Values{members})
	}
	return out
}

func read[T any](v Values, name string) T {
	var out T
	if v.HasValue(name) {
		_ = json.Unmarshal(v.raw[name], &out) // the description has been checked
	}
	return out
}

// Text, Int, Float, Bool, Texts and TextMap read a field of that type; the zero
// value when it is absent or null.
func (v Values) Text(name string) string               { return read[string](v, name) }
func (v Values) Int(name string) int64                 { return read[int64](v, name) }
func (v Values) Float(name string) float64             { return read[float64](v, name) }
func (v Values) Bool(name string) bool                 { return read[bool](v, name) }
func (v Values) Texts(name string) []string            { return read[[]string](v, name) }
func (v Values) TextMap(name string) map[string]string { return read[map[string]string](v, name) }

// Time reads a Timestamp; the zero time when it is absent or null.
func (v Values) Time(name string) time.Time {
	t, _ := ParseTime(v.Text(name))
	return t
}

// parseObject reads a body: one JSON object, strictly.
func parseObject(body []byte) (map[string]json.RawMessage, error) {
	if err := wire.CheckStrict(body, maxBodyDepth); err != nil {
		return nil, err
	}
	if err := checkSurrogates(body); err != nil {
		return nil, err
	}
	raw := make(map[string]json.RawMessage)
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, fault.Invalid("", "the body must be a JSON object")
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, fault.Invalid("", "the body is not valid JSON")
	}
	return raw, nil
}

// parseForm reads a form: each field once, as a text.
func parseForm(body []byte) (map[string]json.RawMessage, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil || !utf8.Valid(body) {
		return nil, fault.Invalid("", "the body is not a valid form")
	}
	raw := make(map[string]json.RawMessage, len(form))
	for name, values := range form {
		switch {
		case len(values) > 1:
			return nil, fault.Invalid(name, "was sent %d times; send it once", len(values))
		case !utf8.ValidString(name) || !utf8.ValidString(values[0]):
			return nil, fault.Invalid("", "the body must be UTF-8")
		}
		raw[name] = wire.AppendJSONString(nil, values[0])
	}
	return raw, nil
}

// mode is what a body is checked for.
type mode uint8

const (
	creating mode = iota + 1 // required fields must be there
	updating                 // nothing is required, but something must be there
)

// wanted reports whether the mode takes the field.
func (m mode) wanted(f *Field) bool {
	return (m != creating || !f.UpdateOnly) && (m != updating || !f.CreateOnly)
}

// checkFields extracts and validates the described fields of raw. ignored lists the names that
// are not described or that the mode does not accept, sorted.
func checkFields(raw map[string]json.RawMessage, fields []Field, m mode, p *problems) (v Values, ignored []string) {
	v = Values{raw: make(map[string]json.RawMessage, len(raw))}
	var asAbsent []string // known, and as absent
	for i := range fields {
		f := &fields[i]
		r, there := raw[f.Name]
		if !m.wanted(f) {
			continue
		}
		if there && f.NullIsAbsent && m == updating && isNull(r) {
			asAbsent = append(asAbsent, f.Name)
			continue
		}
		if !there {
			if f.Required && m == creating {
				p.add(f.Name, "is required")
			}
			continue
		}
		f.check(f.Name, r, decodeAny(r), p)
		v.raw[f.Name] = r
	}
	for _, k := range sortedKeys(raw) {
		if !v.Has(k) && !slices.Contains(asAbsent, k) {
			ignored = append(ignored, k)
		}
	}
	return v, ignored
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

func decodeAny(raw json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	_ = d.Decode(&v) // raw is a part of a body that was read
	return v
}

// checkQuery validates query parameters against their fields. Others are ignored; a described
// one may occur only once.
func checkQuery(query string, fields []Field, p *problems) Values {
	v := Values{raw: make(map[string]json.RawMessage)}
	q, err := url.ParseQuery(query)
	if err != nil {
		p.add("", "the query string is not valid")
		return v
	}
	for i := range fields {
		f := &fields[i]
		values := q[f.Name]
		switch {
		case len(values) > 1:
			p.add(f.Name, "was sent %d times; send it once", len(values))
		case len(values) > 0 && !utf8.ValidString(values[0]):
			p.add(f.Name, "must be UTF-8")
		case len(values) == 0 || (values[0] == "" && f.Type != String):
			if f.Required {
				p.add(f.Name, "is required")
			}
		default:
			raw, ok := queryJSON(f, values[0])
			if !ok {
				p.add(f.Name, "must be %s", f.text())
				continue
			}
			f.check(f.Name, raw, decodeAny(raw), p)
			v.raw[f.Name] = raw
		}
	}
	return v
}

// AsInQuery reads an object with fields written as in a query (an array as comma-separated
// text, for example) or as the JSON of their fields. Unknown fields are rejected; null counts
// as absent. The paths of errors begin with the fields.
func AsInQuery(raw json.RawMessage, fields []Field) (Values, []fault.Detail) {
	members, err := parseObject(raw)
	if err != nil {
		return Values{}, []fault.Detail{{Message: "must be an object"}}
	}
	p, v := &problems{}, Values{raw: make(map[string]json.RawMessage)}
	for _, name := range sortedKeys(members) {
		r := members[name]
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
		if i < 0 {
			p.add(name, "is not known")
			continue
		}
		f := &fields[i]
		if string(r) == "null" {
			continue
		}
		switch sent := decodeAny(r).(type) {
		case string:
			if f.Type == String || f.Type == Timestamp {
				break
			}
			var ok bool
			if r, ok = queryJSON(f, sent); !ok {
				p.add(name, "must be %s", f.text())
				continue
			}
		case []any:
			r = spelled(f, sent, r)
		}
		f.check(name, r, decodeAny(r), p)
		v.raw[name] = r
	}
	return v, p.list
}

// spelled converts the numbers in a list of strings to strings, as in a query.
func spelled(f *Field, entries []any, sent json.RawMessage) json.RawMessage {
	if f.Type != Array || f.Of == nil || f.Of.Type != String {
		return sent
	}
	for i, e := range entries {
		if n, is := e.(json.Number); is {
			entries[i] = n.String()
		}
	}
	out, err := json.Marshal(entries)
	if err != nil {
		return sent
	}
	return out
}

// queryJSON is a parameter's text as the JSON of its type.
func queryJSON(f *Field, text string) (json.RawMessage, bool) {
	switch f.Type {
	case Integer:
		n, err := strconv.ParseInt(text, 10, 64)
		return strconv.AppendInt(nil, n, 10), err == nil
	case Number:
		raw := json.RawMessage(text)
		return raw, json.Valid(raw) && decodeIsNumber(raw)
	case Boolean:
		b, err := strconv.ParseBool(text)
		return strconv.AppendBool(nil, b), err == nil
	case Object, Map, Any:
		raw := json.RawMessage(text)
		return raw, wire.CheckStrict(raw, maxBodyDepth) == nil
	case Array:
		parts := strings.Split(text, ",")
		raw, err := json.Marshal(parts)
		return raw, err == nil
	}
	raw, err := json.Marshal(text)
	return raw, err == nil
}

func decodeIsNumber(raw json.RawMessage) bool {
	_, ok := decodeAny(raw).(json.Number)
	return ok
}

// Merge gives v with the fields of in over its own: null is the zero value.
func Merge[V any](v V, in Values) (V, error) {
	var out V
	whole, err := json.Marshal(v)
	if err != nil {
		return out, err
	}
	members := make(map[string]json.RawMessage)
	if err := json.Unmarshal(whole, &members); err != nil {
		return out, err
	}
	for name, raw := range in.raw {
		if members[name] = raw; in.Null(name) {
			delete(members, name)
		}
	}
	if whole, err = json.Marshal(members); err != nil {
		return out, err
	}
	return out, json.Unmarshal(whole, &out)
}

// Forms that responses have in common.

// OrNull is a text, or null for none.
func OrNull(s string) any { return orNull(s, s == "") }

// NullIfZero returns a pointer to v, for fields of responses that are null without a value.
func NullIfZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// OrEmpty is a list, empty where there is none.
func OrEmpty[V any](list []V) []V {
	if list == nil {
		return []V{}
	}
	return list
}

// OrEmptyMap is a map, empty where there is none.
func OrEmptyMap[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}

// Flag is a truth value as the numbers that some responses have.
func Flag(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
