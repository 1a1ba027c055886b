package relay

import (
	"io"
	"net/http"

	"gateway/shared/egress"
)

// head sends the status line once.
func (r *reply) head(status int) {
	if r.headSent {
		return
	}
	r.headSent = true
	r.log.Head(status)
	r.w.WriteHeader(status)
}

// upgraded records that the client's connection has become a WebSocket.
func (r *reply) upgraded() {
	r.headSent, r.firstByte = true, r.from.Since()
	r.log.Head(http.StatusSwitchingProtocols)
}

// readsOn lets the client's body be read while the answer goes out, because a provider may
// begin to answer before it has the whole body.
func (r *reply) readsOn() {
	_ = http.NewResponseController(r.w).EnableFullDuplex() // who cannot has read it before
}

// write sends bytes. When the client is gone it only counts them.
func (r *reply) write(p []byte) {
	if len(p) == 0 || r.gone {
		return
	}
	if r.firstByte == 0 {
		r.firstByte = r.from.Since()
	}
	if _, err := r.w.Write(p); err != nil {
		r.clientGone()
	}
}

func (r *reply) flush() {
	if r.gone {
		return
	}
	if f, ok := r.w.(http.Flusher); ok {
		f.Flush()
	}
}

// flushWhenWaiting gathers what is written while more bytes of the provider are there,
// where that can be told, and flushes it before waiting for the next ones. So a fast stream
// goes out in few pieces, and a slow one event by event.
func (r *reply) flushWhenWaiting(body io.Reader) {
	r.gathers = egress.BeforeWaiting(body, r.flushWritten)
}

// flushSoon flushes what was written, at once or before the next wait.
func (r *reply) flushSoon() {
	if r.written = true; !r.gathers {
		r.flushWritten()
	}
}

// flushWritten flushes what flushSoon left. The time that takes is not the
// provider's.
func (r *reply) flushWritten() {
	if !r.written {
		return
	}
	r.written = false
	if !r.gathers {
		r.flush()
		return
	}
	t := r.from.Now()
	r.flush()
	r.flushing += r.from.Now().Sub(t)
}

// clientGone notes that the client went.
func (r *reply) clientGone() {
	if r.gone {
		return
	}
	r.gone = true
	r.from.Leave()
}
