package mcp

import (
	"bytes"
	"strconv"
	"time"
)

// position tracks how far an event stream was read: the id of the last complete event and the
// reconnection time.
type position struct {
	id        string
	wait      time.Duration
	line      []byte // current line, up to maxLine bytes
	pendingID string // id of the incomplete event
	pending   bool   // the incomplete event has an id
}

// maxLine is the length of lines that are parsed. Longer event ids are ignored.
const maxLine = 1 << 10

// feed parses the next bytes of the stream.
func (p *position) feed(in []byte) {
	for len(in) > 0 {
		end := bytes.IndexAny(in, "\r\n")
		part := in
		if end >= 0 {
			part = in[:end]
		}
		if room := maxLine - len(p.line); room > 0 {
			p.line = append(p.line, part[:min(len(part), room)]...)
		}
		if end < 0 {
			return
		}
		after := in[end] == '\r' && end+1 < len(in) && in[end+1] == '\n'
		p.endLine()
		if in = in[end+1:]; after {
			in = in[1:]
		}
	}
}

// endLine parses a line. A CRLF that was split between two reads looks like an additional empty
// line, which may end an event early; the event id is complete by then.
func (p *position) endLine() {
	line := p.line
	p.line = p.line[:0]
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch {
	case len(line) == 0:
		if p.pending {
			p.id, p.pending = p.pendingID, false
		}
	case string(name) == "id" && len(line) < maxLine && bytes.IndexByte(value, 0) < 0:
		p.pendingID, p.pending = string(value), true
	case string(name) == "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			p.wait = time.Duration(ms) * time.Millisecond
		}
	}
}
