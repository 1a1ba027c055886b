package prompt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Compiled is a prompt's template, ready to be filled in: pieces of JSON that do not
// change, and templates between them. Requests share it.
type Compiled struct {
	Type   string // Chat or Completion
	raw    bool
	pieces []piece
	size   int // of the template, in bytes
}

// piece is JSON text, or the template of a text inside of JSON.
type piece struct {
	text string
	fill *Template
}

// Compile reads the template. An error names the path of the text in the messages, below
// the field string, and the tag's line and column.
func (p *Prompt) Compile() (*Compiled, []fault.Detail) {
	c := &Compiled{Type: p.Type(), raw: p.Raw == 1, size: len(p.String)}
	if c.raw || c.Type == Completion {
		t, err := Parse(p.String)
		if err != nil {
			return nil, []fault.Detail{{Field: "string", Message: err.Error()}}
		}
		c.pieces = []piece{{fill: t}}
		return c, nil
	}
	return c, c.messages(p.String)
}

// messages splits JSON text at its strings that have tags.
func (c *Compiled) messages(text string) []fault.Detail {
	body := []byte(text)
	if err := wire.CheckStrict(body, wire.MaxDepth); err != nil {
		return []fault.Detail{{Field: "string", Message: "must be the JSON text of an array of messages: " + fault.From(err).Message}}
	}
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '[' {
		return []fault.Detail{{Field: "string", Message: "must be the JSON text of an array of messages"}}
	}
	s := splitter{c: c, body: body, d: wire.NewDecoder(body)}
	s.value("string")
	s.upTo(len(body))
	if err := s.d.End(); err != nil {
		s.bad = append(s.bad, fault.Detail{Field: "string", Message: "is not valid JSON"})
	}
	return s.bad
}

type splitter struct {
	c    *Compiled
	body []byte
	d    *wire.Decoder
	from int // start of the text that is not in a piece yet
	bad  []fault.Detail
}

func (s *splitter) upTo(end int) {
	if end > s.from {
		s.c.pieces = append(s.c.pieces, piece{text: string(s.body[s.from:end])})
	}
	s.from = end
}

// value reads the next value. Elements of the outermost array must be objects.
func (s *splitter) value(path string) {
	switch s.d.Kind() {
	case wire.KindObject:
		for key := range s.d.Object {
			s.value(path + "." + clip(string(key)))
		}
	case wire.KindArray:
		for i := range s.d.Array {
			at := fmt.Sprintf("%s[%d]", path, i)
			if path == "string" && s.d.Kind() != wire.KindObject {
				s.bad = append(s.bad, fault.Detail{Field: at, Message: "must be a message: an object"})
			}
			s.value(at)
		}
	case wire.KindString:
		raw := s.d.RawStr()
		end := s.d.Offset()
		if !bytes.Contains(raw, []byte("{{")) && !bytes.ContainsRune(raw, '\\') {
			return
		}
		text, err := wire.ScanString(raw, path)
		if err != nil {
			s.bad = append(s.bad, fault.Detail{Field: path, Message: "is not valid text"})
			return
		}
		t, err := Parse(text)
		if err != nil {
			s.bad = append(s.bad, fault.Detail{Field: path, Message: err.Error()})
			return
		}
		if t.Static() {
			return
		}
		s.upTo(end - len(raw))
		s.c.pieces = append(s.c.pieces, piece{fill: t})
		s.from = end
	default:
		s.d.Skip()
	}
}

func clip(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "..."
	}
	return s
}

// Partials are the saved partials that the templates name, each once, in order.
func (c *Compiled) Partials() []Reference {
	var out []Reference
	seen := map[Reference]bool{}
	for _, p := range c.pieces {
		if p.fill == nil {
			continue
		}
		for _, ref := range p.fill.Partials() {
			if !seen[ref] {
				seen[ref] = true
				out = append(out, ref)
			}
		}
	}
	return out
}

// Render fills in the template: the JSON of the messages, or the text of a
// completion. The error is a *fault.Fault (400) about the template or the variables.
func (c *Compiled) Render(variables map[string]any, partials Partials) (string, error) {
	r := newRenderer(variables, partials)
	r.json = c.raw && c.Type == Chat
	r.out = make([]byte, 0, c.size+c.size/2)
	whole := []byte(nil) // JSON with texts that are rendered one by one
	if c.Type == Chat && !c.raw {
		whole = make([]byte, 0, c.size+c.size/2)
	}
	for i := range c.pieces {
		p := &c.pieces[i]
		if p.fill == nil {
			whole = append(whole, p.text...)
			continue
		}
		if err := r.nodes(p.fill.nodes); err != nil {
			return "", rejected(err)
		}
		if c.Type == Chat && !c.raw {
			whole, r.out = wire.AppendJSONString(whole, r.out), r.out[:0]
		}
		if len(whole) > MaxRendered {
			return "", rejected(ErrTooLong)
		}
	}
	out := string(whole)
	if c.Type != Chat || c.raw {
		out = string(r.out)
	}
	if c.raw && c.Type == Chat {
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			return "", fault.Invalid("variables", "make the template invalid: it must be the JSON of an array of messages: %s", where(err))
		}
	}
	return out, nil
}

// where returns the location of an error, without quoting the text.
func where(err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("the error is at byte %d", syntax.Offset)
	}
	return "it is not an array"
}

func rejected(err error) error {
	var f *fault.Fault
	if errors.As(err, &f) {
		return err
	}
	return fault.Invalid("prompt", "%s", err.Error())
}
