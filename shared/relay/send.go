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

// readsOn allows reads of the client's body while the response is sent, because a provider may
// respond before it has the complete body.
func (r *reply) readsOn() {
	_ = http.NewResponseController(r.w).EnableFullDuplex() // other writers have read it before
}

// write sends bytes. If the client is gone it only counts them.
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

// flushWhenWaiting buffers writes while more bytes of the provider are available, if that is
// known, and flushes them before waiting for the next ones. So a fast stream is sent in few
// pieces, and a slow one event by event.
func (r *reply) flushWhenWaiting(body io.Reader) {
	r.gathers = egress.BeforeWaiting(body, r.flushWritten)
}

// flushSoon flushes pending writes, immediately or before the next wait.
func (r *reply) flushSoon() {
	if r.written = true; !r.gathers {
		r.flushWritten()
	}
}

// flushWritten flushes the writes that flushSoon deferred. The time for that is not counted as
// the provider's.
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

// clientGone records that the client has disconnected.
func (r *reply) clientGone() {
	if r.gone {
		return
	}
	r.gone = true
	r.from.Leave()
}
