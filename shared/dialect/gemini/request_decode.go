package gemini

import (
	"slices"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/wire"
)

// requestDecoder reads a request as a client of this dialect writes it.
type requestDecoder struct {
	at    int // the content that is read
	d     *wire.Decoder
	r     *chat.Request
	start int // index of the first message of the model's turn
	// calls are the ids of the turn's calls that are not answered yet, by name: results without
	// an id belong to the first of them.
	calls map[string][]string
	open  map[string]bool // the turn's calls without a result, by id
	// allowed are the names of the functions that may be called; nil means all.
	allowed []string
}

func decodeRequest(body []byte) (*chat.Request, error) {
	q := requestDecoder{d: wire.NewDecoder(body), r: &chat.Request{Dialect: name}, calls: map[string][]string{}, open: map[string]bool{}}
	d, r := q.d, q.r
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "contents":
			q.start = len(r.Messages)
			for i := range d.Array {
				q.content(i)
			}
			q.settle()
		case "systemInstruction":
			m := chat.Message{Role: chat.System, At: -1}
			q.parts(&m, nil)
			r.Messages = append([]chat.Message{m}, r.Messages...)
		case "tools":
			for range d.Array {
				q.tool()
			}
		case "toolConfig":
			q.toolConfig()
		case "generationConfig":
			q.config()
		case "model":
			r.Model = optString(d)
		default:
			field := string(key)
			r.Extra = append(r.Extra, chat.Field{Name: field, Raw: clone(d.Raw())})
		}
	}
	q.offer()
	if err := d.End(); err != nil {
		return nil, err
	}
	return r, nil
}

// content reads one turn. Here results of functions are in turns of the user; in chat they
// are messages of their own.
func (q *requestDecoder) content(at int) {
	d := q.d
	role := ""
	probe := *d
	if probe.Kind() == wire.KindObject {
		for key := range probe.Object {
			if string(key) == "role" {
				role = optString(&probe)
			}
		}
	}
	m := chat.Message{Role: chat.User, At: at}
	results := chat.Message{Role: chat.ToolRole, At: at}
	switch role {
	case "model":
		if n := len(q.r.Messages); n > q.start && q.r.Messages[n-1].Role != chat.Assistant {
			q.settle()
		}
		m.Role = chat.Assistant
	case "", "user", "function":
	default:
		d.Skip()
		d.Fail("must have the role user or model")
		return
	}
	q.at = at
	q.parts(&m, &results)
	if len(results.Parts) > 0 {
		q.r.Messages = append(q.r.Messages, results)
	}
	if len(m.Parts) > 0 || len(results.Parts) == 0 {
		q.r.Messages = append(q.r.Messages, m)
	}
}

func (q *requestDecoder) parts(m, results *chat.Message) {
	d := q.d
	for key := range d.Object {
		if string(key) != "parts" || d.Null() {
			continue
		}
		for i := range d.Array {
			whole := *d
			var result *chat.ToolResult
			if results != nil {
				result = q.result(whole)
			}
			var p part
			p.read(d)
			switch {
			case result != nil:
				results.Parts = append(results.Parts, chat.Part{Kind: chat.Result, Result: result, At: i})
			case d.Err() == nil:
				q.part(m, &p, i)
			}
		}
	}
}

// part makes the canonical parts of one part.
func (q *requestDecoder) part(m *chat.Message, p *part, at int) {
	add := func(part chat.Part) { part.At = at; m.Parts = append(m.Parts, part) }
	thought := p.text != nil && p.thought
	if foreign, ok := openSigned(p.signature); ok && (thought || p.call) {
		q.reasoned(m, foreign, p, at)
		if p.signature = ""; thought {
			return
		}
	}
	if p.signature != "" && !(thought && len(p.text) > 2) {
		add(chat.Part{Kind: chat.Reasoned, Origin: name, Signature: chat.MarkSigned(name, p.signature)})
	}
	switch {
	case p.call:
		id := p.callID
		if id == "" {
			id = "call_" + strconv.Itoa(len(q.r.Messages)) + "_" + strconv.Itoa(at)
		}
		q.calls[p.callName], q.open[id] = append(q.calls[p.callName], id), true
		add(chat.Part{Kind: chat.Call, Call: &chat.ToolCall{ID: id, Name: p.callName, Arguments: string(p.arguments())}})
	case thought:
		part := chat.Part{Kind: chat.Reasoned, Origin: name, Text: string(wire.AppendUnquoted(nil, p.text))}
		if part.Text != "" && p.signature != "" {
			part.Signature = chat.MarkSigned(name, p.signature)
		}
		if n := len(m.Parts); n > 0 && m.Parts[n-1].Kind == chat.Reasoned && m.Parts[n-1].Signature == "" && m.Parts[n-1].Text != "" {
			m.Parts[n-1].Text += part.Text // a stream gives thinking in pieces, signed at its end
			m.Parts[n-1].Signature = part.Signature
			return
		}
		add(part)
	case p.text != nil:
		add(chat.Part{Kind: chat.Text, Text: string(wire.AppendUnquoted(nil, p.text))})
	case p.data != nil || p.uri != "":
		media := &chat.Media{MIME: p.mime, URL: p.uri}
		if p.data != nil {
			media.URL, media.Data = "", string(wire.AppendUnquoted(nil, p.data))
		}
		kind := chat.Document
		switch {
		case strings.HasPrefix(p.mime, "image/"):
			kind = chat.Image
		case strings.HasPrefix(p.mime, "audio/") && p.data != nil:
			kind, media.Format = chat.Audio, strings.TrimPrefix(p.mime, "audio/")
		}
		add(chat.Part{Kind: kind, Media: media})
	case p.foreign != "":
		add(chat.Part{Kind: chat.Foreign, Type: p.foreign, Origin: name, Raw: p.block()})
	}
}

// reasoned adds a part that another provider signed. Its text is that of the thinking parts
// before it, as a stream gave them, and its own.
func (q *requestDecoder) reasoned(m *chat.Message, foreign chat.Part, p *part, at int) {
	foreign.At = at
	if foreign.Kind == chat.Reasoned {
		if n := len(m.Parts); n > 0 && m.Parts[n-1].Kind == chat.Reasoned && m.Parts[n-1].Signature == "" {
			foreign.Text, foreign.At = m.Parts[n-1].Text, m.Parts[n-1].At
			m.Parts = m.Parts[:n-1]
		}
		if p.text != nil && p.thought {
			foreign.Text += string(wire.AppendUnquoted(nil, p.text))
		}
	}
	m.Parts = append(m.Parts, foreign)
}

// result reads a functionResponse; nil when the part is none.
func (q *requestDecoder) result(d wire.Decoder) *chat.ToolResult {
	if d.Kind() != wire.KindObject {
		return nil
	}
	var r *chat.ToolResult
	var response []byte
	for key := range d.Object {
		if string(key) != "functionResponse" || d.Kind() != wire.KindObject {
			continue
		}
		r = &chat.ToolResult{Plain: true}
		for inner := range d.Object {
			switch string(inner) {
			case "id":
				r.CallID = optString(&d)
			case "name":
				r.Name = optString(&d)
			case "response":
				response = d.Raw()
			case "parts": // media beside the response
				var media chat.Message
				for i := range d.Array {
					var p part
					p.read(&d)
					q.part(&media, &p, i)
				}
				r.Parts, r.Plain = append(r.Parts, media.Parts...), len(media.Parts) == 0
			default:
				q.r.Unknown(q.at, -1, append([]byte("functionResponse."), inner...))
			}
		}
	}
	if response != nil {
		r.Parts = append([]chat.Part{{Kind: chat.Text, Text: responseText(response, r.Name, &r.IsError)}}, r.Parts...)
	}
	if r != nil && r.CallID == "" {
		if open := q.calls[r.Name]; len(open) > 0 {
			r.CallID, q.calls[r.Name] = open[0], open[1:]
		}
	}
	if r != nil {
		delete(q.open, r.CallID)
	}
	return r
}

// responseText returns the text under output or error if that is all; otherwise the
// complete object. The AI SDK writes content in place of output, and the name of the function
// beside it.
func responseText(raw []byte, function string, failed *bool) string {
	d := wire.NewDecoder(raw)
	members, text := 0, ""
	ok, named, content := false, false, false
	if d.Kind() == wire.KindObject {
		for key := range d.Object {
			k, isText := string(key), d.Kind() == wire.KindString
			switch {
			case isText && k == "name" && !named:
				named = d.Str() == function
				members++
				continue
			case isText && (k == "output" || k == "error" || k == "content"):
				text, ok, *failed, content = d.Str(), true, k == "error", k == "content"
			}
			members++
		}
	}
	if ok && (members == 1 && !content || members == 2 && named) {
		return text
	}
	*failed = false
	return string(raw)
}

// tool reads one element of tools, which may declare several functions.
func (q *requestDecoder) tool() {
	d := q.d
	for key := range d.Object {
		if string(key) != "functionDeclarations" {
			own := string(key)
			raw := append(wire.AppendJSONString([]byte(`{"type":`), own), ',')
			raw = append(append(append(wire.AppendJSONString(raw, own), ':'), d.Raw()...), '}')
			q.r.Tools = append(q.r.Tools, chat.Tool{Name: own, ForeignType: own, Raw: raw})
			continue
		}
		for range d.Array {
			var t chat.Tool
			for inner := range d.Object {
				switch string(inner) {
				case "name":
					t.Name = d.Str()
				case "description":
					t.Description = chat.Some(d.Str())
				case "parameters":
					if d.Kind() == wire.KindObject {
						t.Schema = standard(nil, d.Raw())
					}
				case "parametersJsonSchema":
					if d.Kind() == wire.KindObject {
						t.Schema = clone(d.Raw())
					}
				default:
					field := string(inner)
					t.Extra = append(t.Extra, chat.Field{Name: field, Raw: clone(d.Raw())})
				}
			}
			q.r.Tools = append(q.r.Tools, t)
		}
	}
}

func (q *requestDecoder) toolConfig() {
	d, c := q.d, &q.r.ToolChoice
	for key := range d.Object {
		if string(key) != "functionCallingConfig" || d.Null() {
			continue
		}
		for inner := range d.Object {
			switch string(inner) {
			case "mode":
				switch word := strings.ToUpper(optString(d)); word {
				case "AUTO":
					c.Mode = chat.ToolsAuto
				case "", "MODE_UNSPECIFIED":
				case "NONE":
					c.Mode = chat.ToolsNone
				case "ANY":
					c.Mode = chat.ToolsRequired
				default:
					c.Mode, c.HostMode = chat.ToolsAuto, strings.ToLower(word)
				}
			case "allowedFunctionNames":
				for range d.Array {
					q.allowed = append(q.allowed, optString(d))
				}
			}
		}
	}
	if len(q.allowed) == 1 && c.Mode == chat.ToolsRequired {
		c.Mode, c.Name = chat.ToolsNamed, q.allowed[0]
	}
}

// offer removes the functions that may not be called. Other providers know no such list.
func (q *requestDecoder) offer() {
	if len(q.allowed) < 2 {
		return
	}
	q.r.Tools = slices.DeleteFunc(q.r.Tools, func(t chat.Tool) bool { return t.ForeignType == "" && !slices.Contains(q.allowed, t.Name) })
}

// config reads generationConfig.
func (q *requestDecoder) config() {
	d, r := q.d, q.r
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "temperature":
			r.Temperature = chat.Some(d.Float())
		case "topP":
			r.TopP = chat.Some(d.Float())
		case "topK":
			r.TopK = chat.Some(d.Int())
		case "candidateCount":
			r.N = chat.Some(d.Int())
		case "maxOutputTokens":
			r.MaxTokens, r.MaxTokensField = chat.Some(d.Int()), "generationConfig.maxOutputTokens"
		case "stopSequences":
			for range d.Array {
				r.Stop = append(r.Stop, d.Str())
			}
		case "presencePenalty":
			r.PresencePenalty = chat.Some(d.Float())
		case "frequencyPenalty":
			r.FrequencyPenalty = chat.Some(d.Float())
		case "seed":
			r.Seed = chat.Some(d.Int())
		case "responseLogprobs":
			r.Logprobs = chat.Some(d.Bool())
		case "logprobs":
			r.TopLogprobs = chat.Some(d.Int())
		case "responseMimeType":
			if optString(d) == "application/json" && r.Format.Kind == chat.FormatText {
				r.Format.Kind, r.Format.Set = chat.FormatJSON, true
			}
		case "responseSchema", "responseJsonSchema":
			if d.Kind() == wire.KindObject {
				schema := string(key) == "responseSchema" // the key is valid only until the value is read
				r.Format = chat.Format{Kind: chat.FormatSchema, Set: true, Name: "answer", Schema: clone(d.Raw())}
				if schema {
					r.Format.Schema = standard(nil, r.Format.Schema)
				}
			}
		case "thinkingConfig":
			q.thinking()
		default:
			field := "generationConfig." + string(key)
			r.Extra = append(r.Extra, chat.Field{Name: field, Raw: clone(d.Raw())})
		}
	}
}

func (q *requestDecoder) thinking() {
	d, t := q.d, &q.r.Reasoning
	for key := range d.Object {
		switch string(key) {
		case "thinkingBudget":
			switch n := d.Int(); {
			case n == 0:
				t.Thinking = chat.ThinkingOff
			case n > 0:
				t.Thinking, t.Budget = chat.ThinkingBudget, chat.Some(n)
			default:
				t.Thinking = chat.ThinkingAdaptive
			}
		case "thinkingLevel":
			t.Effort = strings.ToLower(optString(d))
		}
	}
}
