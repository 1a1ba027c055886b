package converse

import (
	"encoding/json"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// requestDecoder reads one body of Converse. The model is in the URL, not in it.
type requestDecoder struct {
	d *wire.Decoder
	r *chat.Request
}

// DecodeRequest reads a request of this shape, as chat.RequestReader does.
func (Converse) DecodeRequest(body []byte) (*chat.Request, error) {
	q := requestDecoder{d: wire.NewDecoder(body), r: &chat.Request{Dialect: name}}
	var system []chat.Part
	for key := range q.d.Object {
		if q.d.Null() {
			continue
		}
		switch string(key) {
		case "messages":
			for i := range q.d.Array {
				q.message(i)
			}
		case "system":
			system = q.parts(-1)
		case "inferenceConfig":
			q.inference()
		case "toolConfig":
			q.toolConfig()
		case "serviceTier":
			q.r.ServiceTier = readType(q.d)
		case "outputConfig":
			q.outputConfig()
		default:
			q.r.Extra = append(q.r.Extra, chat.Field{Name: string(key), Raw: upstream.Clone(q.d.Raw())})
		}
	}
	if err := q.d.End(); err != nil {
		return nil, err
	}
	if len(system) > 0 {
		q.r.Messages = append([]chat.Message{{Role: chat.System, Parts: system, At: -1}}, q.r.Messages...)
	}
	return q.r, nil
}

func (q *requestDecoder) inference() {
	for key := range q.d.Object {
		switch string(key) {
		case "maxTokens":
			q.r.MaxTokens, q.r.MaxTokensField = chat.Some(q.d.Int()), "inferenceConfig.maxTokens"
		case "temperature":
			q.r.Temperature = chat.Some(q.d.Float())
		case "topP":
			q.r.TopP = chat.Some(q.d.Float())
		case "stopSequences":
			for range q.d.Array {
				q.r.Stop = append(q.r.Stop, q.d.Str())
			}
		}
	}
}

func (q *requestDecoder) outputConfig() {
	d := q.d
	f := chat.Format{Set: true, Kind: chat.FormatSchema, Strict: chat.Some(true)}
	q.path([]string{"textFormat", "structure", "jsonSchema"}, func(key string) {
		switch key {
		case "schema":
			if f.Schema = json.RawMessage(d.Str()); !upstream.IsObject(f.Schema) {
				d.Fail("must be a JSON schema as a string")
			}
		case "name":
			f.Name = d.Str()
		case "description":
			f.Description = d.Str()
		}
	})
	if f.Schema != nil {
		q.r.Format = f
	}
}

// path follows fields down into objects and reads the fields of the last one.
func (q *requestDecoder) path(down []string, read func(key string)) {
	for key := range q.d.Object {
		switch {
		case len(down) == 0:
			read(string(key))
		case string(key) == down[0]:
			q.path(down[1:], read)
		}
	}
}

func (q *requestDecoder) toolConfig() {
	d, r := q.d, q.r
	for key := range d.Object {
		switch string(key) {
		case "tools":
			for range d.Array {
				q.tool()
			}
		case "toolChoice":
			for key := range d.Object {
				switch string(key) {
				case "auto":
					r.ToolChoice.Mode = chat.ToolsAuto
				case "any":
					r.ToolChoice.Mode = chat.ToolsRequired
				case "tool":
					r.ToolChoice.Mode = chat.ToolsNamed
					q.path(nil, func(key string) {
						if key == "name" {
							r.ToolChoice.Name = d.Str()
						}
					})
				}
			}
		}
	}
}

func (q *requestDecoder) tool() {
	d, r := q.d, q.r
	whole := *d
	t := chat.Tool{}
	for key := range d.Object {
		switch string(key) {
		case "toolSpec":
			for key := range d.Object {
				switch string(key) {
				case "name":
					t.Name = d.Str()
				case "description":
					t.Description = chat.Some(d.Str())
				case "strict":
					t.Strict = chat.Some(d.Bool())
				case "inputSchema":
					q.path(nil, func(key string) {
						if key == "json" {
							t.Schema = upstream.Clone(d.Raw())
						}
					})
				}
			}
		case "cachePoint":
			if n := len(r.Tools); n > 0 {
				r.Tools[n-1].Cache = readCache(d)
			}
			return
		default:
			t.ForeignType = string(key)
		}
	}
	if t.ForeignType != "" {
		t.Name, t.Raw = t.ForeignType, upstream.Clone(whole.Raw())
	} else if t.Name == "" {
		d.Fail("must have toolSpec.name")
	}
	r.Tools = append(r.Tools, t)
}

// readCache reads {type:"default",ttl}.
func readCache(d *wire.Decoder) chat.Cache {
	c := chat.CacheShort
	for key := range d.Object {
		if string(key) == "ttl" {
			switch d.Str() {
			case "1h":
				c = chat.Cache1h
			case "5m":
				c = chat.Cache5m
			default:
				d.Fail("must be 5m or 1h")
			}
		}
	}
	return c
}

// message reads one message. Tool results in a user's message become a message of their own
// before it.
func (q *requestDecoder) message(at int) {
	d := q.d
	m := chat.Message{At: at}
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
				d.Fail("must be user, assistant or system")
			}
		case "content":
			m.Parts = q.parts(at)
		default:
			q.r.Unknown(at, -1, key)
		}
	}
	if m.Role == 0 {
		d.Fail("must have a role")
		return
	}
	var results, rest []chat.Part
	for _, p := range m.Parts {
		if p.Kind == chat.Result {
			results = append(results, p)
		} else {
			rest = append(rest, p)
		}
	}
	if len(results) > 0 {
		q.r.Messages = append(q.r.Messages, chat.Message{Role: chat.ToolRole, At: at, Parts: results})
		if m.Parts = rest; len(rest) == 0 {
			return
		}
	}
	q.r.Messages = append(q.r.Messages, m)
}

// parts reads a list of blocks; a cache point marks the block in front of it.
func (q *requestDecoder) parts(at int) []chat.Part {
	var parts []chat.Part
	for i := range q.d.Array {
		p, marker := q.part(at, i)
		switch {
		case marker != chat.NoCache && len(parts) > 0:
			parts[len(parts)-1].Cache = marker
		case p.Kind != 0:
			p.At = i
			parts = append(parts, p)
		}
	}
	return parts
}

// part reads one block, or the marker that is in its place.
func (q *requestDecoder) part(at, i int) (p chat.Part, marker chat.Cache) {
	d := q.d
	whole := *d
	for key := range d.Object {
		switch string(key) {
		case "text":
			p = chat.Part{Kind: chat.Text, Text: d.Str()}
		case "cachePoint":
			return chat.Part{}, readCache(d)
		case "image", "document", "video", "audio":
			p = q.media(string(key))
		case "toolUse":
			p = decodeCall(d)
			if p.Call.ID == "" || p.Call.Name == "" {
				d.Fail("must have toolUseId and name")
			}
		case "toolResult":
			p = q.result(at)
		case "reasoningContent":
			p = decodeReasoning(d, &chat.Traits{})
			p.Origin = ""
		default:
			p = chat.Part{Kind: chat.Foreign, Type: string(key), Origin: name, Raw: upstream.Clone(whole.Raw())}
		}
	}
	if p.Kind == 0 && d.Err() == nil {
		d.Fail("must contain a block of content (part %d)", i)
	}
	return p, chat.NoCache
}

func (q *requestDecoder) result(at int) chat.Part {
	d := q.d
	r := &chat.ToolResult{}
	for key := range d.Object {
		switch string(key) {
		case "toolUseId":
			r.CallID = d.Str()
		case "content":
			r.Parts = q.parts(at)
		case "status":
			r.IsError = d.Str() == "error"
		}
	}
	return chat.Part{Kind: chat.Result, Result: r}
}

// media reads {format, source:{bytes|s3Location}} of a block.
func (q *requestDecoder) media(block string) chat.Part {
	d := q.d
	m := &chat.Media{}
	p := chat.Part{Kind: chat.Image, Media: m}
	switch block {
	case "document":
		p.Kind = chat.Document
	case "audio":
		p.Kind = chat.Audio
	}
	format := ""
	for key := range d.Object {
		switch string(key) {
		case "format":
			format = d.Str()
		case "name":
			m.Name = d.Str()
		case "context":
			m.Context = upstream.OptString(d)
		case "citations":
			m.Citations = upstream.Clone(d.Raw())
		case "source":
			q.path(nil, func(key string) {
				switch key {
				case "bytes":
					m.Data = d.Str()
				case "text":
					m.Data, m.Plain = d.Str(), true
				case "s3Location":
					q.path(nil, func(key string) {
						if key == "uri" {
							m.URL = d.Str()
						}
					})
				}
			})
		}
	}
	if m.MIME = typeOf(block, format); p.Kind == chat.Audio {
		m.Format = format
	}
	return p
}

// typeOf is the media type of a block's format.
func typeOf(block, format string) string {
	if mime := extensions[format]; mime != "" && formats[mime].block == block {
		return mime
	}
	return block + "/" + format
}
