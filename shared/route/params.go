package route

import (
	"slices"
	"strconv"
	"strings"

	"gateway/shared/wire"
)

// edits are a leaf's changes of a body: default_params, then override_params, then
// drop_params. They are prepared so that the top level of a body is walked once.
type edits struct {
	set   *wire.KeySet
	ops   []op       // by key index of set
	paths []dropPath // drops below the top level
}

type op struct {
	raw      []byte
	drop     bool
	ifAbsent bool // a default, for which null counts as absent
}

// newEdits prepares the edits. model and byDefault are the models of
// override_params and default_params without their saved provider.
func newEdits(h inherited, model, byDefault string) edits {
	var e edits
	var keys []string
	put := func(key string, o op) {
		if i := slices.Index(keys, key); i >= 0 {
			e.ops[i] = o
			return
		}
		keys, e.ops = append(keys, key), append(e.ops, o)
	}
	value := func(p Param, model string) []byte {
		if p.Key == "model" && model != "" {
			return wire.AppendJSONString(nil, model)
		}
		return p.Value
	}
	for _, p := range h.defaults {
		put(p.Key, op{raw: value(p, byDefault), ifAbsent: true})
	}
	for _, p := range h.override {
		put(p.Key, op{raw: value(p, model)})
	}
	for _, d := range h.drop {
		path, ok := parseDropPath(d)
		switch {
		case !ok:
		case len(path) == 1:
			put(path[0].key, op{drop: true})
		default:
			e.paths = append(e.paths, path)
		}
	}
	if len(keys) > 0 {
		e.set = wire.NewKeySet(keys...)
	}
	return e
}

// Streams reports whether the leaf's request is for a stream; asked is the value of the
// client's body, nil if absent.
func (l *Leaf) Streams(requested *bool) bool {
	isTrue := func(raw []byte) bool { return len(raw) > 0 && raw[0] == 't' }
	if set := l.edits.set; set != nil {
		if i := slices.Index(set.Keys(), "stream"); i >= 0 {
			switch o := l.edits.ops[i]; {
			case o.drop:
				return false
			case !o.ifAbsent || requested == nil:
				return isTrue(o.raw)
			}
		}
	}
	return requested != nil && *requested
}

// IsUnchanged reports that the leaf changes nothing in a body.
func (l *Leaf) IsUnchanged() bool { return l.edits.set == nil && len(l.edits.paths) == 0 }

// Apply appends body to dst, with the leaf's parameters applied. The error is a 400 on a
// field of body that comes twice or in a misleading spelling.
func (l *Leaf) Apply(dst, body []byte) ([]byte, error) {
	e := &l.edits
	if e.set != nil {
		var w wire.Walk
		if err := e.set.Walk(body, &w); err != nil {
			return nil, err
		}
		list := make([]wire.Edit, 0, len(e.ops))
		for i, o := range e.ops {
			switch {
			case o.drop:
				list = append(list, wire.DeleteKey(&w, i))
			case !o.ifAbsent || !w.Spans[i].Present(body):
				list = append(list, e.set.SetKey(&w, i, o.raw))
			}
		}
		if len(e.paths) == 0 {
			return wire.Splice(dst, body, list...), nil
		}
		body = wire.Splice(nil, body, list...)
	}
	var list []wire.Edit
	for _, path := range e.paths {
		d := wire.NewDecoder(body)
		list = collect(d, path, list)
		if err := d.End(); err != nil {
			return nil, err
		}
	}
	return wire.Splice(dst, body, list...), nil
}

// dropPath is a path such as messages[*].content[0].cache_control.
type dropPath []segment

type segment struct {
	key   string
	array bool // [index] or [*]
	index int  // -1: every element
}

const maxDropSegments = 16

// parseDropPath reads a path; it begins with a key.
func parseDropPath(s string) (dropPath, bool) {
	var path dropPath
	for part := range strings.SplitSeq(s, ".") {
		key, rest, _ := strings.Cut(part, "[")
		if key == "" {
			return nil, false
		}
		path = append(path, segment{key: key})
		if rest == "" {
			if strings.HasSuffix(part, "[") {
				return nil, false
			}
			continue
		}
		for index := range strings.SplitSeq(rest, "[") {
			text, ok := strings.CutSuffix(index, "]")
			seg := segment{array: true, index: -1}
			if text != "*" {
				n, err := strconv.ParseUint(text, 10, 31)
				ok = ok && err == nil
				seg.index = int(n)
			}
			if !ok {
				return nil, false
			}
			path = append(path, seg)
		}
	}
	return path, len(path) > 0 && len(path) <= maxDropSegments
}

// collect adds the deletions of path below the next value of d.
func collect(d *wire.Decoder, path dropPath, list []wire.Edit) []wire.Edit {
	seg, last := path[0], len(path) == 1
	switch kind := d.Kind(); {
	case seg.array && kind == wire.KindArray:
		for i := range d.Array {
			if seg.index >= 0 && i != seg.index {
				continue
			}
			if !last {
				list = collect(d, path[1:], list)
				continue
			}
			start := d.Offset()
			d.Skip()
			list = append(list, wire.Delete(wire.Span{Start: start, End: d.Offset()}))
		}
	case !seg.array && kind == wire.KindObject:
		for key := range d.Object {
			if string(key) != seg.key {
				continue
			}
			if !last {
				list = collect(d, path[1:], list)
				continue
			}
			start := d.KeySpan().Start
			d.Skip()
			list = append(list, wire.Delete(wire.Span{Start: start, End: d.Offset()}))
		}
	default:
		d.Skip()
	}
	return list
}
