// Package bound reads the bounds that are written beside the members of a stored type. So
// they are written only once: the type's Validate checks by them, and so does the
// description of its administration.
//
//	Description string            `json:"description,omitempty" max:"1024"`
//	Mode        string            `json:"mode,omitempty" enum:"full,metrics"`
//	Metadata    map[string]string `json:"metadata,omitempty" max:"64" each:"max=128"`
//
// min and max bound the characters of a text, the entries of a list or a map, and the value
// of a number. enum lists the allowed texts. each bounds the entries of a list or a map. If
// a member may be omitted, its zero value is within every bound.
package bound

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"gateway/shared/fault"
)

// Bound is the content of a member's tags. 0 is no bound.
type Bound struct {
	Min, Max int64
	Enum     []string
	Each     *Bound // of the entries; nil: none
}

// Member is a member of a struct that appears in JSON.
type Member struct {
	Name  string // in JSON
	Doc   string // the tag doc
	Type  reflect.Type
	Bound Bound
	index []int
	omits bool
}

// Optional reports whether JSON leaves the member out where it has no value.
func (m *Member) Optional() bool { return m.omits }

// Members are the members of a struct type, in their order, with those of embedded types. A
// tag that cannot be read is an error, because the type is wrong.
func Members(t reflect.Type) ([]Member, error) {
	var out []Member
	for _, f := range reflect.VisibleFields(t) {
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		m := Member{Name: name, Doc: f.Tag.Get("doc"), Type: f.Type, index: f.Index, omits: strings.Contains(rest, "omitempty")}
		var err error
		if m.Bound, err = read(f.Tag); err != nil {
			return nil, fmt.Errorf("bound: %s.%s: %w", t, f.Name, err)
		}
		out = append(out, m)
	}
	return out, nil
}

func read(tag reflect.StructTag) (Bound, error) {
	var b Bound
	for _, key := range []string{"min", "max", "enum"} {
		if err := b.set(key, tag.Get(key)); err != nil {
			return b, err
		}
	}
	each := strings.Fields(tag.Get("each"))
	if len(each) == 0 {
		return b, nil
	}
	b.Each = new(Bound)
	for _, pair := range each {
		key, value, _ := strings.Cut(pair, "=")
		if err := b.Each.set(key, value); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (b *Bound) set(key, value string) error {
	if value == "" {
		return nil
	}
	var err error
	switch key {
	case "min":
		b.Min, err = strconv.ParseInt(value, 10, 64)
	case "max":
		b.Max, err = strconv.ParseInt(value, 10, 64)
	case "enum":
		b.Enum = strings.Split(value, ",")
	default:
		err = fmt.Errorf("the bound %q is not known", key)
	}
	return err
}

var known sync.Map // of members by reflect.Type

func membersOf(t reflect.Type) []Member {
	if v, ok := known.Load(t); ok {
		return v.([]Member)
	}
	members, err := Members(t)
	if err != nil {
		panic(err) // a mistake in a type, which its first test finds
	}
	known.Store(t, members)
	return members
}

// Check returns the fields of v, a struct or a pointer to one, and of the structs below it,
// that exceed their limits. Fields have their JSON names.
func Check(v any) []fault.Detail {
	c := checker{}
	c.value(reflect.ValueOf(v), "", Bound{})
	return c.bad
}

// Text checks the length of a text that is not a field of a type.
func Text(field, s string, least, most int64) []fault.Detail {
	if n := int64(utf8.RuneCountInString(s)); n < least || n > most {
		return []fault.Detail{{Field: field, Message: fmt.Sprintf("must have %d to %d characters", least, most)}}
	}
	return nil
}

// Sorted puts errors into the order of the members of the struct that v points to. Errors
// of other fields come first.
func Sorted(v any, bad []fault.Detail) []fault.Detail {
	members := membersOf(reflect.TypeOf(v).Elem())
	place := func(d fault.Detail) int {
		top := d.Field[:len(d.Field)-len(strings.TrimLeftFunc(d.Field, func(r rune) bool { return r != '.' && r != '[' }))]
		return slices.IndexFunc(members, func(m Member) bool { return m.Name == top })
	}
	slices.SortStableFunc(bad, func(a, b fault.Detail) int { return place(a) - place(b) })
	return bad
}

type checker struct{ bad []fault.Detail }

func (c *checker) add(path, format string, args ...any) {
	c.bad = append(c.bad, fault.Detail{Field: path, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) value(v reflect.Value, path string, b Bound) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			c.value(v.Elem(), path, b)
		}
	case reflect.Struct:
		for _, m := range membersOf(v.Type()) {
			if e := v.FieldByIndex(m.index); !m.omits || !e.IsZero() {
				c.value(e, join(path, m.Name), m.Bound)
			}
		}
	case reflect.String:
		c.text(v.String(), path, b)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // bytes
		}
		c.count(v.Len(), path, b, "entries")
		for i := range v.Len() {
			c.value(v.Index(i), path+"["+strconv.Itoa(i)+"]", each(b))
		}
	case reflect.Map:
		c.count(v.Len(), path, b, "pairs")
		for _, k := range sortedKeys(v) {
			c.value(v.MapIndex(k), join(path, clip(k.String())), each(b))
		}
	default:
		if v.CanInt() {
			c.number(v.Int(), path, b)
		}
	}
}

func each(b Bound) Bound {
	if b.Each == nil {
		return Bound{}
	}
	return *b.Each
}

func (c *checker) text(s, path string, b Bound) {
	n := int64(utf8.RuneCountInString(s))
	switch {
	case len(b.Enum) > 0 && !slices.Contains(b.Enum, s):
		c.add(path, "must be one of %s", strings.Join(b.Enum, ", "))
	case b.Min > 0 && n < b.Min:
		c.add(path, "must have at least %d characters", b.Min)
	case b.Max > 0 && n > b.Max:
		c.add(path, "must have at most %d characters", b.Max)
	}
}

func (c *checker) count(n int, path string, b Bound, what string) {
	switch {
	case b.Min > 0 && int64(n) < b.Min:
		c.add(path, "must have at least %d %s", b.Min, what)
	case b.Max > 0 && int64(n) > b.Max:
		c.add(path, "must have at most %d %s", b.Max, what)
	}
}

func (c *checker) number(n int64, path string, b Bound) {
	if b.Min != 0 && n < b.Min {
		c.add(path, "must be at least %d", b.Min)
	}
	if b.Max != 0 && n > b.Max {
		c.add(path, "must be at most %d", b.Max)
	}
}

func sortedKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() }) // slices.SortFunc would add 9 KB to every function
	return keys
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// clip shortens a caller's text for an error message.
func clip(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "..."
	}
	return s
}
