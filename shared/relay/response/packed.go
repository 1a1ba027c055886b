package response

import (
	"bytes"
	"io"
	"net/http"

	"gateway/shared/egress"
)

// mostInflated limits the inflated size of a compressed response that is searched for usage, in
// bytes. It is inflated in pieces; of a stream only the end is retained.
const mostInflated = 64 << 20

// feedPacked buffers a compressed response from its beginning: it can only be inflated from
// there.
func (m *UsageTail) feedPacked(p []byte) {
	if len(m.Retained)+len(p) > maxPlain || !m.room(len(p)) {
		m.forget()
		return
	}
	m.Retained = append(m.Retained, p...)
}

// forget stops metering an unreadable response.
func (m *UsageTail) forget() {
	m.Stream, m.JSON, m.lines, m.events, m.Retained = false, false, false, false, nil
}

// Unpack inflates a response that was compressed without a request for it. It is called before
// the meter is read and does nothing for other responses. A response is not read if egress
// cannot inflate it, if its compression ratio is excessive, or if it is too large to buffer. Of
// a truncated one, the beginning is read. unread reports that the usage is unknown for one of
// these reasons.
func (m *UsageTail) Unpack() (unread bool) {
	if !m.packed {
		return false
	}
	kept, head := m.Retained, m.head.Clone()
	inner := *m
	inner.packed, inner.Retained, inner.Total = false, nil, 0
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
		if err != io.EOF && err != io.ErrUnexpectedEOF { // not truncated: it is damaged, or a decompression bomb
			m.forget()
			return true
		}
		*m = inner
		return false
	}
}
