package observe

import (
	"bytes"
	"encoding/json"
)

// gather puts the events of a stream together into the response that would have come without
// a stream; nil if it understands nothing.
func gather(stream []byte) object {
	g := gathered{}
	for line := range bytes.Lines(stream) {
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue
		}
		e, ok := parse(bytes.TrimSpace(data))
		if !ok {
			continue
		}
		if whole, ok := e["response"].(object); ok && whole["output"] != nil {
			g.whole = whole // each such event contains all earlier ones
			continue
		}
		g.chunk(e)
		g.event(e)
	}
	return g.object()
}

// gathered is the content assembled so far.
type gathered struct {
	whole   object
	id      string
	stop    string
	choices []object
	blocks  []object
}

// most bounds the choices, calls and blocks of a stream.
const most = 256

// nth returns the n-th entry of a list, which grows if necessary; nil beyond the bound.
func nth(list *[]object, v any) object {
	number, _ := v.(json.Number)
	n, err := number.Int64()
	if number != "" && err != nil || n < 0 || n >= most {
		return nil
	}
	for int64(len(*list)) <= n {
		*list = append(*list, object{})
	}
	return (*list)[n]
}

// join appends text to a member.
func join(o object, name string, more any) {
	if s := str(more); s != "" {
		o[name] = str(o[name]) + s
	}
}

// chunk adds an event of a chat.
func (g *gathered) chunk(e object) {
	choices, ok := e["choices"].([]any)
	if !ok {
		return
	}
	g.id = str(e["id"])
	for _, it := range choices {
		c, _ := it.(object)
		to := nth(&g.choices, c["index"])
		if to == nil {
			continue
		}
		join(to, "finish_reason", c["finish_reason"])
		join(to, "text", c["text"])
		delta, ok := c["delta"].(object)
		if !ok {
			continue
		}
		m, ok := to["message"].(object)
		if !ok {
			m = object{}
			to["message"] = m
		}
		join(m, "content", delta["content"])
		join(m, "reasoning_content", first(delta["reasoning_content"], delta["reasoning"]))
		calls, _ := delta["tool_calls"].([]any)
		made, _ := m["made"].([]object)
		for _, it := range calls {
			part, _ := it.(object)
			f, _ := part["function"].(object)
			if one := nth(&made, part["index"]); one != nil {
				join(one, "id", part["id"])
				join(one, "name", f["name"])
				join(one, "arguments", f["arguments"])
			}
		}
		m["made"] = made
	}
}

// event adds an event of a message.
func (g *gathered) event(e object) {
	switch str(e["type"]) {
	case "message_start":
		m, _ := e["message"].(object)
		g.id = str(m["id"])
	case "content_block_start":
		if b, ok := e["content_block"].(object); ok {
			if to := nth(&g.blocks, e["index"]); to != nil {
				for k, v := range b {
					to[k] = v
				}
			}
		}
	case "content_block_delta":
		d, _ := e["delta"].(object)
		if to := nth(&g.blocks, e["index"]); to != nil {
			join(to, "text", d["text"])
			join(to, "thinking", d["thinking"])
			join(to, "partial", d["partial_json"])
		}
	case "message_delta":
		d, _ := e["delta"].(object)
		g.stop += str(d["stop_reason"])
	}
}

// object is the response that was put together.
func (g *gathered) object() object {
	if g.whole != nil {
		return g.whole
	}
	o := object{"id": g.id}
	var choices, blocks []any
	for _, c := range g.choices {
		if m, ok := c["message"].(object); ok {
			made, _ := m["made"].([]object)
			var calls []any
			for _, one := range made {
				calls = append(calls, object{"id": one["id"], "function": one})
			}
			m["tool_calls"] = calls
		}
		choices = append(choices, c)
	}
	for _, b := range g.blocks {
		if p := str(b["partial"]); p != "" {
			b["input"] = p
		}
		blocks = append(blocks, b)
	}
	o["choices"], o["content"], o["stop_reason"] = choices, blocks, g.stop
	return o
}
