package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/mcp"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/routes"
)

// Limits are the limits of a run; a zero field has its value in DefaultLimits.
type Limits struct {
	Turns       int           // of the model
	Calls       int           // of tools; a request may ask for fewer
	Time        time.Duration // for tool calls; a turn of the model in progress may continue
	Result      int           // bytes of one result
	Results     int           // bytes of all results
	MaxResponse int           // bytes of the response of one turn or server
	KeepAlive   time.Duration // that a stream may be silent before a keep-alive
}

// DefaultLimits are the default limits.
var DefaultLimits = Limits{Turns: 10, Calls: 50, Time: 5 * time.Minute, Result: 1 << 20, Results: 8 << 20, MaxResponse: 16 << 20, KeepAlive: plan.Again}

// filled returns the limits of a run of a request that allows a number of calls, if it is not 0.
func (b Limits) filled(calls int) Limits {
	most := cmp.Or(b.Calls, DefaultLimits.Calls)
	return Limits{
		Turns: cmp.Or(b.Turns, DefaultLimits.Turns), Calls: min(most, cmp.Or(calls, most)), Time: cmp.Or(b.Time, DefaultLimits.Time),
		Result: cmp.Or(b.Result, DefaultLimits.Result), Results: cmp.Or(b.Results, DefaultLimits.Results), MaxResponse: cmp.Or(b.MaxResponse, DefaultLimits.MaxResponse), KeepAlive: cmp.Or(b.KeepAlive, DefaultLimits.KeepAlive),
	}
}

// atOnce limits concurrent tool calls.
const atOnce = 4

// call is one tool call.
type call struct {
	id       string // the model's
	tool     *tool
	args     string // JSON
	approval string // id of the request by which the client has approved it; "": none
	index    int    // of its item or block, for the client
	place    int    // of its result in the input of the model, from 1; 0: at the end
}

// turnResult is the result of a turn.
type turnResult struct {
	calls []*call // to be made
	ends  bool    // the client continues from here
}

// shape is a client dialect.
type shape interface {
	// read parses a request and returns its tools and the names of its functions.
	read(body []byte) (*request, error)
	// begin receives the tools, and returns calls to be made first.
	begin(servers []*server, n *names) ([]*call, error)
	// turn returns the body for the next turn. last: the model must not call tools in it.
	turn(last bool) ([]byte, error)
	// event reads an event of a turn's stream and returns the events for the client.
	event(data []byte) ([]byte, error)
	// took reads the response of a turn: its body, or nil if it arrived as a stream.
	took(body []byte) (*turnResult, error)
	// made receives calls with their results and returns the events that show them.
	made(calls []*call, results []*outcome) []byte
	// final returns the response, and the events that end a stream with it. cut: the model
	// called tools in the last turn.
	final(cut bool) (body, events []byte, err error)
	// place returns the number of the next event and the id of the response of a stream.
	place() (next int64, id string)
}

// request is a parsed request.
type request struct {
	tools     []json.RawMessage
	functions []string
	stream    bool
	calls     int // limit in the request; 0: it states none
}

// run is one such request in progress.
type run struct {
	Limits
	loop   *routes.ToolLoop
	shape  shape
	ctx    context.Context // of tool calls
	stream bool
	output telling
	status int // of the response
	calls  int // made
	bytes  int // of their results
}

// of returns a route's ToolRun.
func of(calls *routes.Route, b Limits, approves bool, make func(*routes.ToolLoop) shape) *routes.ToolRun {
	return &routes.ToolRun{Calls: calls, Matches: wants, Serve: func(d *routes.ToolLoop) error {
		s := make(d)
		in, err := s.read(d.Body)
		if err != nil {
			return err
		}
		servers, err := readServers(in.tools, approves)
		if err != nil {
			return err
		}
		b := b.filled(in.calls)
		ctx, end := context.WithTimeout(d.Context, b.Time)
		defer end()
		r := &run{Limits: b, loop: d, shape: s, ctx: ctx, stream: in.stream, status: http.StatusOK}
		return r.respond(servers, newNames(in.functions))
	}}
}

// respond performs the run. An error is the response if none has started.
func (r *run) respond(servers []*server, n *names) (err error) {
	listed := 0
	for _, s := range servers {
		if listed, err = s.list(r, n, listed); err != nil {
			return err
		}
	}
	first, err := r.shape.begin(servers, n)
	if err != nil {
		return err
	}
	if r.stream && len(first) > 0 {
		r.output.keep(r.loop, r.KeepAlive)
	}
	defer r.output.end()
	r.show(r.shape.made(first, r.perform(first))) // no events: no turn has started
	cut, ended, err := r.turns()
	switch {
	case err != nil:
		return r.broke(fault.From(err))
	case ended:
		return nil
	}
	return r.finish(cut)
}

// turns runs the model until it calls no MCP tool. ended: the client has received the end of the
// run.
func (r *run) turns() (cut, ended bool, err error) {
	for turn := 1; ; turn++ {
		if r.loop.Context.Err() != nil {
			return false, false, fault.New(fault.RequestTimeout, "", "The client has disconnected")
		}
		last := turn >= r.Turns || r.calls >= r.Calls || r.ctx.Err() != nil
		s, ended, err := r.turn(last)
		if err != nil || ended {
			return false, ended, err
		}
		if r.loop.Context.Err() != nil {
			return false, false, fault.New(fault.RequestTimeout, "", "The client has disconnected")
		}
		if last && len(s.calls) > 0 {
			none := []*outcome{failure(mcp.CodeInternal, "The call was not made: the tool run has reached its limits.")}
			r.show(r.shape.made(s.calls, slices.Repeat(none, len(s.calls))))
			return true, false, nil
		}
		r.show(r.shape.made(s.calls, r.perform(s.calls)))
		if len(s.calls) == 0 || s.ends {
			return false, false, nil
		}
	}
}

// turn calls the model.
func (r *run) turn(last bool) (s *turnResult, ended bool, err error) {
	body, err := r.shape.turn(last)
	if err != nil {
		return nil, false, err
	}
	var event func(*partResponse, []byte) error
	if r.stream {
		event = r.event
	}
	w := &partResponse{header: http.Header{}, limit: r.MaxResponse, event: event}
	broken := r.loop.SendTurn(r.loop.Context, w, body)
	w.end()
	switch {
	case w.status >= 300 || w.status == 0 && !broken:
		return nil, true, r.rejected(w)
	case w.events:
		s, err = r.shape.took(nil)
	case broken || w.tooLong:
		err = cutOff()
	default:
		r.copyHeader(w.header)
		s, err = r.shape.took(w.body.Bytes())
	}
	if err == nil && (broken || w.tooLong) {
		err = cutOff()
	}
	if w.status != http.StatusOK {
		r.status = w.status
	}
	return s, false, err
}

// event shows the client an event of a turn.
func (r *run) event(w *partResponse, data []byte) error {
	out, err := r.shape.event(data)
	if len(out) > 0 {
		r.copyHeader(w.header)
		r.show(out)
	}
	return err
}

func cutOff() *fault.Fault {
	return &fault.Fault{Code: fault.ProviderError, Message: "The response was truncated", Source: fault.SourceProvider}
}

// streamFault returns the fault in an error event of a stream.
func streamFault(of object) *fault.Fault {
	var inner object
	_ = json.Unmarshal(of["error"], &inner) // where the event has one
	said := fault.Clip(cmp.Or(text(inner["message"]), text(of["message"])), 2000)
	return &fault.Fault{Code: fault.ProviderError, Message: cmp.Or(said, "The response ended with an error"), Source: fault.SourceProvider}
}

// perform makes calls, some of them concurrently, and returns their results.
func (r *run) perform(calls []*call) []*outcome {
	var wg sync.WaitGroup
	lanes := make(chan struct{}, atOnce)
	results := make([]*outcome, len(calls))
	for i, c := range calls {
		if r.calls++; r.calls > r.Calls {
			results[i] = failure(mcp.CodeInternal, "The call was not made: the request allows no more tool calls.")
			continue
		}
		lanes <- struct{}{}
		wg.Go(func() {
			defer func() { <-lanes }()
			results[i] = r.make(r.ctx, c.tool, c.args)
		})
	}
	wg.Wait()
	for i, out := range results {
		n := len(out.text)
		for _, i := range out.images {
			n += len(i.data)
		}
		if n > r.Result || r.bytes+n > r.Results {
			results[i] = failure(mcp.CodeInternal, "The result of the tool is too long.")
			continue
		}
		r.bytes += n
	}
	return results
}

// show sends events to a streaming client.
func (r *run) show(events []byte) {
	if len(events) == 0 || !r.stream {
		return
	}
	r.output.event(r.loop, events, false, nil)
	r.output.keep(r.loop, r.KeepAlive)
}

// finish sends the response, or ends its stream.
func (r *run) finish(cut bool) error {
	body, events, err := r.shape.final(cut)
	switch {
	case err != nil:
		return r.broke(fault.From(err))
	case r.stream:
		r.output.event(r.loop, events, true, nil)
	default:
		r.loop.Send(r.status, "application/json", body, nil)
	}
	return nil
}

// broke ends a started stream with an error.
func (r *run) broke(f *fault.Fault) error {
	if !r.output.started() {
		return f
	}
	next, id := r.shape.place()
	r.output.event(r.loop, r.loop.StreamError(f, next, id), true, f)
	return nil
}

// rejected forwards an error response of a turn.
func (r *run) rejected(w *partResponse) error {
	f := w.fault()
	if r.output.started() {
		return r.broke(f)
	}
	r.copyHeader(w.header)
	r.loop.Send(w.status, cmp.Or(w.header.Get("Content-Type"), "application/json"), w.body.Bytes(), f)
	return nil
}

// copyHeader copies response headers of a turn; the last turn's count.
func (r *run) copyHeader(from http.Header) {
	r.output.mu.Lock()
	defer r.output.mu.Unlock()
	if r.output.began {
		return
	}
	h := r.loop.Header()
	for name, v := range from {
		switch name {
		case "Content-Length", "Content-Type", "Cache-Control", "X-Accel-Buffering", "Transfer-Encoding", "Connection", "Date", "X-Gateway-Trace-Id":
		default:
			h[name] = v
		}
	}
}

// telling is the stream to a client. Proxies end streams that are silent for long, as one is
// while a tool works or the model reasons. So if nothing else is sent for a while, it sends a
// keep-alive, which clients ignore.
type telling struct {
	mu    sync.Mutex // guards writes to the client
	began bool       // the response has started
	over  bool
	last  time.Time
	timer *time.Timer // nil: no keep-alives are sent yet
}

// started reports whether the response has started. If not, telling sends nothing from now on, and
// a different response can be sent.
func (t *telling) started() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = t.over || !t.began
	return t.began
}

// event sends an event, which may be the last.
func (t *telling) event(d *routes.ToolLoop, event []byte, last bool, f *fault.Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began, t.over, t.last = true, last, time.Now()
	d.Event(event, last, f)
}

// keep starts keep-alives, which may be the first bytes for the client.
func (t *telling) keep(d *routes.ToolLoop, quiet time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil || len(d.Sign) == 0 {
		return
	}
	t.last = time.Now()
	t.timer = time.AfterFunc(quiet, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		left := quiet - time.Since(t.last)
		switch {
		case t.over:
			return
		case left <= 0:
			t.began, t.last, left = true, time.Now(), quiet
			d.Event(d.Sign, false, nil)
		}
		t.timer.Reset(left)
	})
}

// end stops keep-alives: from here on only the caller writes.
func (t *telling) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over = true; t.timer != nil {
		t.timer.Stop()
	}
}
