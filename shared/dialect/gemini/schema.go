package gemini

import (
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// maxSchema limits a schema with resolved references, in bytes.
const maxSchema = 256 << 10

// subset appends a JSON schema in the subset that older models accept: references are resolved,
// null becomes nullable, const becomes enum, and unknown keywords are removed. Restrictions and
// omissions are reported below path. raw is not changed.
func subset(e *requestEncoder, raw []byte, path string) ([]byte, error) {
	s := subsetter{e: e, root: raw, path: path, limit: len(e.b) + maxSchema}
	s.node(s.members(raw), path, false)
	if s.large {
		return e.b, fault.Invalid(path, "%s is too large or too deep for this model once its references are put in place", path)
	}
	return e.b, nil
}

type subsetter struct {
	e     *requestEncoder
	root  []byte
	path  string
	limit int
	depth int
	large bool
	refs  []string // those that are being resolved
}

// keyword is one field of a schema.
type keyword struct {
	name string
	raw  []byte
}

func find(ks []keyword, name string) []byte {
	for i := range ks {
		if ks[i].name == name {
			return ks[i].raw
		}
	}
	return nil
}

func without(ks []keyword, name string) []keyword {
	return slices.DeleteFunc(slices.Clone(ks), func(k keyword) bool { return k.name == name })
}

func (s *subsetter) members(raw []byte) []keyword {
	var ks []keyword
	d := wire.NewDecoder(raw)
	if d.Kind() != wire.KindObject {
		return nil
	}
	for key := range d.Object {
		k := keyword{name: string(key)}
		k.raw = d.Raw()
		if find(ks, k.name) == nil && k.raw != nil {
			ks = append(ks, k)
		}
	}
	return ks
}

// merged are the fields of inner below those of outer. outer wins, but properties and
// required names of both count.
func merged(outer, inner []keyword) []keyword {
	out := slices.Clone(outer)
	for _, k := range inner {
		i := slices.IndexFunc(out, func(o keyword) bool { return o.name == k.name })
		switch {
		case i < 0:
			out = append(out, k)
		case k.name == "properties" || k.name == "required" || k.name == "$defs" || k.name == "definitions":
			out[i].raw = joined(out[i].raw, k.raw)
		}
	}
	return out
}

// joined puts two objects, or two lists, together.
func joined(a, b []byte) []byte {
	if wire.KindOf(a) != wire.KindOf(b) || len(a) < 2 || len(b) < 2 {
		return a
	}
	inA, inB := strings.TrimSpace(string(a[1:len(a)-1])), strings.TrimSpace(string(b[1:len(b)-1]))
	switch {
	case inA == "":
		return b
	case inB == "":
		return a
	}
	out := append([]byte{a[0]}, inA...)
	out = append(append(append(out, ','), inB...), a[len(a)-1])
	return out
}

func (s *subsetter) narrowed(path, reason string) { s.e.loss.Add(path, reason) }

const (
	notInSubset = "not in this model's subset of JSON schema"
	cyclic      = "a schema that refers to itself becomes any object"
)

// node writes one schema.
func (s *subsetter) node(ks []keyword, path string, nullable bool) {
	e := s.e
	if s.large || len(e.b) > s.limit || s.depth > 64 {
		s.large = true
		return
	}
	s.depth++
	refs := len(s.refs)
	defer func() { s.depth, s.refs = s.depth-1, s.refs[:refs] }()
	ks, ok := s.resolved(ks, path, &nullable)
	if !ok {
		e.b = append(e.b, `{"type":"object"}`...)
		return
	}
	if variants := find(ks, "anyOf"); variants != nil {
		s.anyOf(ks, variants, path, nullable)
		return
	}
	kinds := kindsOf(find(ks, "type"), &nullable)
	if len(kinds) > 1 {
		s.kinds(ks, kinds, path, nullable)
		return
	}
	e.b = append(e.b, '{')
	kind := s.kind(ks, kinds)
	str(e, "type", kind)
	s.keywords(ks, kind, path, &nullable)
	if nullable {
		encodeRaw(e, "nullable", []byte("true"))
	}
	e.b = append(e.b, '}')
}

// resolved resolves references, allOf and single alternatives. It is false where a schema
// contains itself.
func (s *subsetter) resolved(ks []keyword, path string, nullable *bool) ([]keyword, bool) {
	for range 64 {
		if ref := find(ks, "$ref"); ref != nil {
			name := wire.NewDecoder(ref).Str()
			target := s.lookUp(name)
			if target == nil || slices.Contains(s.refs, name) {
				reason := cyclic
				if target == nil {
					reason = "the reference is not found in the schema"
				}
				s.narrowed(path+".$ref", reason)
				return nil, false
			}
			s.refs = append(s.refs, name)
			ks = merged(without(ks, "$ref"), s.members(target))
			continue
		}
		if all := find(ks, "allOf"); all != nil {
			ks = without(ks, "allOf")
			for _, v := range elements(all) {
				ks = merged(ks, s.members(v))
			}
			continue
		}
		name := "anyOf"
		variants := find(ks, name)
		if variants == nil {
			name = "oneOf"
			if variants = find(ks, name); variants == nil {
				return ks, true
			}
		}
		remaining := nonNull(elements(variants), nullable)
		switch {
		case len(remaining) == 1:
			ks = merged(without(ks, name), s.members(remaining[0]))
		case len(remaining) == 0:
			ks = without(ks, name)
		case name == "oneOf":
			ks = append(without(without(ks, "oneOf"), "anyOf"), keyword{"anyOf", list(remaining)})
		default:
			i := slices.IndexFunc(ks, func(k keyword) bool { return k.name == "anyOf" })
			ks = slices.Clone(ks)
			ks[i].raw = list(remaining)
			if find(ks, "oneOf") != nil {
				s.narrowed(path+".oneOf", notInSubset)
			}
			return ks, true
		}
	}
	s.narrowed(path, cyclic)
	return nil, false
}

// lookUp finds "#", "#/$defs/X" and any other local pointer.
func (s *subsetter) lookUp(ref string) []byte {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	at := s.root
	for _, step := range strings.Split(rest, "/")[min(1, len(rest)):] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		if at = find(s.members(at), step); at == nil {
			return nil
		}
	}
	return at
}

func elements(raw []byte) [][]byte {
	var out [][]byte
	d := wire.NewDecoder(raw)
	if d.Kind() != wire.KindArray {
		return nil
	}
	for range d.Array {
		if v := d.Raw(); v != nil {
			out = append(out, v)
		}
	}
	return out
}

func list(vs [][]byte) []byte {
	out := []byte{'['}
	for i, v := range vs {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}

// nonNull takes {"type":"null"} out of alternatives.
func nonNull(vs [][]byte, nullable *bool) [][]byte {
	var out [][]byte
	for _, v := range vs {
		var only subsetter
		ks := only.members(v)
		if t := find(ks, "type"); string(t) == `"null"` {
			*nullable = true
			continue
		}
		out = append(out, v)
	}
	return out
}

// kindsOf reads type, a name or a list of names.
func kindsOf(raw []byte, nullable *bool) []string {
	var kinds []string
	add := func(d *wire.Decoder) {
		if d.Kind() != wire.KindString {
			d.Skip()
			return
		}
		switch k := strings.ToLower(d.Str()); k {
		case "null":
			*nullable = true
		case "string", "number", "integer", "boolean", "array", "object":
			if !slices.Contains(kinds, k) {
				kinds = append(kinds, k)
			}
		}
	}
	d := wire.NewDecoder(raw)
	if raw != nil && d.Kind() == wire.KindArray {
		for range d.Array {
			add(d)
		}
	} else if raw != nil {
		add(d)
	}
	return kinds
}

// kind is the one type of a schema; it is guessed where the schema names none.
func (s *subsetter) kind(ks []keyword, kinds []string) string {
	switch {
	case len(kinds) == 1:
		return kinds[0]
	case find(ks, "properties") != nil || s.depth == 1:
		return "object"
	case find(ks, "items") != nil || find(ks, "prefixItems") != nil:
		return "array"
	case find(ks, "minimum") != nil || find(ks, "maximum") != nil:
		return "number"
	case find(ks, "enum") != nil || find(ks, "const") != nil || find(ks, "pattern") != nil || find(ks, "maxLength") != nil:
		return "string"
	}
	return "object"
}

// anyOf writes alternatives; nothing may are beside them here.
func (s *subsetter) anyOf(ks []keyword, variants []byte, path string, nullable bool) {
	for _, k := range ks {
		switch k.name {
		case "anyOf", "title", "description", "type", "default", "$schema", "$id", "$comment", "$defs", "definitions", "discriminator":
		default:
			s.narrowed(path+"."+k.name, "not accepted beside anyOf")
		}
	}
	s.e.b = append(s.e.b, `{"anyOf":[`...)
	for i, v := range elements(variants) {
		item(s.e)
		s.node(s.members(v), path+indexed(".anyOf", i), nullable)
	}
	s.e.b = append(s.e.b, `]}`...)
}
