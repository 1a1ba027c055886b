package admin

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gateway/shared/fault"
)

// Type is the JSON type of a field.
type Type uint8

// The types of fields. In a query, Array is a comma list, and Object and Map are
// JSON texts.
const (
	String    Type = iota + 1
	Integer        // a JSON number without fraction and exponent
	Number         // any JSON number
	Boolean        // true or false
	Object         // with the fields Fields
	Array          // of Of
	Map            // from any key to Of
	Any            // anything; Check decides
	Timestamp      // RFC 3339, or a date
)

var typeText = map[Type]string{
	String: "a string", Integer: "an integer", Number: "a number", Boolean: "true or false",
	Object: "an object", Array: "an array", Map: "an object", Timestamp: "an ISO 8601 time",
}

// Field describes a field of a body, or a query parameter.
type Field struct {
	Name string
	Doc  string // one sentence for the document
	Type Type
	// Required fields must be there on create and cannot be null. All others
	// may be null: on create that is as absent, on update it clears the field.
	Required bool
	// Min and Max limit the characters of a String, the entries of an Array or Map and the
	// value of an Integer or Number. Max 0 means no specific limit; strings then have at most
	// defaultMaxString characters.
	Min, Max int64
	Pattern  *regexp.Regexp
	Enum     []string
	Of       *Field                // of Array and Map
	Fields   []Field               // of Object
	Open     bool                  // Object: other fields are allowed
	Default  any                   // for the document only
	Example  any                   // for the document only, where none can be made of the rest
	Form     Schema                // for the document: what Check or Convert takes, where Type does not say it
	FormOf   func() map[string]any // returns Form while the document is generated, for large forms
	// Reference is the path of the collection that the value refers to, such as /configs. It
	// documents what a client must create first.
	Reference string
	// Check gives errors that the description cannot express. Field names are
	// below the field ("" is the field itself).
	Check func(raw json.RawMessage) []fault.Detail
	// Convert is a Check that also gives the JSON to store, where that differs
	// from what clients send. At the top level of a Collection's bodies.
	Convert func(raw json.RawMessage) (json.RawMessage, []fault.Detail)

	// The following hold for the top level of a Collection's bodies. What a field
	// leaves open is read from the field of the stored type that it names.

	NullIsAbsent bool // null in an update is as absent, although the field is Required
	CreateOnly   bool // not in updates; there it is ignored
	UpdateOnly   bool // not in creates; there it is ignored
	Fixed        bool // an update may repeat the value but not change it
	Merge        bool // an update changes the fields that it names, not the entire object
	Secret       bool // sealed; reads show masked_<name>
	Address      bool // the host that the record's secrets are sent to; an update needs them too
	Trigger      bool // not stored: a hook acts on it
	Hidden       bool // stored but not shown
	// In is the JSON name in the stored form, where it is another than Name.
	In string
	// Listed stores the text in list rows and lets lists filter by it, with a query parameter
	// of the same name.
	Listed bool

	// The following specify how answers show the field.

	Absent    any  // shown where there is no value, in place of null
	Single    bool // lists leave it out
	Optional  bool // omitted where there is no value
	AllFields bool // Object: all its fields are shown, with or without a value

	// ReadOnly fields of an Object are those that reads add to it: a body may repeat them,
	// and they are ignored.
	ReadOnly bool

	instant bool // the stored field is a time.Time
	unread  bool // no field of responses

	// Column means that the record itself holds the field, not its body: Name,
	// slug, status and tags.
	Column bool
}

// Member returns a field of an Object, to complete a description derived from a type. It panics
// if there is none, which is an error in the description.
func (f *Field) Member(name string) *Field {
	for i := range f.Fields {
		if f.Fields[i].Name == name {
			return &f.Fields[i]
		}
	}
	panic("admin: " + f.Name + " has no member " + name)
}

// Bounds of everything that has no own.
const (
	defaultMaxString  = 65_536
	defaultMaxEntries = 10_000
	maxDetails        = 50  // field errors in one response
	maxKey            = 255 // characters of a Map's key
)

// problems gathers field errors.
type problems struct{ list []fault.Detail }

func (p *problems) add(path, format string, args ...any) {
	if len(p.list) < maxDetails {
		p.list = append(p.list, fault.Detail{Field: path, Message: fmt.Sprintf(format, args...)})
	}
}

func (p *problems) addAll(below string, ds []fault.Detail) {
	for _, d := range ds {
		p.add(join(below, d.Field), "%s", d.Message)
	}
}

// join puts a path below another: "a" and "b" are a.b, "a" and "[0]" are a[0].
func join(below, name string) string {
	switch {
	case below == "":
		return name
	case name == "":
		return below
	case name[0] == '[':
		return below + name
	}
	return below + "." + name
}

// check tests a value against the field. v is as decoded with UseNumber.
func (f *Field) check(path string, raw json.RawMessage, v any, p *problems) {
	if v == nil {
		if f.Required {
			p.add(path, "must be %s, not null", f.text())
		}
		return
	}
	before := len(p.list)
	switch f.Type {
	case String:
		f.checkString(path, v, p)
	case Integer, Number:
		f.checkNumber(path, v, p)
	case Boolean:
		if _, ok := v.(bool); !ok {
			f.mismatch(path, v, p)
		}
	case Timestamp:
		if s, ok := v.(string); !ok {
			f.mismatch(path, v, p)
		} else if _, err := ParseTime(s); err != nil {
			p.add(path, "must be an ISO 8601 time such as 2026-01-31T15:04:05Z")
		}
	case Array:
		f.checkArray(path, v, p)
	case Object, Map:
		f.checkMembers(path, v, p)
	}
	if f.Check != nil && len(p.list) == before {
		p.addAll(path, f.Check(raw))
	}
	if f.Convert != nil && len(p.list) == before {
		_, bad := f.Convert(raw)
		p.addAll(path, bad)
	}
}

func (f *Field) text() string {
	if t, ok := typeText[f.Type]; ok {
		return t
	}
	return "a value"
}

func (f *Field) mismatch(path string, v any, p *problems) {
	p.add(path, "must be %s, not %s", f.text(), kindText(v))
}

func kindText(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case bool:
		return "a boolean"
	case []any:
		return "an array"
	}
	return "an object"
}

func (f *Field) checkString(path string, v any, p *problems) {
	s, ok := v.(string)
	if !ok {
		f.mismatch(path, v, p)
		return
	}
	n, limit := int64(utf8.RuneCountInString(s)), f.Max
	if limit == 0 {
		limit = defaultMaxString
	}
	switch {
	case len(f.Enum) > 0 && !slices.Contains(f.Enum, s):
		p.add(path, "must be one of %s", strings.Join(f.Enum, ", "))
	case n < f.Min && n == 0:
		p.add(path, "must not be empty")
	case n < f.Min || n > limit:
		p.add(path, "must have %d to %d characters, has %d", f.Min, limit, n)
	case f.Pattern != nil && !f.Pattern.MatchString(s):
		p.add(path, "must match %s", f.Pattern)
	case f.Column && f.Min > 0 && strings.TrimSpace(s) == "":
		p.add(path, "must not be blank")
	case f.Column && strings.ContainsFunc(s, unicode.IsControl):
		p.add(path, "must not have control characters")
	}
}

func (f *Field) checkNumber(path string, v any, p *problems) {
	n, ok := v.(json.Number)
	if !ok {
		f.mismatch(path, v, p)
		return
	}
	var less, more bool
	var err error
	if f.Type == Integer { // exactly, also where a float64 has gaps
		var i int64
		i, err = n.Int64()
		less, more = i < f.Min, i > f.Max
	} else {
		var x float64
		x, err = n.Float64()
		less, more = x < float64(f.Min), x > float64(f.Max)
	}
	switch {
	case err != nil:
		p.add(path, "must be %s", f.text())
	case f.Min == 0 && f.Max == 0:
	case less && f.Max == 0:
		p.add(path, "must be at least %d", f.Min)
	case less || (f.Max != 0 && more):
		p.add(path, "must be %d to %d", f.Min, f.Max)
	}
}

func (f *Field) checkArray(path string, v any, p *problems) {
	list, ok := v.([]any)
	if !ok {
		f.mismatch(path, v, p)
		return
	}
	f.checkCount(path, len(list), p)
	if f.Of == nil {
		return
	}
	for i, e := range list {
		f.checkPart(f.Of, path+"["+strconv.Itoa(i)+"]", e, p)
	}
}

func (f *Field) checkCount(path string, n int, p *problems) {
	limit := f.Max
	if limit == 0 {
		limit = defaultMaxEntries
	}
	if int64(n) < f.Min || int64(n) > limit {
		p.add(path, "must have %d to %d entries, has %d", f.Min, limit, n)
	}
}

// checkPart checks an element, which cannot be null.
func (f *Field) checkPart(part *Field, path string, v any, p *problems) {
	if v == nil && part.Type != Any {
		part.mismatch(path, v, p)
		return
	}
	part.check(path, rawOf(part, v), v, p)
}

// rawOf gives a nested value back as JSON, when its field wants to look at it.
func rawOf(f *Field, v any) json.RawMessage {
	if f.Check == nil && f.Convert == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

func (f *Field) checkMembers(path string, v any, p *problems) {
	m, ok := v.(map[string]any)
	if !ok {
		f.mismatch(path, v, p)
		return
	}
	if f.Type == Map {
		f.checkCount(path, len(m), p)
		for _, k := range sortedKeys(m) {
			switch {
			case k == "":
				p.add(path, "must not have an empty key")
			case utf8.RuneCountInString(k) > maxKey:
				p.add(join(path, clip(k)), "has a key of more than %d characters", maxKey)
			case f.Of != nil:
				f.checkPart(f.Of, join(path, clip(k)), m[k], p)
			}
		}
		return
	}
	for i := range f.Fields {
		member := &f.Fields[i]
		e, there := m[member.Name]
		at := join(path, member.Name)
		if !there {
			if member.Required {
				p.add(at, "is required")
			}
			continue
		}
		member.check(at, rawOf(member, e), e, p)
	}
	if f.Open {
		return
	}
	for _, k := range sortedKeys(m) {
		if !slices.ContainsFunc(f.Fields, func(member Field) bool { return member.Name == k }) {
			p.add(join(path, clip(k)), "%s", unknownName("field", k, fieldNames(f.Fields)))
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func fieldNames(fields []Field) []string {
	var out []string
	for i := range fields {
		if !fields[i].ReadOnly {
			out = append(out, fields[i].Name)
		}
	}
	return out
}

// clip shortens a caller's text for an error message.
func clip(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "..."
	}
	return s
}

// timeForms are the spellings of a Timestamp.
var timeForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02"}

// ParseTime reads a Timestamp; without a zone it is UTC.
func ParseTime(s string) (time.Time, error) {
	for _, form := range timeForms {
		if t, err := time.Parse(form, s); err == nil && t.Year() >= 1970 && t.Year() < 10_000 {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("admin: not an ISO 8601 time")
}

// FormatTime is how answers write a time: RFC 3339, UTC, milliseconds. The zero
// time is nil, JSON's null.
func FormatTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
