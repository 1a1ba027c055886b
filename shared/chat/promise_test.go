package chat

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"gateway/shared/wire"
)

// pieces is a StreamDecoder whose events are the pieces of one text.
type pieces struct {
	stop StopReason
	m    Meter
}

func (p *pieces) Event(event string, data []byte, emit func(*Delta) error) error {
	if event == "end" {
		p.m.Complete = true
		return emit(&Delta{Kind: DeltaStop, Stop: p.stop})
	}
	return emit(&Delta{Kind: DeltaText, Call: -1, JSON: wire.AppendJSONString(nil, data)})
}
func (p *pieces) End() error       { return nil }
func (p *pieces) Meter() Meter     { return p.m }
func (p *pieces) Signed() []Signed { return nil }

// streamed returns text in pieces of size bytes and collects what a client gets.
func streamed(r *Request, text string, stop StopReason, size int) (string, error) {
	dec := CheckJSON(r, &pieces{stop: stop})
	var c Collector
	give := func(d *Delta) error { c.Add(d); return nil }
	var err error
	for rest := text; rest != "" && err == nil; {
		n := min(size, len(rest))
		for n < len(rest) && !utf8.RuneStart(rest[n]) {
			n++ // a piece of a stream holds whole characters
		}
		err = dec.Event("", []byte(rest[:n]), give)
		rest = rest[n:]
	}
	if err == nil {
		err = dec.Event("end", nil, give)
	}
	if m := dec.Meter(); (m.Err != nil) != (err != nil) || err != nil && m.Complete {
		panic("the meter says something else than the events")
	}
	if err != nil {
		return "", err
	}
	return c.Response().Choices[0].Text(), dec.End()
}

func FuzzPromised(f *testing.F) {
	for _, s := range []string{`{}`, ` {"a":"}\"","b":[{}]} `, "```json\n{\"a\":1}\n```", "```\n{}\n```", "```python\n{}```", `Here: {}`, `{} and`, `{"a":1,}`, `{"a":`, `[1]`, ``, "{}{}", "{\"\xff\":1}", strings.Repeat(" ", 70) + "{}", " {\"\u06f7\":[]}"} {
		f.Add(s, uint8(1), false)
		f.Add(s, uint8(3), true)
	}
	f.Fuzz(func(t *testing.T, text string, size uint8, tools bool) {
		text = strings.ToValidUTF8(text, "\ufffd") // as whatever was decoded
		for _, stop := range []StopReason{StopEnd, StopLength, StopFilter} {
			r := &Request{UnboundJSON: true}
			if tools {
				r.Tools = []Tool{{Name: "f"}}
			}
			answer := &Response{Choices: []Choice{{Parts: []Part{{Kind: Text, Text: text}}, Stop: stop}}}
			if err := r.CheckJSON(answer); err != nil {
				if _, again := streamed(r, text, stop, len(text)+1); again == nil {
					t.Fatalf("%q is refused whole and taken as a stream", text)
				}
				continue
			}
			got := answer.Choices[0].Text()
			if stop == StopEnd {
				if !json.Valid([]byte(got)) || got[0] != '{' || !strings.Contains(text, got) {
					t.Fatalf("%q is taken as %q", text, got)
				}
				again, err := streamed(r, text, stop, int(size)+1)
				if err != nil || again != got {
					t.Fatalf("%q is taken whole as %q, and as a stream as %q (%v)", text, got, again, err)
				}
			}
		}
	})
}

func TestPromisedIgnoresIncompleteResponses(t *testing.T) {
	r := &Request{UnboundJSON: true}
	for name, c := range map[string]Choice{
		"cut":      {Stop: StopLength, Parts: []Part{{Kind: Text, Text: `{"a":`}}},
		"filtered": {Stop: StopFilter, Parts: []Part{{Kind: Text, Text: `no`}}},
		"refused":  {Stop: StopEnd, Parts: []Part{{Kind: Refusal, Text: `no`}}},
		"a call":   {Stop: StopToolCalls, Parts: []Part{{Kind: Text, Text: `let me see`}, {Kind: Call, Call: &ToolCall{}}}},
	} {
		if err := r.CheckJSON(&Response{Choices: []Choice{c}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	words := &Response{Choices: []Choice{{Stop: StopEnd, Parts: []Part{{Kind: Text, Text: "words"}}}}}
	if err := r.CheckJSON(words); err == nil {
		t.Error("words are taken for JSON")
	}
	if err := (&Request{}).CheckJSON(words); err != nil {
		t.Error(err)
	}
	if dec := new(pieces); CheckJSON(&Request{}, dec) != StreamDecoder(dec) {
		t.Error("a stream is held against nothing")
	}
	two := &Response{Choices: []Choice{{Stop: StopEnd, Parts: []Part{{Kind: Text, Text: "```json\n{"}, {Kind: Reasoned, Text: "x"}, {Kind: Text, Text: "}\n```"}}}}}
	if err := r.CheckJSON(two); err != nil || two.Choices[0].Text() != "{}" || len(two.Choices[0].Parts) != 2 {
		t.Errorf("%v %+v", err, two.Choices[0].Parts)
	}
}
