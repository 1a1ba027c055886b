package openai

import (
	"bytes"
	"net/http"
	"strconv"
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
	"gateway/shared/dialect/jsonfield"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Completions is the dialect of POST /completions. Its requests can be sent to providers of
// chats. A chat cannot be sent to a provider that only completes texts.
type Completions struct{}

var _ chat.TwoWayDialect = Completions{}

// Name implements chat.Dialect.
func (Completions) Name() string { return "openai.completions" }

// Check implements chat.RequestReader.
func (Completions) Check(body []byte, c *chat.Checked) error { return completionChecker.check(body, c) }

// defaultCompletionTokens is the documented default of max_tokens.
const defaultCompletionTokens = 16

// DecodeRequest implements chat.RequestReader.
func (Completions) DecodeRequest(body []byte) (*chat.Request, error) {
	c := &chat.Completion{Prompts: 1}
	q := requestDecoder{d: wire.NewDecoder(body), r: &chat.Request{Dialect: "openai.completions", Completion: c}}
	d := q.d
	for key := range d.Object {
		if q.absent() {
			continue
		}
		switch string(key) {
		case "model":
			q.r.Model = d.Str()
		case "prompt":
			q.prompt()
		case "echo":
			c.Echo = d.Bool()
		case "suffix":
			c.Suffix = d.Str()
		case "best_of":
			c.BestOf = chat.Some(d.Int())
		case "logprobs":
			c.Logprobs = chat.Some(d.Int())
		case "max_tokens":
			q.r.MaxTokens = chat.Some(d.Int())
		default:
			q.sampling(key)
		}
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	if !q.r.MaxTokens.Set {
		q.r.MaxTokens = chat.Some[int64](defaultCompletionTokens)
	}
	q.r.MaxTokensField = "max_tokens"
	return q.r, nil
}

// prompt makes one message of the user for each prompt.
func (q *requestDecoder) prompt() {
	d := q.d
	add := func(text string, i int) {
		q.r.Messages = append(q.r.Messages, chat.Message{Role: chat.User, IsString: true, At: i, Parts: []chat.Part{{Kind: chat.Text, Text: text}}})
	}
	if d.Kind() == wire.KindString {
		add(d.Str(), 0)
		return
	}
	n := 0
	for i := range d.Array {
		if d.Kind() != wire.KindString {
			d.Fail("is a list of tokens, which only the model's own provider can read; send text")
			return
		}
		add(d.Str(), i)
		n++
	}
	if d.Err() == nil && n == 0 {
		d.Fail("must contain a prompt")
	}
	q.r.Completion.Prompts = n
}

// EncodeResponse implements chat.ResponseWriter.
func (Completions) EncodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	e := newEnvelope(r.ID, completionPrefix, r.Model, r.Created, o)
	dst = e.append(dst, completionObject, o)
	dst = append(dst, `,"choices":[`...)
	for i := range r.Choices {
		c := &r.Choices[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"index":`...)
		dst = strconv.AppendInt(dst, int64(c.Index), 10)
		dst = append(dst, `,"text":`...)
		dst = wire.AppendJSONString(dst, echo(o)+c.Text())
		dst = append(dst, `,"logprobs":null,"finish_reason":"`...)
		f := completionFinish(c.Stop)
		dst = append(dst, f...)
		dst = append(dst, '"')
		dst = appendNative(dst, c.Native, f, o)
		dst = append(dst, '}')
	}
	dst = append(dst, ']')
	return appendTrailer(dst, r, o)
}

// echo is the prompt, if the client wants it before the response.
func echo(o *chat.Options) string {
	r := o.Request
	if r == nil || r.Completion == nil || !r.Completion.Echo || len(r.Messages) == 0 {
		return ""
	}
	return r.Messages[0].Text()
}

// completionFinish is the finish_reason of a text completion: stop, length or
// content_filter.
func completionFinish(s chat.StopReason) string {
	if s == chat.StopToolCalls {
		return "stop"
	}
	return s.OpenAI()
}

// NewStreamEncoder implements chat.ResponseWriter.
func (Completions) NewStreamEncoder(o *chat.Options) chat.StreamEncoder {
	return &completionEncoder{o: *o}
}

// completionEncoder writes the chunks of a text completion.
type completionEncoder struct {
	o    chat.Options
	chat streamEncoder // gives head, tail and usage
	echo bool
}

func (s *completionEncoder) start(id, model string, created int64) {
	if s.chat.head != nil {
		return
	}
	e := newEnvelope(id, completionPrefix, model, created, &s.o)
	s.chat.o = s.o
	s.chat.head = e.append([]byte("data: "), completionObject, &s.o)
	s.chat.head = append(s.chat.head, `,"choices":[`...)
	s.chat.tail = append(s.chat.tail, ']')
	if s.o.IncludeUsage {
		s.chat.tail = append(s.chat.tail, `,"usage":null`...)
	}
	s.chat.tail = append(s.chat.tail, "}\n\n"...)
}

func (s *completionEncoder) chunk(dst []byte, choice int, text []byte, finish, native string) []byte {
	s.start("", "", 0)
	dst = append(dst, s.chat.head...)
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(choice), 10)
	dst = append(append(dst, `,"text":`...), text...)
	dst = append(dst, `,"logprobs":null,"finish_reason":`...)
	dst = jsonfield.AppendOrNull(dst, finish)
	dst = appendNative(dst, native, finish, &s.o)
	dst = append(dst, '}')
	return append(dst, s.chat.tail...)
}

// Append implements chat.StreamEncoder.
func (s *completionEncoder) Append(dst []byte, d *chat.Delta) []byte {
	switch d.Kind {
	case chat.DeltaStart:
		s.start(d.ID, d.Model, d.Created)
		if d.Usage != nil {
			s.chat.usage = *d.Usage
		}
	case chat.DeltaText:
		dst = s.echoed(dst)
		dst = s.chunk(dst, d.Choice, d.JSON, "", "")
	case chat.DeltaStop:
		dst = s.echoed(dst)
		dst = s.chunk(dst, d.Choice, []byte(`""`), completionFinish(d.Stop), d.Native)
	case chat.DeltaUsage:
		s.chat.usage = *d.Usage
	}
	return dst
}

// echoed writes the prompt in front of the first text.
func (s *completionEncoder) echoed(dst []byte) []byte {
	if s.echo {
		return dst
	}
	s.echo = true
	if text := echo(&s.o); text != "" {
		dst = s.chunk(dst, 0, wire.AppendJSONString(nil, text), "", "")
	}
	return dst
}

// Finish implements chat.StreamEncoder.
func (s *completionEncoder) Finish(dst []byte) []byte {
	s.start("", "", 0)
	return s.chat.Finish(dst)
}

// Error implements chat.StreamEncoder.
func (s *completionEncoder) Error(dst []byte, f *fault.Fault) []byte {
	return appendStreamError(dst, f, &s.o)
}

// AppendError implements chat.ErrorWriter.
func (Completions) AppendError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return appendError(dst, f, o)
}

// AppendStreamError implements chat.ErrorWriter.
func (Completions) AppendStreamError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return appendStreamError(dst, f, o)
}

// EncodeRequest implements chat.RequestWriter. Text completions go to providers only as the
// client wrote them.
func (Completions) EncodeRequest(dst []byte, _ *chat.Request, t *chat.Traits, _ *chat.Loss) ([]byte, error) {
	return dst, fault.Newf(fault.UnsupportedOperation, "", "chat is not supported by %s for this model, which only completes texts", t.Provider)
}

// DecodeResponse implements chat.ResponseReader.
func (Completions) DecodeResponse(body []byte, t *chat.Traits) (*chat.Response, error) {
	return Chat{}.DecodeResponse(body, t)
}

// NewStreamDecoder implements chat.ResponseReader.
func (Completions) NewStreamDecoder(*chat.Traits) chat.StreamDecoder { return newStreamDecoder() }

// DecodeError implements chat.ErrorReader.
func (Completions) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// MeterResponse implements chat.Passer.
func (Completions) MeterResponse(body []byte) chat.Meter { return meterPlain(body, "choices") }

// NewStreamFilter implements chat.Passer.
func (Completions) NewStreamFilter(o *chat.FilterOptions) chat.StreamFilter { return newFilter(o) }

// appendAnnotations writes the sources with an address of a response's texts, or nothing if
// there are none. Their positions count from the beginning of the complete content.
func appendAnnotations(dst []byte, parts []chat.Part) []byte {
	cited := false
	for i := range parts {
		cited = cited || parts[i].Kind == chat.Text && len(parts[i].Citations) > 0
	}
	if !cited {
		return dst
	}
	start := len(dst)
	dst = append(dst, `,"annotations":[`...)
	none := len(dst)
	offset := 0
	for i := range parts {
		p := &parts[i]
		if p.Kind != chat.Text {
			continue
		}
		length := utf8.RuneCountInString(p.Text)
		behind := len(dst)
		if behind > none && len(p.Citations) > 0 {
			dst = append(dst, ',')
		}
		comma := len(dst)
		dst = citation.Join(dst, p.Citations, func(dst []byte, c *citation.Citation) []byte { return c.AppendNested(dst, offset, length) })
		if len(dst) == comma {
			dst = dst[:behind]
		}
		offset += length
	}
	if len(dst) == none {
		return dst[:start]
	}
	return append(dst, ']')
}

// noted is what annotations of a streamed choice need to know about its text. Lengths are
// in code points.
type noted struct {
	textLength int // text so far
	block      int // block of the last text
	start      int // where it began
	waiting    []citation.Citation
}

// notes finds the notes of a choice.
func (s *streamEncoder) notes(choice int) *noted {
	if s.noted == nil {
		s.noted = s.first[:0] // most responses have one choice
	}
	for len(s.noted) <= choice {
		s.noted = append(s.noted, noted{})
	}
	return &s.noted[choice]
}

// countText counts a piece of text.
func (s *streamEncoder) countText(dst []byte, d *chat.Delta) []byte {
	if d.Choice >= len(s.noted) || s.noted[d.Choice].block != d.Block {
		dst = s.enter(dst, d)
	}
	s.noted[d.Choice].textLength += citation.Length(d.JSON)
	return dst
}

// enter notes which block of a choice is written.
func (s *streamEncoder) enter(dst []byte, d *chat.Delta) []byte {
	if n := s.notes(d.Choice); n.block != d.Block {
		dst = s.annotate(dst, d.Choice)
		n.block, n.start = d.Block, n.textLength
	}
	return dst
}

// cited returns a source of the text: at once if its place is known, otherwise when its
// block has ended.
func (s *streamEncoder) cited(dst []byte, d *chat.Delta) []byte {
	dst = s.block(dst, d, "citation")
	c := citation.Read(d.JSON)
	if c.URL == "" {
		return dst
	}
	dst = s.enter(dst, d)
	n := s.notes(d.Choice)
	if !c.Placed {
		n.waiting = append(n.waiting, c)
		return dst
	}
	return s.annotation(dst, d.Choice, &c)
}

// annotate returns the sources that waited for the end of their block.
func (s *streamEncoder) annotate(dst []byte, choice int) []byte {
	if choice >= len(s.noted) {
		return dst
	}
	n := &s.noted[choice]
	for i := range n.waiting {
		dst = s.annotation(dst, choice, &n.waiting[i])
	}
	n.waiting = n.waiting[:0]
	return dst
}

func (s *streamEncoder) annotation(dst []byte, choice int, c *citation.Citation) []byte {
	n := s.notes(choice)
	dst = s.open(dst, choice)
	dst = append(dst, `"annotations":[`...)
	dst = c.AppendNested(dst, n.start, n.textLength-n.start)
	dst = append(dst, ']')
	return s.close(dst)
}

// annotations puts the sources that are beside a content on its text.
func annotations(raw []byte, text []chat.Part) {
	if raw == nil || len(text) != 1 || len(bytes.TrimSpace(raw)) <= 2 {
		return
	}
	text[0].Citations = bytes.Clone(raw)
}
