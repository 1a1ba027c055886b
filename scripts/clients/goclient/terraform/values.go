package main

import (
	"encoding/json"
	"math/big"
	"reflect"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// values are the known attributes as JSON has them; nil is null or unknown.
func (f fields) values(v tftypes.Value) m {
	var in map[string]tftypes.Value
	if v.IsNull() || v.As(&in) != nil {
		return map[string]any{}
	}
	out := map[string]any{}
	for _, a := range f {
		if v, ok := in[a.name]; ok && v.IsKnown() && !v.IsNull() {
			out[a.name] = a.value(v)
		}
	}
	return out
}

// must stops at an error that only a mistake in the table of attributes can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (a attribute) value(v tftypes.Value) any {
	switch a.kind {
	case flag:
		var b bool
		must(v.As(&b))
		return b
	case number:
		n := new(big.Float)
		must(v.As(&n))
		return json.Number(n.Text('f', -1))
	case texts:
		var in []tftypes.Value
		must(v.As(&in))
		out := []any{}
		for _, e := range in {
			out = append(out, attribute{kind: text}.value(e))
		}
		return out
	case labels:
		var in map[string]tftypes.Value
		must(v.As(&in))
		out := map[string]any{}
		for k, e := range in {
			out[k] = attribute{kind: text}.value(e)
		}
		return out
	case object:
		return a.present(v)
	case objects:
		var in []tftypes.Value
		must(v.As(&in))
		out := []any{}
		for _, e := range in {
			out = append(out, a.present(e))
		}
		return out
	}
	var s string
	must(v.As(&s))
	return s
}

// present are the attributes of an object that are set.
func (a attribute) present(v tftypes.Value) map[string]any {
	out := a.fields.values(v)
	for k, e := range out {
		if e == nil {
			delete(out, k)
		}
	}
	return out
}

// state is the state after a read. prior are the attributes before it: secrets stay, and where the
// answer says the same in another form (no text and empty text, no list and an empty one, a
// document in another notation) what was written stays.
func (f fields) state(like tftypes.Value, prior, read map[string]any) tftypes.Value {
	typ := like.Type().(tftypes.Object)
	out := map[string]tftypes.Value{}
	for _, a := range f {
		v, ok := read[a.name]
		if a.secret || !ok && (a.computed || a.first) {
			v = prior[a.name]
		}
		out[a.name] = a.from(typ.AttributeTypes[a.name], v, prior[a.name])
	}
	return tftypes.NewValue(typ, out)
}

func (a attribute) from(typ tftypes.Type, v, prior any) tftypes.Value {
	if v == nil || prior == nil && empty(v) {
		return tftypes.NewValue(typ, nil)
	}
	switch a.kind {
	case text:
		if s, ok := v.(string); ok {
			return tftypes.NewValue(typ, s)
		}
	case moment:
		s, _ := v.(string)
		before, _ := prior.(string)
		one, err := time.Parse(time.RFC3339, s)
		if two, err2 := time.Parse(time.RFC3339, before); err == nil && err2 == nil && one.Equal(two) {
			s = before
		}
		return tftypes.NewValue(typ, s)
	case flag:
		switch b := v.(type) {
		case bool:
			return tftypes.NewValue(typ, b)
		case json.Number:
			return tftypes.NewValue(typ, b != "0")
		}
	case number:
		if n, ok := v.(json.Number); ok {
			f, _, err := big.ParseFloat(n.String(), 10, 512, big.ToNearestEven)
			must(err)
			return tftypes.NewValue(typ, f)
		}
	case document:
		return tftypes.NewValue(typ, sameDocument(v, prior))
	case texts, objects:
		list, ok := v.([]any)
		if !ok {
			break
		}
		elem := typ.(tftypes.List).ElementType
		out := []tftypes.Value{}
		before, _ := prior.([]any)
		for i, e := range list {
			var p any
			if i < len(before) {
				p = before[i]
			}
			out = append(out, attribute{kind: map[kind]kind{texts: text, objects: object}[a.kind], fields: a.fields}.from(elem, e, p))
		}
		return tftypes.NewValue(typ, out)
	case labels:
		m, ok := v.(map[string]any)
		if !ok {
			break
		}
		out := map[string]tftypes.Value{}
		for k, e := range m {
			out[k] = attribute{kind: text}.from(typ.(tftypes.Map).ElementType, e, "")
		}
		return tftypes.NewValue(typ, out)
	case object:
		m, ok := v.(map[string]any)
		if !ok {
			break
		}
		before, _ := prior.(map[string]any)
		out, unset := map[string]tftypes.Value{}, true
		for _, f := range a.fields {
			out[f.name] = f.from(typ.(tftypes.Object).AttributeTypes[f.name], m[f.name], before[f.name])
			unset = unset && out[f.name].IsNull()
		}
		if prior == nil && unset {
			return tftypes.NewValue(typ, nil)
		}
		return tftypes.NewValue(typ, out)
	}
	b, _ := json.Marshal(v)
	return wrong(a.name, b)
}

// wrong reports a response in a type that the provider does not read.
func wrong(name string, b []byte) tftypes.Value {
	panic(&failure{"reading " + name, 0, "unexpected type: " + string(b)})
}

func empty(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// sameDocument is the text of the configuration if the response means the same, else the response's.
func sameDocument(v, prior any) string {
	b, ok := []byte(nil), false
	var s string
	if s, ok = v.(string); ok {
		b = []byte(s)
	} else {
		b, _ = json.Marshal(v) // decoded before
	}
	before, _ := prior.(string)
	var one, two any
	if json.Unmarshal(b, &one) == nil && json.Unmarshal([]byte(before), &two) == nil && reflect.DeepEqual(one, two) {
		return before
	}
	return string(b)
}
