package gemini

import (
	"bytes"
	"encoding/base64"
	"sort"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

func indexed(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

// path is where a message (p nil) or one of its parts is in the client's body.
func path(m *chat.Message, p *chat.Part) string {
	if m.At < 0 {
		if p == nil {
			return "system"
		}
		return indexed("system", p.At)
	}
	at := indexed("messages", m.At)
	switch {
	case p == nil:
		return at
	case p.Kind == chat.Call:
		return at + "." + indexed("tool_calls", p.At)
	case m.IsString:
		return at + ".content"
	}
	return at + "." + indexed("content", p.At)
}

// contents writes the turns. Neighbors of one role become one turn, except tool results,
// which have a turn separate in the order of their calls.
func contents(e *requestEncoder) error {
	encodeKey(e, "contents")
	e.b = append(e.b, '[')
	ms := e.r.Messages
	open := "" // role of the turn that is being written
	turns := 0
	end := func() {
		if open != "" {
			e.b = append(e.b, `]}`...)
			open = ""
		}
	}
	begin := func(role string) {
		if open == role {
			return
		}
		end()
		turns++
		item(e)
		e.b = append(append(append(e.b, `{"role":"`...), role...), `","parts":[`...)
		open = role
	}
	for i := 0; i < len(ms); i++ {
		m := &ms[i]
		switch m.Role {
		case chat.User, chat.Assistant:
			role := "user"
			if m.Role == chat.Assistant {
				role = "model"
				noteCalls(e, m)
			}
			dropName(e, m)
			before, turn, was := len(e.b), turns, open
			begin(role)
			first := len(e.b)
			if err := encodeParts(e, m); err != nil {
				return err
			}
			if len(e.b) == first { // nothing was written: the turn is removed again
				e.b, turns, open = e.b[:before], turn, was
				e.loss.Add(path(m, nil), "the message is blank")
			}
		case chat.ToolRole:
			end()
			last, err := encodeResults(e, i)
			if err != nil {
				return err
			}
			turns++
			i = last
		}
	}
	end()
	if turns == 0 {
		if e.r.Completion != nil {
			return fault.Invalid("prompt", "prompt must not be empty for this provider")
		}
		return fault.Invalid("messages", "messages must contain a message of the user with content: this provider requires one")
	}
	e.b = append(e.b, ']')
	return nil
}

// noteCalls remembers the names of the calls, by which results are identified.
func noteCalls(e *requestEncoder, m *chat.Message) {
	for i := range m.Parts {
		if c := m.Parts[i].Call; c != nil && c.ID != "" {
			if e.names == nil {
				e.names = make(map[string]string)
			}
			e.names[c.ID] = c.Name
		}
	}
}

// encodeParts writes the parts of a message.
func encodeParts(e *requestEncoder, m *chat.Message) error {
	s := signatures(e, m)
	for i := range m.Parts {
		p := &m.Parts[i]
		marker(e, m, p)
		var err error
		switch p.Kind {
		case chat.Text, chat.Refusal:
			if p.Text == "" && s.of[i] == "" {
				continue
			}
			item(e)
			e.b = append(e.b, '{')
			str(e, "text", p.Text)
		case chat.Reasoned:
			if p.Text == "" && (s.of[i] == "" || s.moved[i]) {
				continue
			}
			item(e)
			e.b = append(e.b, '{')
			str(e, "text", p.Text)
			if p.Text != "" {
				encodeRaw(e, "thought", []byte("true"))
			}
		case chat.Image, chat.Document, chat.Audio:
			item(e)
			e.b = append(e.b, '{')
			err = encodeMedia(e, p, path(m, p))
		case chat.Call:
			item(e)
			e.b = append(e.b, '{')
			err = encodeCall(e, m, p)
		case chat.Foreign:
			if !encodeForeign(e, m, p) {
				continue
			}
		default:
			e.loss.Add(path(m, p), notTaken)
			continue
		}
		if err != nil {
			return err
		}
		if s.of[i] != "" && !s.moved[i] {
			str(e, "thoughtSignature", s.of[i])
		}
		e.b = append(e.b, '}')
	}
	return nil
}

// encodeForeign opens a part of the provider's own, as it was given to the client, or
// a video as clients of the OpenAI shape write it; false when it is neither.
func encodeForeign(e *requestEncoder, m *chat.Message, p *chat.Part) bool {
	d := wire.NewDecoder(p.Raw)
	var inner []byte
	for key := range d.Object {
		if string(key) == p.Type {
			inner = d.Raw()
		}
	}
	switch p.Type {
	case "executableCode", "codeExecutionResult", "toolCall", "toolResponse":
		if wire.KindOf(inner) == wire.KindObject {
			item(e)
			e.b = append(e.b, '{')
			encodeRaw(e, p.Type, inner)
			return true
		}
	case "video_url":
		video := chat.Part{Kind: chat.Document, Media: videoMedia(inner)}
		if video.Media != nil {
			before := len(e.b)
			item(e)
			e.b = append(e.b, '{')
			if encodeMedia(e, &video, path(m, p)) == nil {
				return true
			}
			e.b = e.b[:before]
		}
	}
	e.loss.Add(path(m, p), notTaken)
	return false
}

// videoMedia reads the url of {url}; nil when there is none that is understood.
func videoMedia(inner []byte) *chat.Media {
	url := ""
	d := wire.NewDecoder(inner)
	switch wire.KindOf(inner) {
	case wire.KindString:
		url = d.Str()
	case wire.KindObject:
		for key := range d.Object {
			if string(key) == "url" && d.Kind() == wire.KindString {
				url = d.Str()
			}
		}
	}
	head, data, isData := strings.Cut(url, ";base64,")
	switch {
	case isData && strings.HasPrefix(head, "data:"):
		if _, err := base64.StdEncoding.DecodeString(data); err != nil {
			return nil
		}
		return &chat.Media{Data: data, MIME: strings.TrimPrefix(head, "data:")}
	case url == "":
		return nil
	}
	return &chat.Media{URL: url, MIME: mimeOf(url, "video/mp4")}
}

// encodeCall writes the inside of a functionCall part.
func encodeCall(e *requestEncoder, m *chat.Message, p *chat.Part) error {
	c := p.Call
	args := []byte(strings.TrimSpace(c.Arguments))
	switch {
	case c.Custom:
		args = append(wire.AppendJSONString([]byte(`{"input":`), c.Arguments), '}')
	case len(args) == 0:
		args = []byte("{}")
	case !jsonObject(args):
		field := path(m, p) + ".function.arguments"
		if e.r.Legacy {
			field = path(m, nil) + ".function_call.arguments"
		}
		return fault.Invalid(field, "%s of the call %q must be a JSON object", field, c.ID)
	}
	encodeKey(e, "functionCall")
	e.b = append(e.b, '{')
	if c.ID != "" {
		str(e, "id", c.ID)
	}
	str(e, "name", chat.LegalName(c.Name, maxToolName))
	encodeRaw(e, "args", args)
	e.b = append(e.b, '}')
	return nil
}

// result is one tool result and the position of its call.
type result struct {
	m    *chat.Message
	p    *chat.Part
	name string
	at   int
}

// encodeResults writes the tool messages from i on as one turn, in the order of their
// calls, and gives the index of the last one.
func encodeResults(e *requestEncoder, i int) (last int, err error) {
	ms := e.r.Messages
	order := callOrder(ms[:i])
	var rs []result
	last = i
	for ; i < len(ms); i++ {
		m := &ms[i]
		if m.Role == chat.System || m.Role == chat.Developer {
			continue
		}
		if m.Role != chat.ToolRole {
			break
		}
		last = i
		for j := range m.Parts {
			r := result{m: m, p: &m.Parts[j], at: len(order)}
			id := r.p.Result.CallID
			r.name = e.names[id]
			if r.name == "" {
				r.name = r.p.Result.Name
			}
			if r.name == "" {
				field := path(m, nil) + ".tool_call_id"
				return last, fault.Invalid(field, "%s must name a tool call of an earlier message", field)
			}
			if at, ok := order[id]; ok {
				r.at = at
			}
			rs = append(rs, r)
		}
	}
	sort.SliceStable(rs, func(a, b int) bool { return rs[a].at < rs[b].at })
	item(e)
	e.b = append(e.b, `{"role":"user","parts":[`...)
	var media []result // for models that take no media inside of a result
	for _, r := range rs {
		if err := encodeResult(e, &r, &media); err != nil {
			return last, err
		}
	}
	for _, r := range media {
		item(e)
		e.b = append(e.b, '{')
		if err := encodeMedia(e, r.p, path(r.m, nil)); err != nil {
			return last, err
		}
		e.b = append(e.b, '}')
	}
	e.b = append(e.b, `]}`...)
	return last, nil
}

// callOrder returns the position of each call of the last turn of the assistant.
func callOrder(ms []chat.Message) map[string]int {
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Role == chat.Assistant {
			order := make(map[string]int)
			for _, p := range ms[i].Parts {
				if p.Call != nil {
					order[p.Call.ID] = len(order)
				}
			}
			return order
		}
	}
	return nil
}

// encodeResult writes one functionResponse. Its response must be an object: a success is written
// under output, a failure under error.
func encodeResult(e *requestEncoder, r *result, media *[]result) error {
	res := r.p.Result
	marker(e, r.m, r.p)
	item(e)
	e.b = append(e.b, `{"functionResponse":{`...)
	if res.CallID != "" {
		str(e, "id", res.CallID)
	}
	str(e, "name", chat.LegalName(r.name, maxToolName))
	encodeKey(e, "response")
	e.b = append(e.b, '{')
	key := "output"
	if res.IsError {
		key = "error"
	}
	text := chat.Message{Parts: res.Parts}
	str(e, key, text.Text())
	e.b = append(e.b, '}')
	inside := false
	for i := range res.Parts {
		p := &res.Parts[i]
		switch {
		case p.Kind == chat.Text:
		case p.Kind != chat.Image && p.Kind != chat.Document && p.Kind != chat.Audio:
			e.loss.Add(path(r.m, nil)+"."+indexed("content", i), notTaken)
		case !e.t.SignedCalls || p.Media.Data == "":
			*media = append(*media, result{m: r.m, p: p})
		default:
			if !inside {
				inside = true
				encodeKey(e, "parts")
				e.b = append(e.b, '[')
			}
			item(e)
			e.b = append(e.b, '{')
			if err := encodeMedia(e, p, path(r.m, nil)); err != nil {
				return err
			}
			e.b = append(e.b, '}')
		}
	}
	if inside {
		e.b = append(e.b, ']')
	}
	e.b = append(e.b, `}}`...)
	return nil
}

// jsonObject reports whether raw is one JSON object.
func jsonObject(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return false
	}
	d := wire.NewDecoder(raw)
	d.Skip()
	return d.End() == nil
}
