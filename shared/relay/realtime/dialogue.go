package realtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/relay/session"
)

// Responder serves the responses of a connection.
type Responder interface {
	// Send sends the body of a request for a response through the pipeline. The response was
	// truncated if broken is true. ctx ends when the client disconnects.
	Send(ctx context.Context, w http.ResponseWriter, body []byte) (broken bool)
	session.Checker
}

// Dialogue is one connection. All fields are required.
type Dialogue struct {
	Client    session.Conn
	Responder Responder
	Times     session.Times
	Memory    *egress.Memory // of large messages, and of remembered conversations
	Tenant    string         // the organization charged for the memory
	ID        string         // for ids of the gateway's own responses
	Now       func() time.Time

	context context.Context
	stop    context.CancelFunc
	kept    kept
	wg      sync.WaitGroup

	mu        sync.Mutex
	lanes     map[string][]*create // queue of each active lane
	pending   int                  // responses that are queued or in progress
	prepared  int                  // responses with generate: false; their ids are numbered
	draining  bool
	over      bool       // the client gets nothing more
	rejection fault.Code // of the last response if it was rejected; "" otherwise
	ended     session.Ended
	byClient  bool         // it was the client who left
	why       *fault.Fault // for which it was disconnected
	in, out   int64        // bytes of messages from the client and to it
}

// maxPending limits the queued and running responses.
const maxPending = 16

// Run serves the client until it disconnects, is disconnected, or Drain has ended it.
func (d *Dialogue) Run(ctx context.Context) session.Result {
	d.context, d.stop = context.WithCancel(ctx)
	d.lanes = make(map[string][]*create)
	d.kept.lease.Of(d.Memory, d.Tenant)
	defer d.kept.lease.Free()
	watch := session.Watch{Times: d.Times, Checker: d.Responder, Done: d.isOver, Refuse: d.reject, Ends: []session.Conn{d.Client}}
	watch.Start()
	err := d.read()
	d.left(err)
	d.stop()
	watch.End()
	d.wg.Wait()
	d.Client.Linger()
	d.mu.Lock()
	defer d.mu.Unlock()
	return session.Result{Code: d.ended.Code, Reason: d.ended.Reason, ByClient: d.byClient, Fault: d.why, FromClient: d.in, ToClient: d.out}
}

// left records how the client has disconnected, unless the gateway disconnected it.
func (d *Dialogue) left(err error) {
	e := &session.Ended{Code: session.CloseAbnormal}
	errors.As(err, &e)
	d.mu.Lock()
	mine := !d.over
	if mine {
		d.over, d.byClient, d.ended = true, true, *e
	}
	d.mu.Unlock()
	switch {
	case !mine:
	case e.Code == session.CloseAbnormal:
		d.Client.Drop()
	default:
		d.Client.Close(e.Code, e.Reason) // nothing is sent if the client has closed it
	}
}

// end disconnects the client.
func (d *Dialogue) end(code int, reason string, why *fault.Fault) {
	d.mu.Lock()
	if d.over {
		d.mu.Unlock()
		return
	}
	d.over, d.ended, d.why = true, session.Ended{Code: code, Reason: reason}, why
	d.mu.Unlock()
	d.Client.Close(code, reason)
}

// Restarting is the close reason sent to clients when a stopping gateway ends their connections.
const Restarting = "the gateway is restarting; open a new connection"

// Drain ends the connection once no response is in progress.
func (d *Dialogue) Drain() {
	d.mu.Lock()
	d.draining = true
	idle := d.pending == 0
	d.mu.Unlock()
	if idle {
		d.end(session.CloseGoingAway, Restarting, nil)
	}
}

// Break ends the connection now.
func (d *Dialogue) Break() { d.end(session.CloseGoingAway, Restarting, nil) }

func (d *Dialogue) isOver() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// noteRejection records the rejection of a response by the header with its error code.
func (d *Dialogue) noteRejection(h http.Header) {
	d.mu.Lock()
	d.rejection = fault.Code(h.Get("X-Gateway-Error-Code"))
	d.mu.Unlock()
}

// reject closes the connection. The client gets an error event with the reason: that of its last
// response if it was rejected for the same reason, or one that is sent here.
func (d *Dialogue) reject(f *fault.Fault) {
	d.mu.Lock()
	told := d.rejection == f.Code
	d.mu.Unlock()
	if !told {
		session.BeforeClosing(func() { d.tell("", errorEvent(f)) })
	}
	d.end(session.Policy, f.Message, f)
}

// read reads the client until it disconnects or is disconnected.
func (d *Dialogue) read() error {
	for {
		binary, r, err := d.Client.Next()
		if err != nil {
			return err
		}
		in := &create{buf: buffer.New()}
		in.lease.Of(d.Memory, d.Tenant)
		err = in.buf.ReadAll(d.context, &in.lease, r, -1, session.MaxFromClient)
		switch {
		case errors.Is(err, buffer.ErrTooLarge):
			err = &session.Ended{Code: session.TooLarge, Reason: "a message has more bytes than the gateway accepts"}
		case fault.Is(err, fault.ServiceUnavailable):
			err = &session.Ended{Code: session.ServerError, Reason: "the gateway has no memory for another large message at present"}
		case err == nil && binary:
			err = &session.Ended{Code: session.NotText, Reason: "events are text messages"}
		case err == nil && !utf8.Valid(in.buf.B):
			err = &session.Ended{Code: session.NotUTF8, Reason: "a text message must be UTF-8"}
		}
		if err != nil {
			in.free()
			return err
		}
		d.mu.Lock()
		d.in += int64(len(in.buf.B))
		d.mu.Unlock()
		d.take(in)
	}
}

// take queues a requested response, or rejects the message.
func (d *Dialogue) take(in *create) {
	if err := in.read(); err != nil {
		if in.steer != nil {
			d.tell("", in.steer)
		} else {
			d.tell(in.lane, errorEvent(fault.From(err)))
		}
		in.free()
		return
	}
	d.mu.Lock()
	var f *fault.Fault
	queue, works := d.lanes[in.lane]
	switch {
	case d.over:
		d.mu.Unlock()
		in.free()
		return
	case d.draining:
		f = fault.New(fault.ServiceUnavailable, "", "The gateway is restarting; open a new connection")
	case d.pending >= maxPending:
		f = fault.Newf(fault.RateLimited, "", "%d responses of this connection are requested or in progress; wait for one of them", maxPending)
	default:
		d.pending++
		d.lanes[in.lane] = append(queue, in)
		if !works {
			d.wg.Go(func() { d.work(in.lane) })
		}
	}
	d.mu.Unlock()
	if f != nil {
		d.tell(in.lane, errorEvent(f))
		in.free()
	}
}

// work creates the responses of a lane, one after the other.
func (d *Dialogue) work(lane string) {
	for {
		d.mu.Lock()
		queue := d.lanes[lane]
		if len(queue) == 0 {
			delete(d.lanes, lane)
			d.mu.Unlock()
			return
		}
		in := queue[0]
		d.lanes[lane] = queue[1:]
		d.mu.Unlock()
		if d.context.Err() == nil {
			d.make(in)
		}
		in.free()
		d.mu.Lock()
		d.pending--
		leave := d.draining && d.pending == 0
		d.mu.Unlock()
		if leave {
			d.end(session.CloseGoingAway, Restarting, nil)
		}
	}
}

// make creates one response.
func (d *Dialogue) make(in *create) {
	body, err := in.body(&d.kept)
	if err != nil {
		d.tell(in.lane, errorEvent(fault.From(err)))
		return
	}
	if !in.generates {
		d.prepare(in)
		return
	}
	a := &eventWriter{of: d, in: in, header: http.Header{}}
	a.end(d.Responder.Send(d.context, a, body))
}

// tell sends the client an event in its lane; it returns false if the client is gone.
func (d *Dialogue) tell(lane string, event []byte) bool {
	event = inLane(event, lane)
	d.mu.Lock()
	over := d.over
	if !over {
		d.out += int64(len(event))
	}
	d.mu.Unlock()
	if over {
		return false
	}
	if err := d.Client.Write(false, event); err != nil {
		d.left(&session.Ended{Code: session.CloseAbnormal})
		return false
	}
	return true
}

// Limits of a connection's memory.
const (
	maxKept      = 8       // responses
	maxKeptBytes = 4 << 20 // of all their items
)

// ownPrefix starts the ids of responses that the gateway has prepared without a provider.
const ownPrefix = "resp_gw_"

// kept are the latest responses that no provider stores, with the conversations up to them.
type kept struct {
	mu    sync.Mutex
	lease egress.Lease
	all   []conversation // the oldest first
	bytes int
}

// conversation is a conversation up to a response.
type conversation struct {
	id    string
	from  string // id of a response stored by a provider that this continues; "" for none
	items []byte // later items, separated by commas; immutable
}

// find returns the conversation up to a response.
func (k *kept) find(id string) (s conversation, known bool) {
	if id == "" {
		return conversation{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.all {
		if k.all[i].id == id {
			return k.all[i], true
		}
	}
	return conversation{}, false
}

// note stores a conversation, and drops the oldest if the limit is reached. A conversation that
// is too long, or for which there is no memory, is not stored.
func (k *kept) note(ctx context.Context, s conversation) {
	n := len(s.items)
	if n > maxKeptBytes {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.all) > 0 && (len(k.all) >= maxKept || k.bytes+n > maxKeptBytes) {
		old := len(k.all[0].items)
		k.bytes -= old
		k.lease.Return(int64(old))
		k.all = append(k.all[:0], k.all[1:]...)
	}
	if k.lease.Reserve(ctx, int64(n)) != nil {
		return
	}
	k.bytes += n
	k.all = append(k.all, s)
}

// reusableItems returns the items of a response that can be sent again, to a provider that does not
// have them.
func reusableItems(response []byte) (id string, items []byte) {
	var r struct {
		ID     string                       `json:"id"`
		Output []map[string]json.RawMessage `json:"output"`
	}
	if json.Unmarshal(response, &r) != nil {
		return "", nil
	}
	var out [][]byte
	for _, item := range r.Output {
		if sealed := item["encrypted_content"]; string(item["type"]) == `"reasoning"` && (sealed == nil || string(sealed) == "null") {
			continue // only its host could find it by its id
		}
		delete(item, "id")
		if raw, err := json.Marshal(item); err == nil {
			out = append(out, raw)
		}
	}
	return r.ID, bytes.Join(out, []byte(","))
}

// prepare serves a response with generate false: the conversation is stored for later responses,
// and no provider is called.
func (d *Dialogue) prepare(in *create) {
	d.mu.Lock()
	d.prepared++
	id := ownPrefix + d.ID + "_" + strconv.Itoa(d.prepared)
	d.mu.Unlock()
	d.kept.note(d.context, conversation{id, in.from, in.input})
	var previous any
	if in.previous != "" {
		previous = in.previous
	}
	for i, event := range [...]struct{ kind, status string }{{"response.created", "in_progress"}, {"response.completed", "completed"}} {
		body, err := json.Marshal(map[string]any{
			"type": event.kind, "sequence_number": i, "response": map[string]any{
				"id": id, "object": "response", "created_at": d.Now().Unix(), "status": event.status, "model": in.model, "output": []any{},
				"error": nil, "incomplete_details": nil, "usage": nil, "store": false, "previous_response_id": previous,
			},
		})
		if err != nil {
			d.Responder.Fail("event of a prepared response", err)
			return
		}
		d.tell(in.lane, body)
	}
}
