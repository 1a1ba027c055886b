package admin

import (
	"maps"
	"slices"
)

// Show is a record as reads of one show it.
func (col *Collection[T]) Show(c *Call, it Item[T]) (Members, error) {
	m, err := col.compile()
	if err != nil {
		return nil, err
	}
	return m.shower.show(c, it)
}

// shower makes the objects of answers.
type shower[T any] struct {
	col   *Collection[T]
	shape *shape
}

func (s shower[T]) show(c *Call, it Item[T]) (Members, error) {
	o, err := s.shape.render(c, it.stored(), false)
	if err != nil {
		return nil, err
	}
	return o, s.decorate(c, []Item[T]{it}, []Members{o})
}

// decorate adds what no record of a list or an answer has itself.
func (s shower[T]) decorate(c *Call, items []Item[T], objects []Members) error {
	if l := s.col.Limits; l != nil {
		if err := l.Decorate(c, items, objects); err != nil {
			return err
		}
	}
	if s.col.Decorate != nil {
		return s.col.Decorate(c, items, objects)
	}
	return nil
}

// reply is what a create or an update answers.
func (s shower[T]) reply(c *Call, r *Reply, it Item[T], byDefault ...string) (any, error) {
	if r == nil && len(byDefault) == 0 {
		return nil, nil
	}
	if r == nil {
		r = &Reply{Members: byDefault}
	}
	o, err := s.show(c, it)
	if err != nil {
		return nil, err
	}
	return r.of(o), nil
}

// of are the members of an object that are answered.
func (r *Reply) of(o Members) any {
	out := o
	if r.Members != nil {
		out = make(Members, len(r.Members))
		for _, name := range r.Members {
			if v, ok := o[name]; ok {
				out[name] = v
			}
		}
	}
	return wrapped(r.Wrapped, out)
}

// updateSchema describes what updates answer.
func (s shower[T]) updateSchema() Schema {
	plain := replySchema(s.shape, s.col.Updated)
	if v := s.col.Versions; v != nil && v.drafted() != nil {
		return Schema{"anyOf": []any{replySchema(s.shape, v.drafted()), plain}}
	}
	return plain
}

func replySchema(s *shape, r *Reply, byDefault ...string) Schema {
	switch {
	case r == nil && len(byDefault) == 0:
		return emptySchema
	case r == nil:
		return s.pick(slices.DeleteFunc(byDefault, func(name string) bool { return !s.has(name) }))
	case r.Members == nil:
		return wrappedSchema(r.Wrapped, s.schema(false))
	}
	return wrappedSchema(r.Wrapped, s.pick(r.Members))
}

// wrapped returns a response with the object under data and its members at the top level,
// too: clients of this API read either.
func wrapped(yes bool, v any) any {
	if !yes {
		return v
	}
	out := Members{}
	if m, ok := v.(Members); ok {
		maps.Copy(out, m)
	}
	out["success"], out["data"] = true, v
	return out
}

// wrappedSchema documents wrapped.
func wrappedSchema(yes bool, s Schema) Schema {
	if !yes {
		return s
	}
	members, _ := s["properties"].(map[string]Schema)
	all := maps.Clone(members)
	if all == nil {
		all = map[string]Schema{}
	}
	all["success"], all["data"] = Schema{"type": "boolean"}, s
	out := Closed(all)
	required, _ := s["required"].([]string)
	out["required"] = append([]string{"data", "success"}, required...)
	return out
}
