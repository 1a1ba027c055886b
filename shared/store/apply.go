package store

import (
	"bytes"
	"math"
)

// Holds evaluates conditions on a row; item is nil when the row does not exist.
func Holds(conds []Cond, item Item) bool {
	for _, c := range conds {
		if !c.holds(item) {
			return false
		}
	}
	return true
}

func (c Cond) holds(item Item) bool {
	switch c.Op {
	case ItemAbsent:
		return item == nil
	case ItemPresent:
		return item != nil
	}
	v, ok := item.at(c.Path)
	switch c.Op {
	case Absent:
		return !ok
	case Present:
		return ok
	case Equal:
		return ok && equal(v, c.Value)
	case AtLeast:
		n, comparable := compare(v, c.Value)
		return ok && comparable && n >= 0
	case AtMost:
		n, comparable := compare(v, c.Value)
		return ok && comparable && n <= 0
	}
	return false
}

func (it Item) at(p Path) (Value, bool) {
	if p.Key == "" {
		v, ok := it[p.Attr]
		return v, ok
	}
	v, ok := it.Map(p.Attr)[p.Key]
	return v, ok
}

// equal compares two scalars; a map equals nothing.
func equal(a, b Value) bool {
	switch a := a.(type) {
	case []byte:
		b, ok := b.([]byte)
		return ok && bytes.Equal(a, b)
	case string:
		b, ok := b.(string)
		return ok && a == b
	case int64:
		b, ok := b.(int64)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	}
	return false
}

// compare orders two numbers or two strings; values of two types have no order.
func compare(a, b Value) (int, bool) {
	switch a := a.(type) {
	case int64:
		if b, ok := b.(int64); ok {
			switch {
			case a < b:
				return -1, true
			case a > b:
				return 1, true
			}
			return 0, true
		}
	case string:
		if b, ok := b.(string); ok {
			switch {
			case a < b:
				return -1, true
			case a > b:
				return 1, true
			}
			return 0, true
		}
	}
	return 0, false
}

// Apply is the row after the update; before is nil when the row did not exist. It does not
// check conditions. The result is a new item, which shares unchanged values with before. It
// is nil if the row stays absent because attributes are only removed. It fails with
// ErrNoMap, ErrInvalid (adding to something that is not a number, a sum outside int64) or
// ErrTooLarge; the row must then stay as it was.
func (u *Update) Apply(before Item) (Item, error) {
	after := make(Item, len(before)+len(u.Set)+len(u.Add))
	for k, v := range before {
		after[k] = v
	}
	var own map[string]bool // maps that after does not share with before
	set := func(p Path, v Value) error {
		if p.Key == "" {
			after[p.Attr] = normal(v)
			return nil
		}
		m, ok := after[p.Attr].(Map)
		if !ok {
			return ErrNoMap
		}
		if !own[p.Attr] {
			m = cloneMap(m)
			if own == nil {
				own = make(map[string]bool, 2)
			}
			after[p.Attr], own[p.Attr] = m, true
		}
		if v == nil {
			delete(m, p.Key)
		} else {
			m[p.Key] = normal(v)
		}
		return nil
	}
	for _, a := range u.Set {
		if err := set(a.Path, a.Value); err != nil {
			return nil, err
		}
	}
	for _, a := range u.Add {
		sum, err := a.sum(before)
		if err != nil {
			return nil, err
		}
		if err := set(a.Path, sum); err != nil {
			return nil, err
		}
	}
	for _, p := range u.Remove {
		if p.Key == "" {
			delete(after, p.Attr)
		} else if err := set(p, nil); err != nil {
			return nil, err
		}
	}
	if before == nil && len(u.Set)+len(u.Add) == 0 && u.Expires.IsZero() {
		return nil, nil
	}
	if after.Size(u.Key) > MaxItemBytes {
		return nil, ErrTooLarge
	}
	return after, nil
}

func (a Increment) sum(before Item) (int64, error) {
	if a.Path.Key != "" {
		if _, ok := before[a.Path.Attr].(Map); !ok {
			return 0, ErrNoMap
		}
	}
	v, ok := before.at(a.Path)
	if !ok {
		return a.By, nil
	}
	n, ok := v.(int64)
	if !ok {
		return 0, invalid("%q holds a %T, which cannot be added to", a.Path.Attr, v)
	}
	if a.By > 0 && n > math.MaxInt64-a.By || a.By < 0 && n < math.MinInt64-a.By {
		return 0, invalid("the sum in %q would leave the range of int64", a.Path.Attr)
	}
	return n + a.By, nil
}

// normal is the value as it is read back: nil bytes become empty bytes, and a map is
// copied, because the caller may change his.
func normal(v Value) Value {
	switch v := v.(type) {
	case []byte:
		if v == nil {
			return []byte{}
		}
	case Map:
		return cloneMap(v)
	}
	return v
}

func cloneMap(m Map) Map {
	c := make(Map, len(m)+1)
	for k, v := range m {
		if b, ok := v.([]byte); ok && b == nil {
			v = []byte{}
		}
		c[k] = v
	}
	return c
}

// Size is the bytes of a row as DynamoDB counts them: names and strings in
// UTF-8, a number by its digits, three bytes for a map and one for each of its
// values. The expiry is counted as present.
func (it Item) Size(key Key) int {
	n := len("pk") + len(key.pk) + len("sk") + len(key.sk) + len("expires") + 6
	for name, v := range it {
		n += len(name)
		m, ok := v.(Map)
		if !ok {
			n += scalarSize(v)
			continue
		}
		n += 3
		for k, e := range m {
			n += len(k) + scalarSize(e) + 1
		}
	}
	return n
}

func scalarSize(v Value) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []byte:
		return len(v)
	case int64:
		n := 2
		if v < 0 {
			n++
		}
		for v /= 100; v != 0; v /= 100 {
			n++
		}
		return n
	}
	return 1
}
