package store

import (
	"bytes"
	"math"
)

// Satisfies evaluates conditions on a row; item is nil when the row does not exist.
func Satisfies(conds []Cond, item Item) bool {
	for i := range conds {
		if !conds[i].holds(item) {
			return false
		}
	}
	return true
}

func (c *Cond) holds(item Item) bool {
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

// Apply returns the row after the update; before is nil when the row did not exist. It does
// not check conditions. The result is a new item, which shares unchanged values with before.
// It is nil if the row stays absent because attributes are only removed. It fails with
// ErrNoMap, ErrInvalid (adding to something that is not a number, a sum outside int64) or
// ErrTooLarge; the row must then stay as it was.
func (u *Update) Apply(before Item) (Item, error) {
	after, err := u.ApplyUnsized(before)
	if err == nil && after != nil && after.Size(u.Key) > MaxItemBytes {
		return nil, ErrTooLarge
	}
	return after, err
}

// Result is what Table.Update returns after the update was made.
func (u *Update) Result(before, after Item) (Item, Item) {
	if u.Look == nil {
		return before, after
	}
	u.Look(after)
	return nil, nil
}

// Sums appends the values that the increments lead to. It fails as Apply does.
func (u *Update) Sums(dst []int64, before Item) ([]int64, error) {
	for _, a := range u.Add {
		n, err := a.sum(before)
		if err != nil {
			return nil, err
		}
		dst = append(dst, n)
	}
	return dst, nil
}

// InPlace reports whether Write can make the update: all its maps exist in the item, and
// no map is replaced completely.
func (u *Update) InPlace(it Item) bool {
	has := func(p Path) bool {
		if p.Key == "" {
			return true
		}
		_, ok := it[p.Attr].(Map)
		return ok
	}
	for i := range u.Set {
		if _, whole := u.Set[i].Value.(Map); whole || !has(u.Set[i].Path) {
			return false
		}
	}
	for i := range u.Remove {
		if !has(u.Remove[i]) {
			return false
		}
	}
	return it != nil
}

// Write makes the update in the item itself. InPlace must have reported true, and sums are
// those of Sums.
func (u *Update) Write(it Item, sums []int64) {
	set := func(p Path, v Value) {
		if p.Key == "" {
			it[p.Attr] = v
		} else {
			it[p.Attr].(Map)[p.Key] = v
		}
	}
	for i := range u.Set {
		set(u.Set[i].Path, normal(u.Set[i].Value))
	}
	for i := range u.Add {
		set(u.Add[i].Path, sums[i])
	}
	for _, p := range u.Remove {
		if p.Key == "" {
			delete(it, p.Attr)
		} else {
			delete(it[p.Attr].(Map), p.Key)
		}
	}
}

// Clone returns a copy that shares no map with the item.
func (it Item) Clone() Item {
	c := make(Item, len(it))
	for k, v := range it {
		if m, ok := v.(Map); ok {
			v = cloneMap(m)
		}
		c[k] = v
	}
	return c
}

// MaxGrowth returns a limit of the bytes by which the update makes a row larger.
func (u *Update) MaxGrowth() int {
	n := 0
	for i := range u.Set {
		p := &u.Set[i].Path
		n += len(p.Attr) + len(p.Key) + 4
		if m, ok := u.Set[i].Value.(Map); ok {
			for k, e := range m {
				n += len(k) + scalarSize(e) + 1
			}
		} else {
			n += scalarSize(u.Set[i].Value)
		}
	}
	for i := range u.Add {
		p := &u.Add[i].Path
		n += len(p.Attr) + len(p.Key) + 4 + maxIntSize
	}
	return n
}

// maxIntSize is the size of the number with the most digits.
const maxIntSize = 12

// ApplyUnsized is Apply without the check of the row's size, for callers that know by
// MaxGrowth that it passes.
func (u *Update) ApplyUnsized(before Item) (Item, error) {
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
