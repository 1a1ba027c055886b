package mcp

import (
	"bytes"
	"strconv"
	"time"
)

// position is how far a stream has been read: the name of its last whole event, and how
// long to wait before reading on.
type position struct {
	id     string
	wait   time.Duration
	line   []byte // the line so far, up to maxMark
	coming string // of the event so far
	named  bool   // it has a name
}

// maxMark bounds the lines that say something here. Longer ones are not kept: names of
// that length are none.
const maxMark = 1 << 10

// feed takes bytes of the stream as they come.
func (p *position) feed(in []byte) {
	for len(in) > 0 {
		end := bytes.IndexAny(in, "\r\n")
		part := in
		if end >= 0 {
			part = in[:end]
		}
		if room := maxMark - len(p.line); room > 0 {
			p.line = append(p.line, part[:min(len(part), room)]...)
		}
		if end < 0 {
			return
		}
		after := in[end] == '\r' && end+1 < len(in) && in[end+1] == '\n'
		p.take()
		if in = in[end+1:]; after {
			in = in[1:]
		}
	}
}

// take reads a line. A line end that was cut in two looks like an additional empty line,
// which may end an event too early; the event's name was complete by then.
func (p *position) take() {
	line := p.line
	p.line = p.line[:0]
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch {
	case len(line) == 0:
		if p.named {
			p.id, p.named = p.coming, false
		}
	case string(name) == "id" && len(line) < maxMark && bytes.IndexByte(value, 0) < 0:
		p.coming, p.named = string(value), true
	case string(name) == "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			p.wait = time.Duration(ms) * time.Millisecond
		}
	}
}
