package relay

import (
	"io"
	"net/http"
	"strings"
	"time"

	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/caching"
	"gateway/shared/relay/form"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/session"
	"gateway/shared/relay/target"
	"gateway/shared/relay/upstream"
	"gateway/shared/usage"
)

// call is the frame of one request: the values of its stages, in the order in which they are
// set. Stages are functions; each value refers to those before it. Calls are pooled: no part of
// one may be retained after finish has returned.
type call struct {
	relay    *Relay
	req      admission.Request
	body     body.Body
	plan     plan.Plan
	target   target.Target // the current or last target
	bill     accounting.Bill
	out      outbound
	stream   streamState
	plain    plain
	reply    reply
	log      record.Log   // what the record states of the response
	rec      usage.Record // see describe
	cache    caching.Cache
	guards   guardrail.State
	mask     target.SecretMask // of the target's credentials
	protocol *calling          // of a protocol that calls no model; nil for others
	race     *race             // of a request with a hedge; nil for others

	leased egress.Lease // memory of the request
}

// outbound is the request to a target: its body and its state.
type outbound struct {
	media        body.FetchedMedia // fetched for targets that accept only bytes
	sendBuf      *buffer.Buffer
	sending      *upstream.Body // nil until a buffered body is sent
	modelJSON    []byte
	injected     bool                 // usage was requested on the client's behalf
	bodySpent    bool                 // the client's body was streamed and cannot be sent again
	upload       *form.Upload         // the streamed body
	patience     plan.AttemptTimeouts // of the attempt in progress
	providerConn session.Conn         // connection to the provider, on Socket routes
	part         target.Part          // the part that is requested after the response has started
}

// streamState is the memory of a streamed response.
type streamState struct {
	prefixBuf *buffer.Buffer // its beginning
	turnBuf   *buffer.Buffer // its translation
	backlog   response.Backlog
}

// reply is the state of the response to the client.
type reply struct {
	from           *admission.Request
	log            *record.Log
	w              http.ResponseWriter
	headSent       bool
	firstByte      time.Duration
	gone           bool          // the client disconnected
	gathers        bool          // writes are buffered until the next wait for the provider
	written        bool          // there are unflushed writes
	broken         bool          // the response must be aborted, not ended
	providerHeader http.Header   // headers of the provider's response that is sent, or that became an error
	words          []byte        // body of the provider's error, if it is sent unchanged
	flushing       time.Duration // the gateway's own time during apparent waits for the provider
	tail           []byte        // last bytes, held until the request is recorded
	carry          carry         // the opened session
}

func (o *outbound) reuse(modelJSON []byte) { o.modelJSON = modelJSON }

// connect sets the request of the reply and its log.
func (r *reply) connect(q *admission.Request, log *record.Log) { r.from, r.log = q, log }

// to sets the client's writer.
func (r *reply) to(w http.ResponseWriter) { r.w = w }

func (r *reply) reuse(tail []byte) { r.tail = tail }

// last appends to the bytes that are held until the request is recorded.
func (r *reply) last(p []byte) { r.tail = append(r.tail[:0], p...) }

func newCall() *call {
	c := new(call)
	c.connect()
	return c
}

// connect sets the references of each value to those before it.
func (c *call) connect() {
	body.Connect(&c.body, &c.req)
	c.plan.Connect(&c.req, &c.body)
	target.Connect(&c.target, &c.req, &c.body, &c.plan)
	c.bill.Connect(&c.target, &c.out.media)
	c.reply.connect(&c.req, &c.log)
	c.mask = target.SecretMask{Target: &c.target}
	c.cache.Connect(&c.target, &c.bill, &c.guards, &c.mask)
}

// begin starts a request to a route. id is the variable of its path.
func (c *call) begin(r *Relay, w http.ResponseWriter, req *http.Request, rt *routes.Route, id string, behalf *admission.InternalCall) {
	c.req.Start(r.doors, req, rt, id, behalf, &c.leased)
	c.relay = r
	c.reply.to(w)
	target.SetDeps(&c.target, r.means)
	c.bill.SetDeps(r.Ledger, r.Prices.Current())
	c.cache.SetDeps(r.Cache, r.CacheTimes, c)
}

// reset drops every reference, so that the pool keeps no request alive.
func (c *call) reset() {
	spare := !c.out.sending.Busy() // the bytes of the body are no longer read
	if spare {
		c.out.sendBuf.Free()
	}
	left, edited := c.body.TakeMemory(spare), c.target.Edited
	c.stream.prefixBuf.Free()
	c.plain.free()
	c.stream.turnBuf.Free()
	attempts := c.bill.Spending.TakeAttempts()
	// Parts with reusable memory are saved one by one, because a literal of the complete call
	// would be allocated first.
	c.log.Free()
	log := c.log
	tail, modelJSON := c.reply.tail[:0], c.out.modelJSON[:0]
	*c = call{}
	c.connect()
	c.body.Reuse(left)
	target.Reuse(&c.target, edited)
	c.log = log
	c.reply.reuse(tail)
	c.out.reuse(modelJSON)
	c.bill.Spending.Reuse(attempts)
}

// reject sends an error, or ends a started stream with an error event.
func reject(c *call, err error) {
	f := fault.From(err)
	c.mask.Fault(f)
	c.log.Fail(f)
	if f.Status() >= 500 && f.Source != fault.SourceProvider {
		c.req.Fail("request", f)
	}
	if c.reply.headSent {
		return // the stream has sent it already
	}
	sendFault(c, f)
}

// streams reports whether the response is a stream of events.
func (r *reply) streams() bool {
	kind := r.w.Header()["Content-Type"]
	return len(kind) > 0 && strings.HasPrefix(kind[0], eventStream[0])
}

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
	r.from.OnClientGone()
}
