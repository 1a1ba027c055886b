package relay

import (
	"net/http"
	"time"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admitted"
	"gateway/shared/relay/chosen"
	"gateway/shared/relay/form"
	"gateway/shared/relay/guarded"
	"gateway/shared/relay/inbound"
	"gateway/shared/relay/logged"
	"gateway/shared/relay/media"
	"gateway/shared/relay/outgoing"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/reused"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/session"
	"gateway/shared/relay/stars"
	"gateway/shared/relay/turn"
	"gateway/shared/usage"
)

// call is the frame of one request: the values of its stages, in the order in which they are
// filled. Stages are functions; each value refers to those before it. Calls are pooled:
// nothing may keep a part of one after finish has returned.
type call struct {
	relay   *Relay
	req     admitted.Request
	body    inbound.Body
	plan    plan.Plan
	target  chosen.Target // the target that was tried last
	wall    chosen.Wall
	chooser chosen.Chooser
	bill    accounting.Bill
	out     outbound
	metered accounting.Meters
	stream  streamState
	plain   plain
	reply   reply
	books   books

	leased    egress.Lease // memory of the request
	runsTools bool         // the gateway calls tools for the model
}

// outbound is the request to a target: its body and what is known of its way out.
type outbound struct {
	media     media.Fetched // fetched for targets that take bytes only
	sendBuf   *buffer.Buffer
	sending   *outgoing.Bytes // nil until a body in memory is sent
	modelJSON []byte
	injected  bool          // usage was asked for on the client's behalf
	bodySpent bool          // the client's body was streamed and cannot be sent again
	upload    *form.Upload  // the body that is streamed
	patience  plan.Patience // of the attempt under way
	far       session.Conn  // connection to the provider, on Socket routes
	part      chosen.Part   // the part that is asked for after the answer has begun
	waited    time.Duration // time spent waiting for the provider
}

// streamState is the memory of an answer that is a stream.
type streamState struct {
	heldBuf *buffer.Buffer // its beginning
	turnBuf *buffer.Buffer // its translation
	backlog turn.Backlog
}

// reply is what the client was sent.
type reply struct {
	from      *admitted.Request
	w         http.ResponseWriter
	headSent  bool
	status    int
	firstByte time.Duration
	gone      bool          // the client disconnected
	gathers   bool          // what is written is held until the next wait for the provider
	written   bool          // something was written and not flushed
	broken    bool          // the answer must be cut, not ended
	told      http.Header   // headers of the provider's answer that is sent, or that became an error
	words     []byte        // body of the provider's error, if it is sent unchanged
	flushing  time.Duration // the gateway's own time within the time that it seemed to wait for the provider
	tail      []byte        // last bytes, held until the request is recorded
	failure   *fault.Fault  // why the answer failed; nil if it did not
	carry     carry         // the session that was opened
}

// books are what is recorded of the request.
type books struct {
	rec      usage.Record  // see describe
	upstream time.Duration // of the attempt that answered
	reuse    reused.Cache
	retries  int   // of the target that was tried last
	answered int64 // bytes of the answer's body
	bodies   logged.Bodies
	guards   guarded.State
	stars    stars.Mask   // over the target's credentials
	endFault *fault.Fault // the provider's fault for which a begun answer did not end well
	inBooks  bool
	calling  *calling // of a protocol that asks no model; nil for others
	opts     chat.Options
}

func newCall() *call {
	c := new(call)
	c.connect()
	return c
}

// connect lets each value refer to those before it.
func (c *call) connect() {
	c.body.Req = &c.req
	c.plan.Req, c.plan.Body = &c.req, &c.body
	c.target.Req, c.target.Body, c.target.Plan = &c.req, &c.body, &c.plan
	c.wall.Target = &c.target
	c.chooser.Target, c.chooser.Wall = &c.target, &c.wall
	c.bill.Target, c.bill.Fetched = &c.target, &c.out.media
	c.metered.Target, c.metered.Bill = &c.target, &c.bill
	c.reply.from = &c.req
	c.books.stars.Target = &c.target
	c.books.reuse.Target, c.books.reuse.Bill = &c.target, &c.bill
	c.books.reuse.Guards, c.books.reuse.Stars = &c.books.guards, &c.books.stars
}

func (c *call) begin(r *Relay, w http.ResponseWriter, req *http.Request, rt *routes.Route) {
	c.req.Arrive(r.doors, req, rt, &c.leased)
	c.relay, c.target.Means, c.reply.w = r, r.means, w
	c.bill.Ledger, c.bill.Book = r.Ledger, r.Book.Current()
	c.books.reuse.Store, c.books.reuse.Times, c.books.reuse.Walk = r.Cache, r.CacheTimes, c
	c.books.reuse.Fresh()
}

// reset drops every reference, so that the pool keeps no request alive.
func (c *call) reset() {
	spare := !c.out.sending.Busy() // nobody else reads the bytes of the body any more
	if spare {
		c.out.sendBuf.Free()
	}
	body, edited := c.body.Leftover(spare), c.target.Edited
	c.stream.heldBuf.Free()
	c.plain.free()
	c.stream.turnBuf.Free()
	attempts := c.bill.Purse.Leftover()
	// Parts that keep their memory are saved one by one, because a literal of the whole
	// call would be built beside it first.
	c.books.bodies.Free()
	bodies := c.books.bodies
	tail, modelJSON := c.reply.tail[:0], c.out.modelJSON[:0]
	*c = call{}
	c.connect()
	c.body.Reuse(body)
	c.target.Edited = edited
	c.books.bodies = bodies
	c.reply.tail, c.out.modelJSON = tail, modelJSON
	c.bill.Purse.Attempts = attempts
}

// refuse answers with an error, or ends a started stream with an error event.
func refuse(c *call, err error) {
	f := fault.From(err)
	c.books.stars.Fault(f)
	c.reply.failure = f
	if f.Status() >= 500 && f.Source != fault.SourceProvider {
		c.req.Fail("request", f)
	}
	if c.reply.headSent {
		return // the stream has sent it already
	}
	sendFault(c, f)
}
