package openai

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/dialect/events"
	"gateway/shared/dialect/hosts"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// filter forwards a stream of this dialect and meters it. It removes the additions of the
// gateway's include_usage: the last chunk, and "usage":null in the others. An ordinary
// chunk is recognized by its first and last bytes and not parsed further. An unreadable
// event ends the stream: it is dropped, and the response counts as truncated.
type filter struct {
	o     chat.FilterOptions
	m     chat.Meter
	split events.Splitter
	out   events.Output
	d     wire.Decoder
	c     chunk
	usage usageReport // of all chunks so far
	shape pieceShape  // of the chunks that bring text

	shaper conformer    // of chunks that OpenAI's libraries cannot read
	start  pendingStart // the first piece of a call with a name that may continue

	answered bool // a choice was seen
	finished bool // a finish reason was seen
	failed   bool // an error event was seen
	passed   bool // the error event was given out
}

func newFilter(o *chat.FilterOptions) *filter {
	return &filter{o: *o}
}

// Meter implements chat.StreamFilter.
func (f *filter) Meter() chat.Meter { return f.m }

// Passed implements chat.StreamFilter.
func (f *filter) Passed() bool { return f.passed }

// Feed implements chat.StreamFilter.
func (f *filter) Feed(in []byte) ([]byte, error) {
	if f.failed {
		return nil, nil
	}
	if err := f.split.Feed(in); err != nil {
		return nil, err
	}
	f.split.Start(&f.out)
	var e events.Event
	for !f.failed && f.split.Next(&e) {
		f.event(&e)
	}
	return f.out.Bytes(), nil
}

// End implements chat.StreamFilter.
func (f *filter) End() []byte {
	var out []byte
	var e events.Event
	if !f.failed && f.split.Last(&e) {
		f.out.Reset(make([]byte, len(e.Raw)))
		f.event(&e)
		if f.failed && !f.passed { // a piece of an event: the stream was cut
			f.m.Err, f.failed = nil, false
		}
		if out = f.out.Bytes(); len(out) > 0 {
			out = append(bytes.TrimRight(out, "\r\n"), "\n\n"...)
		}
	}
	if f.start.data != nil && !f.failed {
		f.out.Reset(nil)
		f.releaseName()
		out = append(out, f.out.Bytes()...)
	}
	if !f.m.Complete && !f.failed && f.finished {
		// The host writes no [DONE], but clients wait for it.
		f.m.Complete = true
		out = append(out, "data: [DONE]\n\n"...)
	}
	return out
}

var (
	nullUsage   = []byte(`,"usage":null`)
	plainTail   = []byte(`"finish_reason":null}]`)
	obfuscation = []byte(`,"obfuscation":`)
	done        = []byte("[DONE]")
)

// ordinary reports whether data is a chunk with only text, by its last bytes:
// ...,"finish_reason":null}],"usage":null,"obfuscation":"..."} with the last two fields
// optional. null is the position of ,"usage":null, 0 if absent; end is the end of the
// choices.
func ordinary(data []byte) (null, end int, ok bool) {
	n := len(data) - 1
	if n < 0 || data[n] != '}' || data[0] != '{' {
		return 0, 0, false
	}
	core := data[:n]
	if n > 0 && core[n-1] == '"' {
		open := bytes.LastIndexByte(core[:n-1], '"')
		if open < 0 || !bytes.HasSuffix(core[:open], obfuscation) {
			return 0, 0, false
		}
		core = core[:open-len(obfuscation)]
	}
	if bytes.HasSuffix(core, nullUsage) {
		null = len(core) - len(nullUsage)
		core = core[:null]
	}
	return null, len(core), bytes.HasSuffix(core, plainTail)
}

// event passes one event on.
func (f *filter) event(e *events.Event) {
	if e.Data == nil {
		f.releaseName()
		f.out.Add(e.Raw) // a comment, a keep-alive
		return
	}
	if f.m.Started && !f.c.early && e.At >= 0 && f.start.data == nil {
		null, end, ok := ordinary(e.Data)
		text := 0
		if ok {
			text, ok = f.shape.text(e.Data[:end])
		}
		if ok {
			f.m.OutputBytes += int64(text)
			if text > 0 {
				f.m.Chunks++
			}
			if null > 0 && f.isUsageOnly() {
				f.drop(e, wire.Span{Start: null, End: null + len(nullUsage)})
			} else {
				f.out.Add(e.Raw)
			}
			return
		}
	}
	f.chunk(e)
}

// isUsageOnly reports whether usage in the stream concerns only the gateway.
func (f *filter) isUsageOnly() bool { return f.o.UsageAdded && !f.o.IncludeUsage }

// drop passes e on without the part of its data at cut.
func (f *filter) drop(e *events.Event, cut wire.Span) {
	if e.At < 0 { // the data has several lines: the event is written again
		data := append(append([]byte(nil), e.Data[:cut.Start]...), e.Data[cut.End:]...)
		f.out.Add(wire.AppendSSE(nil, string(e.Name), data))
		return
	}
	f.out.Add(e.Raw[:e.At+cut.Start])
	f.out.Add(e.Raw[e.At+cut.End:])
}

// chunk reads an event that is not an ordinary piece of text: the first ones, those with
// tool calls, finish reasons, usage or errors, and [DONE].
func (f *filter) chunk(e *events.Event) {
	if bytes.Equal(bytes.TrimSpace(e.Data), done) {
		f.releaseName()
		if !f.answered && !f.m.Complete {
			f.m.Err, f.failed = emptyResponse(), true
			return
		}
		f.m.Complete = true
		f.out.Add(e.Raw)
		return
	}
	c := &f.c
	if err := c.read(&f.d, e.Data); err != nil {
		f.releaseName()
		f.unreadable(e, err)
		return
	}
	f.meter(c)
	if _, end, ok := ordinary(e.Data); ok {
		f.shape.learn(e.Data, end, c)
	}
	switch {
	case f.failed && c.err != nil && !c.inside:
		f.releaseName()
		f.out.Add(e.Raw)
		f.passed = true
	case f.failed: // a client would take the chunk for an answer
	case f.swallows(c):
	case f.holdName(e, c):
	case f.foreign(c):
		f.conform(e)
	case c.usageAt.Absent() || !f.isUsageOnly():
		f.out.Add(e.Raw)
	default:
		f.drop(e, c.usageCut)
	}
}

// foreign reports whether OpenAI's libraries cannot read a chunk as it is.
func (f *filter) foreign(c *chunk) bool {
	for i := range c.choices {
		ch := &c.choices[i]
		if ch.parts != nil || f.o.Strict && !ownFinish(ch.finish) || ch.function != nil && ch.function.object {
			return true
		}
		for j := range ch.calls {
			if !ch.calls[j].hasIndex || ch.calls[j].object {
				return true
			}
		}
	}
	return false
}

// conform forwards what OpenAI's libraries can read of a chunk.
func (f *filter) conform(e *events.Event) {
	f.shaper.strict, f.shaper.stream = f.o.Strict, true
	f.emit(wire.AppendSSE(nil, string(e.Name), f.shaper.rewrite(f.visible(e))))
}

// emit forwards an event that was written again.
func (f *filter) emit(event []byte) {
	f.out.Grow(len(event))
	f.out.Add(event)
}

// visible is the data of an event without usage that concerns only the gateway.
func (f *filter) visible(e *events.Event) []byte {
	cut := f.c.usageCut
	if !f.isUsageOnly() || f.c.usageAt.Absent() {
		return e.Data
	}
	return append(append([]byte(nil), e.Data[:cut.Start]...), e.Data[cut.End:]...)
}

// unreadable ends the stream at an event that is not a chunk. An empty event is a
// keep-alive, and data after a complete response is dropped.
func (f *filter) unreadable(e *events.Event, cause error) {
	switch {
	case len(bytes.TrimSpace(e.Data)) == 0:
		f.out.Add(e.Raw)
	case !f.m.Complete:
		f.m.Err, f.failed = upstream.UnreadableFault(cause), true
	}
}

// swallows reports whether a chunk is not for the client. That is the chunk that only
// brings usage and, if strict, chunks without any delta: content filters send those, and
// clients stumble over them.
func (f *filter) swallows(c *chunk) bool {
	if len(c.choices) == 0 {
		return f.isUsageOnly() && c.usage.known() || f.o.Strict && !c.usage.known() && c.err == nil
	}
	if !f.o.Strict {
		return false
	}
	for i := range c.choices {
		if c.choices[i].body || c.choices[i].finish != nil {
			return false
		}
	}
	return true
}

// meter records what a chunk reports.
func (f *filter) meter(c *chunk) {
	if c.err != nil {
		f.m.Err = inBandError(c.err)
		f.failed = true
		return
	}
	if f.m.ID == "" {
		f.m.ID = string(c.id)
	}
	if len(c.model) > 0 && f.m.Model != string(c.model) {
		f.m.Model = string(c.model)
	}
	if c.usage.known() {
		f.usage.merge(&c.usage)
		f.usage.classes(&f.m)
	}
	if len(c.tier) > 0 {
		f.m.Mode = pricing.ModeOf(string(c.tier))
	}
	text := 0
	f.answered = f.answered || len(c.choices) > 0
	for i := range c.choices {
		ch := &c.choices[i]
		text += ch.size()
		if ch.finish != nil {
			if _, failed := hosts.StopOf(ch.finish); failed {
				f.m.Finish = string(ch.finish)
				f.m.Err, f.failed = failedStop(f.m.Finish), true
				return
			}
			f.finished = true
			f.m.Finish = string(ch.finish)
		}
	}
	if text > 0 || f.finished {
		f.m.Started = true
	}
	f.m.OutputBytes += int64(text)
	if text > 0 {
		f.m.Chunks++
	}
}

// Some hosts send the name of a call in pieces. Of OpenAI's libraries one joins names and
// another replaces them, so only a complete name in the first piece reaches clients of
// both. The first piece of a call waits for the next chunk, which usually begins the
// arguments.

// pendingStart is the first piece of a call that waits; data is nil while none does.
type pendingStart struct {
	event, name string // of the server-sent event, and of the call
	data        []byte
	choice, key int
}

// startsCall reports whether a chunk only begins a call, without arguments.
func (c *chunk) startsCall() bool {
	if len(c.choices) != 1 || c.usage.known() {
		return false
	}
	ch := &c.choices[0]
	if len(ch.calls) != 1 || ch.finish != nil || ch.size() != inside(ch.calls[0].name) {
		return false
	}
	call := &ch.calls[0]
	return len(call.id) > 2 && len(call.name) > 2
}

// continued returns the further piece of the name of the call that waits; empty if the chunk
// has none.
func (h *pendingStart) continued(c *chunk) string {
	if h.data == nil || len(c.choices) != 1 || c.choices[0].index != h.choice || len(c.choices[0].calls) != 1 {
		return ""
	}
	call := &c.choices[0].calls[0]
	if call.hasIndex && call.index != h.key || len(call.id) > 2 && len(call.args) > 2 {
		return ""
	}
	if name := unquote(call.name); joinedName(h.name, name) != h.name {
		return name
	}
	return ""
}

// holdName lets the first piece of a call wait, or joins its name with the piece that a
// chunk brings. It reports whether nothing is left of the chunk to forward.
func (f *filter) holdName(e *events.Event, c *chunk) bool {
	if piece := f.start.continued(c); piece != "" {
		f.start.name = joinedName(f.start.name, piece)
		if len(c.choices[0].calls[0].args) <= 2 && c.choices[0].finish == nil {
			return true
		}
		f.releaseName()
		f.shaper.strict, f.shaper.stream, f.shaper.rename = f.o.Strict, true, true
		f.emit(wire.AppendSSE(nil, string(e.Name), f.shaper.rewrite(f.visible(e))))
		f.shaper.rename = false
		return true
	}
	f.releaseName()
	if !c.startsCall() {
		return false
	}
	call := &c.choices[0].calls[0]
	data := f.visible(e)
	if f.foreign(c) {
		f.shaper.strict, f.shaper.stream = f.o.Strict, true
		data = f.shaper.rewrite(data)
	}
	f.start = pendingStart{string(e.Name), unquote(call.name), append([]byte(nil), data...), c.choices[0].index, call.index}
	return true
}

// releaseName forwards the first piece of a call, with the complete name.
func (f *filter) releaseName() {
	if f.start.data == nil {
		return
	}
	n := conformer{rename: true, name: f.start.name}
	f.emit(wire.AppendSSE(nil, f.start.event, n.rewrite(f.start.data)))
	f.start.data = nil
}
