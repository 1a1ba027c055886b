package drive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// InvalidInput is a malicious or malformed body.
type InvalidInput struct {
	Name  string
	Field string // that is wrong, as a refusal names it; "": the body
	Body  []byte
	// Broken bodies are no JSON that any route takes; of others the schema says
	// whether they may be taken.
	Broken bool
}

// Hostiles are made of a body that an operation would take and of its schema: each
// member, on every level, with each kind of wrong value.
func Hostiles(s Schema, body map[string]any) []InvalidInput {
	h := hostiles{whole: body}
	h.broken()
	h.object("", s, body, nil)
	return h.out
}

type hostiles struct {
	whole map[string]any
	out   []InvalidInput
}

func (h *hostiles) add(name, field, body string, broken bool) {
	h.out = append(h.out, InvalidInput{name, field, []byte(body), broken})
}

// broken adds bodies that are not valid JSON objects.
func (h *hostiles) broken() {
	raw, _ := json.Marshal(h.whole)
	valid := string(raw)
	with := func(member string) string {
		if valid == "{}" {
			return "{" + member + "}"
		}
		return "{" + member + "," + valid[1:]
	}
	for name, body := range map[string]string{
		"not JSON": "name=x", "truncated": valid[:len(valid)-1], "trailing": valid + "x", "two values": valid + valid, "a list": "[" + valid + "]", "a text": `"x"`, "null": "null",
		"a number": "1e999", "NUL": valid + "\x00", "byte order mark": "\ufeff" + valid, "not UTF-8": with("\"x\":\"\xff\xfe\""), "a key that is not UTF-8": with("\"\xff\":1"),
		"a key twice": with(`"x":1,"x":2`), "a key twice, escaped": with(`"x":1,"\u0078":2`), "a key twice below": with(`"x":{"y":1,"y":2}`),
		"too deep": with(`"x":` + strings.Repeat(`{"a":`, 80) + "1" + strings.Repeat("}", 80)), "too many brackets": with(`"x":` + strings.Repeat("[", 5000)),
		"NaN": with(`"x":NaN`), "a control character": with("\"x\":\"a\nb\""), "a leading zero": with(`"x":01`), "half a surrogate": with(`"x":"\ud800"`), "half a surrogate in a key": with(`"\udc00":1`),
		"UTF-16": "{\x00\"\x00a\x00\"\x00:\x001\x00}\x00",
	} {
		h.add(name, "", body, true)
	}
	h.add("too large", "", with(`"x":"`+strings.Repeat("a", 2<<20)+`"`), true)
	for name, m := range map[string]string{"a member's prototype": `"__proto__":{"role":"owner"}`, "another organisation": `"organisation_id":"other"`, "an organisation of no text": `"organisation_id":{}`} {
		h.add(name, "organisation_id", with(m), false)
	}
}

// set adds the complete body with another value at a path.
func (h *hostiles) set(name, field string, at []any, value string) {
	const hole = "@@hole@@"
	raw, err := json.Marshal(put(h.whole, at, hole))
	if err != nil {
		return
	}
	h.out = append(h.out, InvalidInput{Name: name, Field: field, Body: bytes.Replace(raw, []byte(`"`+hole+`"`), []byte(value), 1)})
}

// put is a copy of v with another value at a path; a nil value leaves the member out.
func put(v any, at []any, value any) any {
	if len(at) == 0 {
		return value
	}
	switch key := at[0].(type) {
	case string:
		out := maps.Clone(object(v))
		if out == nil {
			out = map[string]any{}
		}
		if out[key] = put(out[key], at[1:], value); len(at) == 1 && value == nil {
			delete(out, key)
		}
		return out
	case int:
		out := slices.Clone(list(v))
		if key < len(out) {
			out[key] = put(out[key], at[1:], value)
		}
		return out
	}
	return v
}

// deepest bounds how far below the body members are tried.
const deepest = 4

func (h *hostiles) object(field string, s Schema, body map[string]any, at []any) {
	properties := object(s["properties"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		path, below := name, append(slices.Clone(at), name)
		if field != "" {
			path = field + "." + name
		}
		if contains(texts(s["required"]), name) {
			raw, err := json.Marshal(put(h.whole, below, nil))
			if err == nil {
				h.out = append(h.out, InvalidInput{Name: "missing", Field: path, Body: raw})
			}
		}
		whole, v := h.whole, body[name]
		if v == nil { // one fault per body
			v = Sample(object(properties[name]), name, 1)
			h.whole = object(put(whole, below, v))
		}
		h.value(path, object(properties[name]), v, below)
		h.whole = whole
	}
	if s["additionalProperties"] == false {
		h.set("unknown member", field, append(slices.Clone(at), "no_such_member"), "1")
	}
	if more := object(s["additionalProperties"]); more != nil && len(at) < deepest {
		h.set("a long key", field, append(slices.Clone(at), strings.Repeat("k", 300)), `"x"`)
		h.set("an empty key", field, append(slices.Clone(at), ""), `"x"`)
		h.value(field+".k", more, Sample(more, "k", 1), append(slices.Clone(at), "k"))
	}
}

// values of every kind.
var kinds = map[string]string{"null": "null", "a text": `"no-such-thing"`, "a number": "-7", "a fraction": "1.5", "truth": "true", "a list": `[]`, "a list of lists": `[[1]]`, "an object": `{}`, "a deep object": `{"a":{"a":{"a":{}}}}`}

func (h *hostiles) value(field string, s Schema, v any, at []any) {
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		h.set(name, field, at, kinds[name])
	}
	b := branch(s, v)
	switch kindOf(b) {
	case "string":
		h.text(field, b, at)
	case "integer", "number":
		for _, n := range []string{"1e400", "-1e400", "9223372036854775808", "-9223372036854775809", "1e-400", "0.000000000000000000001", "99999999999999999999999999999999"} {
			h.set("the number "+n, field, at, n)
		}
		if low, ok := b["minimum"].(float64); ok {
			h.set("less than the least", field, at, fmt.Sprintf("%.0f", low-1))
		}
		if high, ok := b["maximum"].(float64); ok {
			h.set("more than the most", field, at, fmt.Sprintf("%.0f", high+1))
		}
	case "array":
		h.array(field, b, v, at)
	case "object":
		if len(at) < deepest {
			h.object(field, b, object(v), at)
		}
	}
}

func (h *hostiles) text(field string, s Schema, at []any) {
	most := int(bound(s, "maxLength", 65_536))
	for name, t := range map[string]string{
		"too long": strings.Repeat("x", most+1), "too long of wide characters": strings.Repeat("\u00fc", most+1), "empty": "", "blank": "  ", "a path upwards": "../../other", "a path, escaped": "%2e%2e%2fother", "a slash": "a/b", "a hash": "a#b",
		"NUL": "a\x00b", "a line break": "a\r\nb: c", "direction marks": "\u202eabc", "another's id": "0b5e0dc5-0000-4000-8000-00000000dead", "a template": "{{7*7}}${7*7}", "SQL": "' OR 1=1 --", "markup": "<script>alert(1)</script>", "an address within": "http://169.254.169.254/latest/meta-data",
	} {
		raw, _ := json.Marshal(t)
		h.set(name, field, at, string(raw))
	}
	h.set("half a surrogate", field, at, `"\ud83d"`)
	h.set("not UTF-8", field, at, "\"\xc3\x28\"")
}

func (h *hostiles) array(field string, s Schema, v any, at []any) {
	items := object(s["items"])
	one := any("x")
	if a := list(v); len(a) > 0 {
		one = a[0]
	} else if items != nil {
		one = Sample(items, "x", 1)
	}
	raw, err := json.Marshal(one)
	if err != nil {
		return
	}
	h.set("the same twice", field, at, "["+string(raw)+","+string(raw)+"]")
	most := int(bound(s, "maxItems", 10_000))
	if size := (len(raw) + 1) * (most + 1); size < 900_000 {
		h.set("too many", field, at, "["+strings.Repeat(string(raw)+",", most)+string(raw)+"]")
	}
	if items != nil && len(at) < deepest {
		first := append(slices.Clone(at), 0)
		if len(list(v)) > 0 {
			h.value(field+"[0]", items, one, first)
		}
	}
}
