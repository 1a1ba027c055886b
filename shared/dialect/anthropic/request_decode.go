package anthropic

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/dialect/jsonfield"
	"gateway/shared/wire"
)

// requestDecoder reads one body of /messages.
type requestDecoder struct {
	d      *wire.Decoder
	r      *chat.Request
	system []chat.Part
	plain  bool // system was one string
}

func decodeRequest(body []byte) (*chat.Request, error) {
	q := requestDecoder{d: wire.NewDecoder(body), r: &chat.Request{Dialect: name}}
	for key := range q.d.Object {
		if !q.d.Null() {
			q.member(key)
		}
	}
	if err := q.d.End(); err != nil {
		return nil, err
	}
	if len(q.system) > 0 {
		first := chat.Message{Role: chat.System, Parts: q.system, At: -1, IsString: q.plain}
		q.r.Messages = append([]chat.Message{first}, q.r.Messages...)
	}
	return q.r, nil
}

func (q *requestDecoder) member(key []byte) {
	d, r := q.d, q.r
	switch string(key) {
	case "model":
		r.Model = d.Str()
	case "max_tokens":
		r.MaxTokens, r.MaxTokensField = chat.Some(d.Int()), "max_tokens"
	case "messages":
		for i := range d.Array {
			q.message(i)
		}
	case "system":
		if d.Kind() == wire.KindString {
			q.plain = true
			q.system = []chat.Part{{Kind: chat.Text, Text: d.Str()}}
			return
		}
		q.system = q.blocks(-1)
	case "stop_sequences":
		for range d.Array {
			r.Stop = append(r.Stop, d.Str())
		}
	case "stream":
		r.Stream = d.Bool()
	case "temperature":
		r.Temperature = chat.Some(d.Float())
	case "top_p":
		r.TopP = chat.Some(d.Float())
	case "top_k":
		r.TopK = chat.Some(d.Int())
	case "tools":
		for range d.Array {
			r.Tools = append(r.Tools, q.tool())
		}
	case "tool_choice":
		q.toolChoice()
	case "metadata":
		q.nested("metadata", func(inner string) bool {
			if inner == "user_id" {
				r.User = d.Str()
			}
			return inner == "user_id"
		})
	case "thinking":
		jsonfield.Thinking(d, &r.Reasoning)
	case "service_tier":
		r.ServiceTier = d.Str()
	case "output_config":
		q.nested("output_config", q.outputConfig)
	default:
		jsonfield.AddCopy(d, extraName(key), &r.Extra)
	}
}

// nested reads the fields of an object. Fields that take does not recognize are retained.
func (q *requestDecoder) nested(outer string, take func(inner string) bool) {
	for key := range q.d.Object {
		if q.d.Null() {
			continue
		}
		inner := string(key)
		if !take(inner) {
			jsonfield.AddCopy(q.d, outer+"."+inner, &q.r.Extra)
		}
	}
}

func (q *requestDecoder) outputConfig(inner string) bool {
	d, r := q.d, q.r
	switch inner {
	case "effort":
		r.Reasoning.Effort = d.Str()
	case "format":
		f := chat.Format{Set: true}
		for key := range d.Object {
			switch string(key) {
			case "type":
				if f.Kind = chat.FormatSchema; d.Str() != "json_schema" {
					f.Kind = chat.FormatText
					r.Assume("response_format.type", "text")
				}
			case "schema":
				f.Schema = jsonfield.Object(d)
			}
		}
		if d.Err() == nil && f.Schema == nil && f.Kind == chat.FormatSchema {
			d.Fail("must have a schema")
		}
		// This provider always enforces the schema.
		f.Strict, f.AssumedStrict = chat.Some(true), true
		r.Format = f
	default:
		return false
	}
	return true
}

func (q *requestDecoder) toolChoice() {
	d, r := q.d, q.r
	whole := *d
	mode := ""
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "type":
			mode = d.Str()
			switch mode {
			case "auto":
				r.ToolChoice.Mode = chat.ToolsAuto
			case "any":
				r.ToolChoice.Mode = chat.ToolsRequired
			case "none":
				r.ToolChoice.Mode = chat.ToolsNone
			case "tool":
				r.ToolChoice.Mode = chat.ToolsNamed
			default:
				r.ToolChoice.Mode, r.ToolChoice.HostMode = chat.ToolsAuto, mode
			}
		case "name":
			r.ToolChoice.Name = d.Str()
		case "disable_parallel_tool_use":
			r.Parallel = chat.Some(!d.Bool())
		}
	}
	switch {
	case mode == "":
		jsonfield.Missing(d, &whole, "type")
	case mode == "tool" && r.ToolChoice.Name == "":
		jsonfield.Missing(d, &whole, "name")
	}
	if mode != "tool" {
		r.ToolChoice.Name = ""
	}
}

func (q *requestDecoder) tool() chat.Tool {
	d := q.d
	var t chat.Tool
	whole := *d
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "type":
			if kind := d.Str(); kind != "custom" {
				t.ForeignType = kind
			}
		default:
			jsonfield.OfFunction(d, key, "input_schema", &t)
		}
	}
	if t.ForeignType != "" {
		return chat.Tool{Name: t.Name, ForeignType: t.ForeignType, Raw: bytes.Clone(whole.Raw()), Cache: t.Cache}
	}
	if t.Name == "" {
		jsonfield.Missing(d, &whole, "name")
	}
	return t
}

// message reads one message. A message of the user that holds tool results
// becomes two: the results, then the rest.
func (q *requestDecoder) message(at int) {
	d := q.d
	m := chat.Message{At: at}
	whole := *d
	hasContent := false
	for key := range d.Object {
		switch string(key) {
		case "role":
			switch d.Str() {
			case "user":
				m.Role = chat.User
			case "assistant":
				m.Role = chat.Assistant
			case "system":
				m.Role = chat.System
			default:
				d.Fail("must be user or assistant")
			}
		case "content":
			hasContent = true
			if d.Kind() == wire.KindString {
				m.IsString = true
				m.Parts = []chat.Part{{Kind: chat.Text, Text: d.Str()}}
			} else {
				m.Parts = q.blocks(at)
			}
		default:
			if !d.Null() {
				q.r.Unknown(at, -1, key)
			}
		}
	}
	if d.Err() != nil {
		return
	}
	switch {
	case m.Role == 0:
		jsonfield.Missing(d, &whole, "role")
		return
	case !hasContent:
		jsonfield.Missing(d, &whole, "content")
		return
	}
	if m.Role == chat.User {
		if results, rest := split(m.Parts); len(results) > 0 {
			q.r.Messages = append(q.r.Messages, chat.Message{Role: chat.ToolRole, At: at, Parts: results})
			if m.Parts = rest; len(rest) == 0 {
				return
			}
		}
	}
	q.r.Messages = append(q.r.Messages, m)
}

// split takes the tool results out of parts.
func split(parts []chat.Part) (results, rest []chat.Part) {
	for _, p := range parts {
		if p.Kind == chat.Result {
			results = append(results, p)
		} else {
			rest = append(rest, p)
		}
	}
	return results, rest
}

// blocks reads the content of message at; at is negative inside of a block and
// in the system prompt.
func (q *requestDecoder) blocks(at int) []chat.Part {
	var parts []chat.Part
	for i := range q.d.Array {
		p := q.block(at, i)
		p.At = i
		parts = append(parts, p)
	}
	return parts
}
