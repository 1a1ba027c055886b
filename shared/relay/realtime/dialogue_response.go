package realtime

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	wires "gateway/shared/dialect/live"
	"gateway/shared/dialect/realtime"
	"gateway/shared/fault"
	"gateway/shared/relay/session"
	"gateway/shared/wire"
)

// maxWhole limits a response that is not a stream, in bytes.
const maxWhole = 16 << 20

// eventWriter is the response to one request: an http.ResponseWriter that sends its events to the
// client as messages.
type eventWriter struct {
	of     *Dialogue
	in     *create
	header http.Header
	status int
	stream bool
	events wire.SSEParser
	whole  bytes.Buffer // of a response that is not a stream
	done   bool         // its last event has arrived, or was sent
}

// Header implements http.ResponseWriter.
func (a *eventWriter) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *eventWriter) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
		a.stream = status < 300 && strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream")
	}
}

// Flush implements http.Flusher. It does nothing: events are sent as soon as they are complete.
func (a *eventWriter) Flush() {}

var (
	errGone = errors.New("dialogue: the client has disconnected")
	errLong = errors.New("dialogue: the response is too long")
)

// Write implements io.Writer. It blocks until the client has read the events.
func (a *eventWriter) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.stream {
		if err := a.events.Feed(p, a.event); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	if a.whole.Len()+len(p) > maxWhole {
		return 0, errLong
	}
	return a.whole.Write(p)
}

// keys of events that are read.
var eventKeys = wire.NewKeySet("type", "response", "status")

const (
	keyType = iota
	keyResponse
	keyStatus
)

// event sends an event of the response to the client. After the last one nothing more is sent,
// since a client would assign it to the next response: a stream may continue with an error event
// and response.failed.
func (a *eventWriter) event(name string, data []byte) error {
	if a.done || len(data) == 0 || data[0] != '{' {
		return nil // the end of streams in other dialects
	}
	var walk wire.Walk
	err := eventKeys.Walk(data, &walk)
	if err != nil && !json.Valid(data) {
		return nil // truncated, or never JSON: no message for the client
	}
	if err == nil && walk.Spans[keyType].Present(data) {
		name, _ = wire.ScanString(walk.Spans[keyType].Of(data), "type")
	}
	switch name {
	case "response.completed", "response.incomplete":
		a.done = true
		if at := walk.Spans[keyResponse]; !a.in.stores && at.Present(data) {
			if id, items := reusableItems(at.Of(data)); id != "" {
				a.of.kept.note(a.of.context, conversation{id, a.in.from, joined(a.in.input, items)})
			}
		}
	case "response.failed":
		a.done = true
		a.of.noteRejection(a.header)
	case "error":
		a.done = true
		if err == nil && !walk.Spans[keyStatus].Present(data) {
			data = append([]byte(`{"status":500,`), data[1:]...)
		}
	}
	if at := walk.Spans[keyResponse]; a.in.echoes != "" && err == nil && at.Present(data) {
		data = slices.Concat(data[:at.Start], a.in.echoed(at.Of(data)), data[at.End:])
	}
	if !a.of.tell(a.in.lane, data) {
		return errGone
	}
	return nil
}

var echoKeys = wire.NewKeySet("previous_response_id")

// echoed sets previous_response_id of a response to that of the client's request, if the provider
// was sent the conversation in its place: it states null, or the id of an earlier one.
func (c *create) echoed(response []byte) []byte {
	var walk wire.Walk
	if c.echoes == "" || echoKeys.Walk(response, &walk) != nil || walk.Spans[0].Absent() {
		return response
	}
	at := walk.Spans[0]
	return slices.Concat(response[:at.Start], wire.AppendJSONString(nil, c.echoes), response[at.End:])
}

// end sends the client the end of the response if that was not sent. broken: the response was
// truncated.
func (a *eventWriter) end(broken bool) {
	if a.stream && !broken {
		_ = a.events.End(a.event) // a client that is gone is detected by its reader
	}
	switch {
	case a.done:
	case a.stream || broken:
		f := fault.New(fault.ProviderError, "", "The response was truncated")
		a.of.tell(a.in.lane, errorEvent(f))
	case a.status >= 300:
		a.of.noteRejection(a.header)
		a.of.tell(a.in.lane, rejected(a.status, a.whole.Bytes()))
	default:
		a.of.tell(a.in.lane, wholeEvent(a.in.echoed(a.whole.Bytes())))
	}
}

// wholeEvent returns the event for a response that arrived complete.
func wholeEvent(response []byte) []byte {
	if !json.Valid(response) {
		return errorEvent(fault.New(fault.ProviderError, "", "The response is not JSON"))
	}
	return append(append([]byte(`{"type":"response.completed","sequence_number":0,"response":`), response...), '}')
}

// rejected returns the event for an error response, in the format of its body.
func rejected(status int, body []byte) []byte {
	var told struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &told) != nil || len(told.Error) == 0 || told.Error[0] != '{' {
		f := fault.New(fault.ProviderError, "", "The request was rejected without a reason")
		f.StatusCode = status
		return errorEvent(f)
	}
	out := strconv.AppendInt([]byte(`{"type":"error","status":`), int64(status), 10)
	return append(append(append(out, `,"error":`...), told.Error...), '}')
}

// errorEvent returns the event for a fault.
func errorEvent(f *fault.Fault) []byte {
	return rejected(f.Status(), f.DataBody(false))
}

// inLane sets the stream_id of an event; "" is none.
func inLane(event []byte, lane string) []byte {
	if lane == "" || len(event) < 2 {
		return event
	}
	out := wire.AppendJSONString(append(make([]byte, 0, len(event)+len(lane)+20), `{"stream_id":`...), lane)
	if rest := bytes.TrimLeft(event[1:], " \t\r\n"); rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, event[1:]...)
}

// AcceptedConn is a session.Sockets that already has the client's side.
type AcceptedConn struct {
	session.Sockets
	Client   session.Conn
	Accepted bool // the client's side was accepted
}

// Accept implements session.Sockets.
func (t *AcceptedConn) Accept(http.ResponseWriter, *http.Request, string, http.Header) (session.Conn, error) {
	t.Accepted = true
	return t.Client, nil
}

// MaxRefusal limits the bytes read of a failed upgrade's response.
const MaxRefusal = 64 << 10

// LiveRefusal returns the fault of such a response; nil if it is not an error.
func LiveRefusal(status int, body []byte) *fault.Fault {
	if status < 300 {
		return nil
	}
	var told struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Param   string `json:"param"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &told) != nil || told.Error.Message == "" {
		told.Error.Message = "The session could not be opened: the provider rejected it"
	}
	code := fault.Code(told.Error.Code)
	if code == "" {
		code = fault.ProviderError
	}
	f := fault.New(code, told.Error.Param, told.Error.Message)
	f.StatusCode = status
	return f
}

// account tracks the charges that have started and not ended, and charges each once.
type account struct {
	desk session.Controller
	mu   sync.Mutex
	open map[string]*thing
	seen map[string]struct{} // ids of ended charges
}

// thing is a charge in progress.
type thing struct {
	turn    session.Reservation // nil: it was rejected after the provider had started it
	covered int64               // seconds reserved
}

// maxSeen limits the remembered ids.
const maxSeen = 4096

// take applies steps. event is the message that reports them. The error is a fault of the key,
// of a limit or of a budget; the other steps are applied anyway.
func (a *account) take(steps []wires.Step, event []byte) (refused error) {
	for i := range steps {
		if err := a.step(&steps[i], event); err != nil && refused == nil {
			refused = err
		}
	}
	return refused
}

func (a *account) step(s *wires.Step, event []byte) error {
	switch s.Do {
	case wires.Begins:
		return a.begins(s)
	case wires.Grows:
		return a.grows(s)
	case wires.Ends:
		a.ends(s, event)
	}
	return nil
}

func (a *account) begins(s *wires.Step) error {
	a.mu.Lock()
	_, over := a.seen[s.ID]
	known := over || a.open[s.ID] != nil
	a.mu.Unlock()
	if known {
		return nil
	}
	turn, err := a.desk.Reserve(&session.ResponseLimits{Input: s.Input, Output: s.Output, Seconds: s.Seconds, Model: s.Model})
	if err != nil {
		turn = nil
	}
	a.mu.Lock()
	if a.open == nil {
		a.open = map[string]*thing{}
	}
	a.open[s.ID] = &thing{turn: turn, covered: s.Seconds}
	a.mu.Unlock()
	return err
}

func (a *account) grows(s *wires.Step) error {
	a.mu.Lock()
	t := a.open[s.ID]
	a.mu.Unlock()
	return t.grow(s)
}

// grow reserves more for a charge in progress.
func (t *thing) grow(s *wires.Step) error {
	if t == nil || t.turn == nil || s.Seconds <= t.covered {
		return nil
	}
	c, can := t.turn.(interface {
		Cover(w *session.ResponseLimits) error
	})
	if !can {
		return nil
	}
	if err := c.Cover(&session.ResponseLimits{Seconds: s.Seconds, Model: s.Model}); err != nil {
		return err
	}
	t.covered = s.Seconds
	return nil
}

func (a *account) ends(s *wires.Step, event []byte) {
	a.mu.Lock()
	_, over := a.seen[s.ID]
	if a.seen == nil || len(a.seen) >= maxSeen {
		a.seen = map[string]struct{}{}
	}
	a.seen[s.ID] = struct{}{}
	t := a.open[s.ID]
	delete(a.open, s.ID)
	a.mu.Unlock()
	if over {
		return
	}
	done := &realtime.Done{ID: s.ID, Status: s.Finish, Usage: s.Usage, Model: s.Model, Served: s.Served}
	switch {
	case t != nil && t.turn != nil && s.Usage.IsReported():
		t.turn.End(done, event)
	case t != nil && t.turn != nil:
		t.turn.Drop(nil)
	case s.Usage.IsReported():
		a.desk.ChargeLate(done, event)
	}
}

// leave releases the reservations of charges that never ended.
func (a *account) leave() {
	a.mu.Lock()
	open := a.open
	a.open = nil
	a.mu.Unlock()
	for _, t := range open {
		if t.turn != nil {
			t.turn.Drop(nil)
		}
	}
}
