package cohere

import (
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// decodeRequest reads a body of /v2/chat.
func decodeRequest(body []byte) (*chat.Request, error) {
	q := requestDecoder{d: wire.NewDecoder(body), r: &chat.Request{Dialect: name}}
	for key := range q.d.Object {
		if !q.d.Null() {
			q.member(string(key))
		}
	}
	if err := q.d.End(); err != nil {
		return nil, err
	}
	for i := range q.r.Tools {
		if q.strict {
			q.r.Tools[i].Strict = chat.Some(true)
		}
	}
	return q.r, nil
}

type requestDecoder struct {
	d      *wire.Decoder
	r      *chat.Request
	strict bool // strict_tools
}

func (q *requestDecoder) member(key string) {
	d, r := q.d, q.r
	switch key {
	case "model":
		r.Model = d.Str()
	case "messages":
		for i := range d.Array {
			q.message(i)
		}
	case "stream":
		r.Stream = d.Bool()
	case "max_tokens":
		r.MaxTokens, r.MaxTokensField = chat.Some(d.Int()), key
	case "temperature":
		r.Temperature = chat.Some(d.Float())
	case "p":
		r.TopP = chat.Some(d.Float())
	case "k":
		r.TopK = chat.Some(d.Int())
	case "frequency_penalty":
		r.FrequencyPenalty = chat.Some(d.Float())
	case "presence_penalty":
		r.PresencePenalty = chat.Some(d.Float())
	case "seed":
		r.Seed = chat.Some(d.Int())
	case "stop_sequences":
		for range d.Array {
			r.Stop = append(r.Stop, d.Str())
		}
	case "logprobs":
		r.Logprobs = chat.Some(d.Bool())
	case "tools":
		for range d.Array {
			q.tool()
		}
	case "strict_tools":
		q.strict = d.Bool()
	case "tool_choice":
		switch word := d.Str(); word {
		case "REQUIRED":
			r.ToolChoice.Mode = chat.ToolsRequired
		case "NONE":
			r.ToolChoice.Mode = chat.ToolsNone
		default:
			r.ToolChoice.Mode, r.ToolChoice.HostMode = chat.ToolsAuto, word
		}
	case "response_format":
		q.format()
	case "thinking":
		q.thinking()
	default:
		r.Extra = append(r.Extra, chat.Field{Name: key, Raw: upstream.Clone(d.Raw())})
	}
}

func (q *requestDecoder) format() {
	f := &q.r.Format
	f.Set = true
	for key := range q.d.Object {
		switch string(key) {
		case "type":
			if q.d.Str() == "json_object" && f.Kind == chat.FormatText {
				f.Kind = chat.FormatJSON
			}
		case "json_schema", "schema":
			if q.d.Kind() == wire.KindObject {
				f.Kind, f.Name, f.Schema = chat.FormatSchema, "answer", upstream.Clone(q.d.Raw())
			}
		}
	}
}

func (q *requestDecoder) thinking() {
	g := &q.r.Reasoning
	for key := range q.d.Object {
		switch string(key) {
		case "type":
			if g.Thinking = chat.ThinkingBudget; q.d.Str() == "disabled" {
				g.Thinking = chat.ThinkingOff
			}
		case "token_budget":
			if !q.d.Null() {
				g.Budget = chat.Some(q.d.Int())
			}
		}
	}
}

func (q *requestDecoder) tool() {
	var t chat.Tool
	each(q.d, func(key string) {
		if key != "function" {
			q.d.Skip()
			return
		}
		each(q.d, func(key string) {
			switch key {
			case "name":
				t.Name = q.d.Str()
			case "description":
				t.Description = chat.Some(upstream.OptString(q.d))
			case "parameters":
				if q.d.Kind() == wire.KindObject {
					t.Schema = upstream.Clone(q.d.Raw())
				}
			}
		})
	})
	if t.Name == "" {
		q.d.Fail("must contain a function with a name")
	}
	q.r.Tools = append(q.r.Tools, t)
}

// message reads one message.
func (q *requestDecoder) message(i int) {
	m := chat.Message{At: i}
	var role, callID, plan string
	var calls []chat.Part
	d := q.d
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "role":
			role = d.Str()
		case "content":
			if d.Kind() == wire.KindString {
				m.IsString = true
				m.Parts = []chat.Part{{Kind: chat.Text, Text: d.Str()}}
				continue
			}
			for at := range d.Array {
				q.part(&m, at)
			}
		case "tool_call_id":
			callID = d.Str()
		case "tool_plan":
			plan = d.Str()
		case "tool_calls":
			for at := range d.Array {
				calls = append(calls, decodeCall(d, at))
			}
		default:
			q.r.Unknown(i, -1, key)
		}
	}
	switch role {
	case "system":
		m.Role = chat.System
	case "user":
		m.Role = chat.User
	case "assistant":
		m.Role = chat.Assistant
		if plan != "" {
			m.Parts = append(m.Parts, chat.Part{Kind: chat.Text, Text: plan})
		}
		m.Parts = append(m.Parts, calls...)
		m.IsString = m.IsString && len(m.Parts) == 1
	case "tool":
		m.Role = chat.ToolRole
		m.Parts = []chat.Part{{Kind: chat.Result, Result: &chat.ToolResult{CallID: callID, Parts: m.Parts, Plain: m.IsString}}}
		m.IsString = false
	default:
		if d.Err() == nil {
			d.Fail("must have the role system, user, assistant or tool")
		}
	}
	q.r.Messages = append(q.r.Messages, m)
}

// part reads one part of a message's content.
func (q *requestDecoder) part(m *chat.Message, at int) {
	d := q.d
	p := chat.Part{At: at, Kind: chat.Text}
	kind := ""
	var media chat.Media
	each(d, func(key string) {
		switch key {
		case "type":
			kind = d.Str()
		case "text", "thinking":
			p.Text += d.Str()
		case "image_url":
			each(d, func(key string) {
				switch key {
				case "url":
					address(&media, d.Str())
				case "detail":
					media.Detail = upstream.OptString(d)
				}
			})
		case "document":
			media.Data, media.MIME, media.Plain = string(d.Raw()), "application/json", true
		}
	})
	switch kind {
	case "text":
	case "thinking":
		p.Kind, p.Origin = chat.Reasoned, name
	case "image_url":
		p.Kind, p.Media = chat.Image, &media
	case "document":
		p.Kind, p.Media = chat.Document, &media
	default:
		d.Fail("must have the type text, thinking, image_url or document")
	}
	m.Parts = append(m.Parts, p)
}

// address splits a data: URL into its parts.
func address(media *chat.Media, url string) {
	head, data, found := strings.Cut(url, ";base64,")
	if mime, ok := strings.CutPrefix(head, "data:"); ok && found {
		media.MIME, media.Data = mime, data
		return
	}
	media.URL = url
}
