package relay

import (
	"net/http"
	"time"

	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/form"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/media"
	"gateway/shared/relay/outgoing"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/reused"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/session"
	"gateway/shared/relay/stars"
	"gateway/shared/relay/target"
	"gateway/shared/usage"
)

// call is the frame of one request: the values of its stages, in the order in which they are
// filled. Stages are functions; each value refers to those before it. Calls are pooled:
// nothing may keep a part of one after finish has returned.
type call struct {
	relay    *Relay
	req      admission.Request
	body     body.Body
	plan     plan.Plan
	target   target.Target // the target that was tried last
	bill     accounting.Bill
	out      outbound
	stream   streamState
	plain    plain
	reply    reply
	log      record.Log   // what the record states of the response
	rec      usage.Record // see describe
	cache    reused.Cache
	guards   guardrail.State
	mask     stars.Mask // over the target's credentials
	protocol *calling   // of a protocol that asks no model; nil for others

	leased egress.Lease // memory of the request
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
	part      target.Part   // the part that is asked for after the answer has begun
}

// streamState is the memory of an answer that is a stream.
type streamState struct {
	heldBuf *buffer.Buffer // its beginning
	turnBuf *buffer.Buffer // its translation
	backlog response.Backlog
}

// reply is what the client was sent.
type reply struct {
	from      *admission.Request
	log       *record.Log
	w         http.ResponseWriter
	headSent  bool
	firstByte time.Duration
	gone      bool          // the client disconnected
	gathers   bool          // what is written is held until the next wait for the provider
	written   bool          // something was written and not flushed
	broken    bool          // the answer must be cut, not ended
	told      http.Header   // headers of the provider's answer that is sent, or that became an error
	words     []byte        // body of the provider's error, if it is sent unchanged
	flushing  time.Duration // the gateway's own time within the time that it seemed to wait for the provider
	tail      []byte        // last bytes, held until the request is recorded
	carry     carry         // the session that was opened
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
	c.bill.Target, c.bill.Fetched = &c.target, &c.out.media
	c.reply.from, c.reply.log = &c.req, &c.log
	c.mask.Target = &c.target
	c.cache.Target, c.cache.Bill = &c.target, &c.bill
	c.cache.Guards, c.cache.Stars = &c.guards, &c.mask
}

func (c *call) begin(r *Relay, w http.ResponseWriter, req *http.Request, rt *routes.Route) {
	c.req.Arrive(r.doors, req, rt, &c.leased)
	c.relay, c.target.Means, c.reply.w = r, r.means, w
	c.bill.Ledger, c.bill.Book = r.Ledger, r.Book.Current()
	c.cache.Store, c.cache.Times, c.cache.Walk = r.Cache, r.CacheTimes, c
	c.cache.Fresh()
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
	c.log.Free()
	log := c.log
	tail, modelJSON := c.reply.tail[:0], c.out.modelJSON[:0]
	*c = call{}
	c.connect()
	c.body.Reuse(body)
	c.target.Edited = edited
	c.log = log
	c.reply.tail, c.out.modelJSON = tail, modelJSON
	c.bill.Purse.Attempts = attempts
}

// refuse answers with an error, or ends a started stream with an error event.
func refuse(c *call, err error) {
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
