package chat

import "gateway/shared/wire"

// HoldsStrict reports whether hosts that know strict take it for a JSON schema: each object
// in it must require all of its properties and allow no others.
func HoldsStrict(schema []byte) bool {
	if wire.KindOf(schema) != wire.KindObject {
		return false
	}
	d := wire.NewDecoder(schema)
	return holdsStrict(d) && d.Err() == nil
}

// holdsStrict reads the schema at d.
func holdsStrict(d *wire.Decoder) bool {
	ok := true
	object, closed := false, false
	var properties, required []string
	for key := range d.Object {
		switch string(key) {
		case "type":
			switch d.Kind() {
			case wire.KindString:
				object = d.Str() == "object" || object
			case wire.KindArray:
				for range d.Array {
					object = d.Kind() == wire.KindString && string(d.Bytes()) == "object" || object
				}
			}
		case "properties":
			object = true
			if d.Kind() != wire.KindObject {
				return false
			}
			for name := range d.Object {
				properties = append(properties, string(name))
				ok = inner(d) && ok
			}
		case "required":
			if d.Kind() != wire.KindArray {
				return false
			}
			for range d.Array {
				required = append(required, d.Str())
			}
		case "additionalProperties":
			closed = d.Kind() == wire.KindBool && !d.Bool()
		case "items":
			ok = inner(d) && ok
		case "anyOf", "oneOf", "allOf", "prefixItems":
			if d.Kind() != wire.KindArray {
				return false
			}
			for range d.Array {
				ok = inner(d) && ok
			}
		case "$defs", "definitions":
			if d.Kind() != wire.KindObject {
				return false
			}
			for range d.Object {
				ok = inner(d) && ok
			}
		}
	}
	if !object {
		return ok
	}
	return ok && closed && all(properties, required)
}

// inner reads a schema inside of another; true and false are schemas too.
func inner(d *wire.Decoder) bool { return d.Kind() == wire.KindObject && holdsStrict(d) }

func all(properties, required []string) bool {
	known := make(map[string]bool, len(required))
	for _, name := range required {
		known[name] = true
	}
	for _, name := range properties {
		if !known[name] {
			return false
		}
	}
	return true
}
