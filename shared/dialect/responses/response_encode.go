package responses

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
	"gateway/shared/wire"
)

// encodeResponse writes a response. A client of this dialect reads one response.
func encodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	c := &chat.Choice{}
	if len(r.Choices) > 0 {
		c = &r.Choices[0]
	}
	e := newEnvelope(r.ID, r.Model, r.Created, o)
	s := outcomeOf(c.Stop, c.Native)
	s.usage, s.tier = &r.Usage, r.ServiceTier
	w := itemWriter{e: e, logprobs: logprobsOf(c.Logprobs)}
	for i := range c.Parts {
		w.part(&c.Parts[i])
	}
	w.close(s.status)
	return e.append(dst, w.b, &s)
}

// logprobsOf is the list inside of a logprobs object of chat completions; nil if
// there is none.
func logprobsOf(object json.RawMessage) (list []byte) {
	d := wire.NewDecoder(object)
	if d.Kind() != wire.KindObject {
		return nil
	}
	for key := range d.Object {
		if string(key) == "content" && d.Kind() == wire.KindArray {
			list = d.Raw()
		}
	}
	return list
}

// itemWriter writes the output items of a complete response.
type itemWriter struct {
	e        *envelope
	b        []byte
	n        int // items written
	logprobs []byte

	message bool // a message item is open
	parts   int  // of the open message
	status  int  // where the status of the last item is written, -1: it has none
}

// begin begins an item, up to its id.
func (w *itemWriter) begin(prefix, kind string) {
	if w.n > 0 {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, `{"id":`...)
	w.b = wire.AppendJSONString(w.b, w.e.itemID(prefix, w.n))
	w.b = append(w.b, `,"type":"`+kind+`"`...)
	w.n++
	w.status = -1
}

// writeStatus writes a status that close may still change.
func (w *itemWriter) writeStatus() {
	w.b = append(w.b, `,"status":`...)
	w.status = len(w.b)
	w.b = append(w.b, completedItem...)
}

const (
	completedItem  = `"completed"`
	incompleteItem = `"incomplete"`
)

func (w *itemWriter) part(p *chat.Part) {
	switch p.Kind {
	case chat.Text, chat.Refusal:
		w.text(p)
	case chat.Reasoned, chat.RedactedReasoned:
		w.endMessage()
		w.reasoned(p)
	case chat.Image:
		w.image(p.Media)
	case chat.Call:
		w.endMessage()
		w.call(p.Call)
	case chat.Foreign:
		if p.Origin == name {
			w.endMessage()
			w.item(p.Raw)
		}
	}
}

// item writes an item of this dialect as it was received.
func (w *itemWriter) item(raw []byte) {
	if w.n > 0 {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, raw...)
	w.n++
	w.status = -1
}

func (w *itemWriter) text(p *chat.Part) {
	if p.Text == "" {
		return
	}
	if !w.message {
		w.begin("msg", "message")
		w.writeStatus()
		w.b = append(w.b, `,"role":"assistant","content":[`...)
		w.message, w.parts = true, 0
	}
	if w.parts++; w.parts > 1 {
		w.b = append(w.b, ',')
	}
	raw := wire.AppendJSONString(nil, p.Text)
	var logprobs []byte
	if p.Kind == chat.Text {
		logprobs, w.logprobs = w.logprobs, nil
	}
	w.b = appendContent(w.b, p.Kind == chat.Refusal, raw, logprobs, annotations(p))
}

// annotations are those sources of a text that have an address, with commas between.
func annotations(p *chat.Part) []byte {
	if len(p.Citations) == 0 {
		return nil
	}
	length := utf8.RuneCountInString(p.Text)
	return citation.Join(nil, p.Citations, func(dst []byte, c *citation.Citation) []byte { return c.AppendFlat(dst, 0, length) })
}

// appendContent writes a part of a message; raw is its text as a JSON string,
// notes are its annotations with commas between.
func appendContent(dst []byte, refusal bool, raw, logprobs, notes []byte) []byte {
	if refusal {
		dst = append(dst, `{"type":"refusal","refusal":`...)
		return append(append(dst, raw...), '}')
	}
	dst = append(dst, `{"type":"output_text","text":`...)
	dst = append(dst, raw...)
	dst = append(dst, `,"annotations":[`...)
	dst = append(dst, notes...)
	dst = append(dst, `],"logprobs":`...)
	if logprobs == nil {
		dst = append(dst, "[]"...)
	}
	return append(append(dst, logprobs...), '}')
}

func (w *itemWriter) endMessage() {
	if w.message {
		w.b = append(w.b, `]}`...)
		w.message = false
	}
}

func (w *itemWriter) reasoned(p *chat.Part) {
	encrypted := sealSigned(p, w.e.o.Origin)
	if p.Text == "" && encrypted == "" {
		return
	}
	w.begin("rs", "reasoning")
	var raw []byte
	if p.Text != "" {
		raw = wire.AppendJSONString(nil, p.Text)
	}
	w.b = append(appendReasoning(w.b, raw, encrypted), '}')
}

// appendReasoning writes the fields of a reasoning item that follow its id and type. raw
// is the summary as a JSON string, nil if there is none.
func appendReasoning(dst, raw []byte, encrypted string) []byte {
	dst = append(dst, `,"summary":[`...)
	if raw != nil {
		dst = append(dst, `{"type":"summary_text","text":`...)
		dst = append(append(dst, raw...), '}')
	}
	dst = append(dst, ']')
	if encrypted != "" {
		dst = append(dst, `,"encrypted_content":`...)
		dst = wire.AppendJSONString(dst, encrypted)
	}
	return dst
}

func (w *itemWriter) call(c *chat.ToolCall) {
	tool := w.e.o.ToolName(c.Name)
	if w.shell(c, tool) {
		return
	}
	args := c.Arguments
	if c.Custom || w.e.o.Request.CustomTool(tool) {
		if !c.Custom {
			args = chat.UnwrapText(args)
		}
		w.begin("ctc", "custom_tool_call")
		w.writeStatus()
		w.b = append(w.b, `,"input":`...)
	} else {
		if args == "" {
			args = "{}"
		}
		w.begin("fc", "function_call")
		w.writeStatus()
		w.b = append(w.b, `,"arguments":`...)
	}
	w.b = wire.AppendJSONString(w.b, args)
	w.b = append(w.b, `,"call_id":`...)
	w.b = wire.AppendJSONString(w.b, c.ID)
	w.b = append(appendToolName(w.b, w.e.o.Request, tool), '}')
}

// close ends the list. If the response is not complete, neither is its last item.
func (w *itemWriter) close(status string) {
	w.endMessage()
	if status == "completed" || w.n == 0 || w.status < 0 {
		return
	}
	rest := string(w.b[w.status+len(completedItem):])
	w.b = append(append(w.b[:w.status], incompleteItem...), rest...)
}

// An image that a model returns is an image_generation_call item: its result is base64.

// takesImage reports whether an image has a place in an item.
func takesImage(m *chat.Media) bool { return m.Data != "" }

// appendImage writes the fields of an image item that follow its type. Without data the image
// is still being made.
func appendImage(dst []byte, m *chat.Media) []byte {
	if m == nil {
		return append(dst, `,"status":"in_progress","result":null`...)
	}
	dst = append(dst, `,"status":"completed","output_format":`...)
	dst = wire.AppendJSONString(dst, strings.TrimPrefix(m.MIME, "image/"))
	return wire.AppendJSONString(append(dst, `,"result":`...), m.Data)
}

// image writes an image of a complete response.
func (w *itemWriter) image(m *chat.Media) {
	if takesImage(m) {
		w.endMessage()
		w.begin("ig", "image_generation_call")
		w.b = append(appendImage(w.b, m), '}')
	}
}

// image writes the events of an image of a stream.
func (s *streamEncoder) image(dst []byte, d *chat.Delta) []byte {
	m := chat.ReadImage(d.Text())
	if !takesImage(m) {
		return dst
	}
	it := &openItem{kind: imageItem, ended: true}
	dst = s.open(s.release(dst), it, "ig")
	for _, kind := range [...]string{"response.image_generation_call.in_progress", "response.image_generation_call.completed"} {
		dst = append(of(s.event(dst, kind), it), "}\n\n"...)
	}
	it.media = m
	return s.end(dst, it, "completed")
}

// image returns the part of an image item that a client sends back; ok is false without an image.
func (it *item) image() (p chat.Part, ok bool) {
	if it.kind != "image_generation_call" || it.resultData == "" {
		return p, false
	}
	mime := ""
	if it.outputFormat != "" {
		mime = "image/" + it.outputFormat
	}
	m := chat.ReadImage("data:" + mime + ";base64," + it.resultData)
	return chat.Part{Kind: chat.Image, Media: m, At: place(it.at, -1)}, m.Data != ""
}
