package route

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// reader reads checked JSON and collects the errors of all fields.
type reader struct {
	strict  bool
	details []fault.Detail
	nodes   int
}

// value is one JSON value and its path.
type value struct {
	raw  []byte
	path string
}

//go:noinline
func (r *reader) add(path, format string, args ...any) {
	const most = 100 // a hostile config must not cause a huge response
	if len(r.details) < most {
		r.details = append(r.details, fault.Detail{Field: path, Message: fmt.Sprintf(format, args...)})
	}
}

func (v value) kind() wire.Kind { return wire.KindOf(v.raw) }
func (v value) null() bool      { return v.kind() == wire.KindNull }

// is reports whether v is of kind, and notes an error if not.
func (r *reader) is(v value, kind wire.Kind) bool {
	if v.kind() == kind {
		return true
	}
	r.add(v.path, "must be %s, not %s", kind, v.kind())
	return false
}

// members visits the fields of an object that are not null.
func (r *reader) members(v value, visit func(key string, v value)) {
	if !r.is(v, wire.KindObject) {
		return
	}
	d := wire.NewDecoder(v.raw)
	for key := range d.Object {
		m := value{raw: d.Raw(), path: join(v.path, string(key))}
		if !m.null() {
			visit(string(key), m)
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// elements visits the elements of an array; false when v is not an array. In saved configs
// the array may have at most MaxListed elements.
func (r *reader) elements(v value, visit func(i int, v value)) bool {
	return r.atMost(v, MaxListed, visit)
}

// atMost is elements with another bound; 0 means none.
func (r *reader) atMost(v value, most int, visit func(i int, v value)) bool {
	if !r.is(v, wire.KindArray) {
		return false
	}
	d := wire.NewDecoder(v.raw)
	for i := range d.Array {
		if i == most && most > 0 && r.strict {
			r.add(v.path, "must have at most %d entries", most)
		}
		if i >= most && most > 0 && r.strict {
			d.Skip()
			continue
		}
		visit(i, value{raw: d.Raw(), path: v.path + "[" + strconv.Itoa(i) + "]"})
	}
	return true
}

// unknown rejects an unknown property in saved configs.
func (r *reader) unknown(v value, what string) {
	if r.strict {
		r.add(v.path, "is not a property of %s", what)
	}
}

func (r *reader) text(v value) string {
	if !r.is(v, wire.KindString) {
		return ""
	}
	s, _ := wire.ScanString(v.raw, v.path)
	return s
}

// name is a text that must not be empty.
func (r *reader) name(v value) string {
	s := r.text(v)
	if s == "" && v.kind() == wire.KindString {
		r.add(v.path, "must not be empty")
	}
	return s
}

func (r *reader) flag(v value) bool {
	if !r.is(v, wire.KindBool) {
		return false
	}
	b, _ := wire.ScanBool(v.raw, v.path)
	return b
}

// whole reads an integer of at least least.
func (r *reader) whole(v value, least int64) int64 {
	if !r.is(v, wire.KindNumber) {
		return least
	}
	n, err := wire.ScanInt(v.raw, v.path)
	mantissa, _, _ := bytes.Cut(bytes.ToLower(v.raw), []byte("e"))
	if err != nil || n > math.MaxInt32 || n == 0 && bytes.ContainsAny(mantissa, "123456789") { // 1e-400 is not 0
		r.add(v.path, "must be a whole number up to %d", math.MaxInt32)
		return least
	}
	if n < least {
		r.add(v.path, "must be at least %d", least)
		return least
	}
	return n
}

// number reads a number between least and most.
func (r *reader) number(v value, least, most float64) float64 {
	if !r.is(v, wire.KindNumber) {
		return least
	}
	f, err := wire.ScanFloat(v.raw, v.path)
	switch {
	case err != nil || f > most:
		r.add(v.path, "must be at most %s", decimal(most))
		return least
	case f < least:
		r.add(v.path, "must be at least %s", decimal(least))
		return least
	}
	return f
}

// decimal writes a number without an exponent.
func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// statuses reads an array of HTTP statuses. The result is never nil, so that an empty list
// differs from an absent one.
func (r *reader) statuses(v value) []int {
	codes := []int{}
	r.elements(v, func(_ int, v value) {
		if !r.is(v, wire.KindNumber) {
			return
		}
		n, err := wire.ScanInt(v.raw, v.path)
		if err != nil || n < 100 || n > 599 {
			r.add(v.path, "must be an HTTP status between 100 and 599")
			return
		}
		codes = append(codes, int(n))
	})
	return codes
}

func (r *reader) texts(v value) []string {
	list := []string{}
	r.elements(v, func(_ int, v value) {
		if s := r.name(v); s != "" {
			list = append(list, s)
		}
	})
	return list
}

// params reads body fields to set, in the order of the config.
func (r *reader) params(v value) []Param {
	var list []Param
	if !r.is(v, wire.KindObject) {
		return nil
	}
	d := wire.NewDecoder(v.raw)
	for key := range d.Object {
		k := string(key)
		list = append(list, Param{Key: k, Value: json.RawMessage(d.Raw())})
		if k == "" {
			r.add(v.path, "must not have an empty name")
		}
	}
	return list
}

// anything decodes a credential field.
func (r *reader) anything(v value) any {
	var out any
	_ = json.Unmarshal(v.raw, &out) // it was checked to be JSON before
	return out
}
