package live

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Texts are the strings of a JSON message that stand below members of these names, in
// their order; nil of what is no JSON.
func Texts(message []byte, names map[string]bool) (out []string) {
	v, ok := decode(message)
	if !ok {
		return nil
	}
	collect(v, names, false, func(s string) string {
		if s != "" {
			out = append(out, s)
		}
		return s
	})
	return out
}

// Retold is a message in which texts that Texts has found stand changed; nil where it
// cannot be told.
func Retold(message []byte, names map[string]bool, now map[string]string) []byte {
	v, ok := decode(message)
	if !ok {
		return nil
	}
	v = collect(v, names, false, func(s string) string {
		if other, changed := now[s]; changed {
			return other
		}
		return s
	})
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return nil
	}
	return bytes.TrimSpace(out.Bytes())
}

func decode(message []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(message))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

// collect gives each text to f, and puts what f gives in its place. below: v stands below
// a member of these names.
func collect(v any, names map[string]bool, below bool, f func(string) string) any {
	switch v := v.(type) {
	case string:
		if below {
			return f(v)
		}
	case []any:
		for i := range v {
			v[i] = collect(v[i], names, below, f)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			v[name] = collect(v[name], names, names[name], f)
		}
	}
	return v
}
