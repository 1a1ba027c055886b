package tools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// held is the response to one part of a run: an http.ResponseWriter. Events of a stream are
// forwarded as they arrive if event is set; everything else is buffered.
type held struct {
	header  http.Header
	status  int
	limit   int // bytes of the buffer
	tooLong bool
	body    bytes.Buffer
	event   func(w *held, data []byte) error // nil: events are not read
	events  bool                             // it is a stream of events
	parser  wire.SSEParser
}

var errTooLong = errors.New("toolrun: the response is too long")

// Header implements http.ResponseWriter.
func (w *held) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *held) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
		w.events = w.event != nil && status < 300 && strings.HasPrefix(w.header.Get("Content-Type"), "text/event-stream")
	}
}

// Flush implements http.Flusher. It does nothing: events are forwarded as soon as they are
// complete.
func (w *held) Flush() {}

// Write implements io.Writer.
func (w *held) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.events {
		if err := w.parser.Feed(p, w.handOn); err != nil {
			w.tooLong = true
			return 0, err
		}
		return len(p), nil
	}
	if w.body.Len()+len(p) > w.limit {
		w.tooLong = true
		return 0, errTooLong
	}
	return w.body.Write(p)
}

func (w *held) handOn(_ string, data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return nil // the end of streams in other dialects
	}
	return w.event(w, data)
}

// end forwards a final event without a trailing blank line.
func (w *held) end() {
	if w.events && w.parser.End(w.handOn) != nil {
		w.tooLong = true
	}
}

// fault returns the fault in an error response.
func (w *held) fault() *fault.Fault {
	var told struct {
		Error struct {
			Message json.RawMessage `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(w.body.Bytes(), &told) // another format has no message
	code := fault.Code(cmp.Or(w.header.Get("X-Gateway-Error-Code"), string(fault.ProviderError)))
	f := fault.New(code, "", cmp.Or(fault.Clip(text(told.Error.Message), 2000), "The request for a turn of the model was rejected"))
	f.StatusCode = cmp.Or(w.status, http.StatusBadGateway)
	f.Source = fault.SourceProvider
	return f
}
