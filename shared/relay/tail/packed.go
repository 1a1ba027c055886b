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

// Unpack makes a compressed answer readable that nobody asked to be compressed. It is
// called before the meter is read and does nothing for other answers. Nothing is read of an
// answer that egress cannot inflate, that is inflated out of all proportion, or that is too
// large to keep. Of one that broke off, the beginning is read. unread: the usage is unknown
// for one of these reasons.
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
