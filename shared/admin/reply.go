package admin

import (
	"slices"
)

// Show is a record as reads of one show it.
func (col *Collection[T]) Show(c *Call, it Item[T]) (Members, error) {
	m, err := col.compile()
	if err != nil {
		return nil, err
	}
	o, err := m.shape.render(c, it.stored(), false)
	if err != nil {
		return nil, err
	}
	return o, col.decorate(c, []Item[T]{it}, []Members{o})
}

func (col *Collection[T]) decorate(c *Call, items []Item[T], objects []Members) error {
	if col.Limits != nil {
		if err := col.Limits.Decorate(c, items, objects); err != nil {
			return err
		}
	}
	if col.Decorate != nil {
		return col.Decorate(c, items, objects)
	}
	return nil
}

// reply is what a create or an update answers.
func (col *Collection[T]) reply(c *Call, r *Reply, it Item[T], byDefault ...string) (any, error) {
	if r == nil && len(byDefault) == 0 {
		return nil, nil
	}
	if r == nil {
		r = &Reply{Members: byDefault}
	}
	o, err := col.Show(c, it)
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
func (col *Collection[T]) updateSchema() Schema {
	plain := replySchema(col.made.shape, col.Updated)
	if v := col.Versions; v != nil && v.drafted() != nil {
		return Schema{"anyOf": []any{replySchema(col.made.shape, v.drafted()), plain}}
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

func wrapped(yes bool, v any) any {
	if !yes {
		return v
	}
	return Members{"success": true, "data": v}
}

func wrappedSchema(yes bool, s Schema) Schema {
	if !yes {
		return s
	}
	return SuccessSchema(s)
}
