package tools

import (
	"encoding/json"

	"gateway/shared/wire"
)

// sum adds the usage of two turns: integers are added, objects field by field; of everything
// else the second turn's value is used.
func sum(a, b json.RawMessage) json.RawMessage {
	switch {
	case len(b) == 0 || string(b) == "null":
		return a
	case len(a) == 0 || string(a) == "null" || wire.KindOf(a) != wire.KindOf(b):
		return b
	}
	switch wire.KindOf(b) {
	case wire.KindNumber:
		var x, y int64
		if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil || x+y < x {
			return b
		}
		out, _ := json.Marshal(x + y) // a number
		return out
	case wire.KindObject:
		var x, y object
		if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
			return b
		}
		for name, v := range y {
			x[name] = sum(x[name], v)
		}
		out, err := json.Marshal(x)
		if err != nil {
			return b
		}
		return out
	}
	return b
}

// over returns a with the fields of b replacing its own.
func over(a, b json.RawMessage) json.RawMessage {
	var x, y object
	if json.Unmarshal(b, &y) != nil || y == nil {
		return a
	}
	if json.Unmarshal(a, &x) != nil || x == nil {
		return b
	}
	for name, v := range y {
		if string(v) != "null" {
			x[name] = v
		}
	}
	out, err := json.Marshal(x)
	if err != nil {
		return b
	}
	return out
}

// list is the JSON of a list of values that are JSON.
func list(items []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, raw := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return append(out, ']')
}

// encoded returns the JSON of a value that cannot fail to encode: texts, numbers, and raw JSON.
func encoded(v any) json.RawMessage {
	out, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return out
}
