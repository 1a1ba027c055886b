package tail

import (
	"bytes"
	"io"
	"net/http"

	"gateway/shared/egress"
)

// mostInflated bounds what is made of a compressed answer to find its usage, in
// bytes. It is read in pieces; of a stream the end alone is kept.
const mostInflated = 64 << 20

// feedPacked keeps what came compressed, from its beginning: nothing can be read of
// it from elsewhere.
func (m *Meter) feedPacked(p []byte) {
	if len(m.Kept)+len(p) > most || !m.room(len(p)) {
		m.forget()
		return
	}
	m.Kept = append(m.Kept, p...)
}

// forget gives up to meter what cannot be read.
func (m *Meter) forget() {
	m.Stream, m.JSON, m.lines, m.events, m.Kept = false, false, false, false, nil
}

// Unpack makes what came compressed readable, though nobody asked for it to be: it
// comes before what the meter has kept is read, and does nothing for other answers.
// What is compressed in a way that egress does not read, out of all proportion, or
// too large to be kept, tells nothing. Of what broke off, what came is read. unread
// tells that the usage is not known for that.
func (m *Meter) Unpack() (unread bool) {
	if !m.packed {
		return false
	}
	kept, head := m.Kept, m.head.Clone()
	inner := *m
	inner.packed, inner.Kept, inner.Total = false, nil, 0
	resp := &http.Response{Header: head, Body: io.NopCloser(bytes.NewReader(kept))}
	if !m.JSON && !m.Stream || egress.Inflate(resp, mostInflated) != nil {
		m.forget()
		return true
	}
	var piece [8 << 10]byte
	for {
		n, err := resp.Body.Read(piece[:])
		inner.Feed(piece[:n])
		if err == nil {
			continue
		}
		inner.Cut = inner.Cut || err != io.EOF
		if err != io.EOF && err != io.ErrUnexpectedEOF { // no answer that was cut: it is damaged, or a bomb
			m.forget()
			return true
		}
		*m = inner
		return false
	}
}
