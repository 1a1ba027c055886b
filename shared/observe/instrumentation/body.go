package instrumentation

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/observe/otlp"
	"gateway/shared/wire"
)

// object builds a JSON object.
type object struct {
	b []byte
}

func (o *object) key(name string) {
	if o.b == nil {
		o.b = append(o.b, '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.b = append(wire.AppendJSONString(o.b, name), ':')
}

func (o *object) text(name, v string) {
	if v != "" {
		o.key(name)
		o.b = wire.AppendJSONString(o.b, v)
	}
}

// json adds a value that senders write either as JSON in a text, or directly.
func (o *object) json(name string, v any) {
	if v == nil || v == "" {
		return
	}
	o.key(name)
	o.b = appendJSON(o.b, v)
}

func (o *object) end() []byte {
	if o.b == nil {
		return []byte("{}")
	}
	return append(o.b, '}')
}

// Request is the content of the request, as far as it was sent, in JSON, with the attributes
// that have no place elsewhere.
func (x *SpanFacts) Request() []byte {
	r := &x.content
	var o object
	if len(r.rest) > 0 {
		o.key("attributes")
		o.b = appendAttrs(o.b, r.rest)
	}
	if list := r.lists[questions-numFields]; len(list) > 0 {
		o.key("messages")
		o.b = appendFlat(o.b, list)
	} else if len(r.messages[0]) > 0 && !r.has[question] {
		o.key("messages")
		o.b = appendEvents(o.b, r.messages[0])
	} else {
		o.json("messages", r.values[question])
	}
	o.text("model", x.RequestedModel)
	o.json("system", r.values[instructions])
	if list := r.lists[toolList-numFields]; len(list) > 0 {
		o.key("tools")
		o.b = appendFlat(o.b, list)
	} else {
		o.json("tools", r.values[tools])
	}
	return o.end()
}

// Response is the content of the response, as far as it was sent, in JSON.
func (x *SpanFacts) Response() []byte {
	r := &x.content
	var o object
	o.json("body", x.of.Body)
	if x.Status >= 300 {
		o.text("error", r.failureText(x.of))
	}
	o.text("id", x.ResponseID)
	if list := r.lists[replies-numFields]; len(list) > 0 {
		o.key("messages")
		o.b = appendFlat(o.b, list)
	} else if len(r.messages[1]) > 0 && !r.has[reply] {
		o.key("messages")
		o.b = appendEvents(o.b, r.messages[1])
	} else {
		o.json("messages", r.values[reply])
	}
	o.text("model", x.Model)
	if x.HasCost {
		o.key("reported_cost_usd")
		o.b = append(o.b, x.Cost.USD()...)
	}
	o.json("tool_calls", r.values[calls])
	return o.end()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// appendJSON appends a value. A text that is a JSON object or list is appended as such.
func appendJSON(b []byte, v any) []byte {
	if s, ok := v.(string); ok && len(s) > 1 && (s[0] == '{' || s[0] == '[') && json.Valid([]byte(s)) {
		return append(b, s...)
	}
	return appendValue(b, v)
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return wire.AppendJSONString(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return strconv.AppendFloat(b, v, 'g', -1, 64)
		}
	case []any:
		b = append(b, '[')
		for i := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, v[i])
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for i, key := range sortedKeys(v) {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(append(wire.AppendJSONString(b, key), ':'), v[key])
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// appendAttrs appends attributes as an object. Of a repeated key the last value counts.
func appendAttrs(b []byte, all []otlp.Attr) []byte {
	last := make(map[string]int, len(all))
	for i := range all {
		last[all[i].Key] = i
	}
	b = append(b, '{')
	first := true
	for i := range all {
		if last[all[i].Key] != i {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendValue(append(wire.AppendJSONString(b, all[i].Key), ':'), all[i].Value)
	}
	return append(b, '}')
}

// appendFlat appends the attributes 0.role, 0.content, 1.role and so on as a list of
// objects.
func appendFlat(b []byte, all []otlp.Attr) []byte {
	byIndex := map[int][]otlp.Attr{}
	for _, a := range all {
		number, name, _ := strings.Cut(a.Key, ".")
		n, err := strconv.Atoi(number)
		if err != nil {
			n, name = -1, a.Key
		}
		for _, wrapper := range []string{"message.", "tool."} {
			name = strings.TrimPrefix(name, wrapper)
		}
		byIndex[n] = append(byIndex[n], otlp.Attr{Key: name, Value: a.Value})
	}
	b = append(b, '[')
	for i, n := range slices.Sorted(maps.Keys(byIndex)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendAttrs(b, byIndex[n])
	}
	return append(b, ']')
}

// appendEvents appends events that have a message each, as earlier conventions demand. The
// role is in the event's name unless it is an attribute.
func appendEvents(b []byte, all []otlp.ReceivedEvent) []byte {
	b = append(b, '[')
	for i, e := range all {
		if i > 0 {
			b = append(b, ',')
		}
		attrs := e.Attrs
		if role := strings.TrimSuffix(strings.TrimPrefix(e.Name, "gen_ai."), ".message"); otlp.Text(attrs, "role") == "" && role != eventChoice && !strings.HasPrefix(role, "choice") {
			attrs = append([]otlp.Attr{{Key: "role", Value: role}}, attrs...)
		}
		b = appendAttrs(b, attrs)
	}
	return append(b, ']')
}
