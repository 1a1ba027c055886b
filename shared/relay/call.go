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
	"gateway/shared/relay/plan"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/reused"
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
	cache    reused.Cache
	guards   guardrail.State
	mask     target.SecretMask // of the target's credentials
	protocol *calling          // of a protocol that calls no model; nil for others
	race     *race             // of a request with a hedge; nil for others

	leased egress.Lease // memory of the request
}

// outbound is the request to a target: its body and its state.
type outbound struct {
	media     body.FetchedMedia // fetched for targets that accept only bytes
	sendBuf   *buffer.Buffer
	sending   *upstream.Body // nil until a buffered body is sent
	modelJSON []byte
	injected  bool          // usage was requested on the client's behalf
	bodySpent bool          // the client's body was streamed and cannot be sent again
	upload    *form.Upload  // the streamed body
	patience  plan.Patience // of the attempt in progress
	far       session.Conn  // connection to the provider, on Socket routes
	part      target.Part   // the part that is requested after the response has started
}

// streamState is the memory of a streamed response.
type streamState struct {
	heldBuf *buffer.Buffer // its beginning
	turnBuf *buffer.Buffer // its translation
	backlog response.Backlog
}

// reply is the state of the response to the client.
type reply struct {
	from      *admission.Request
	log       *record.Log
	w         http.ResponseWriter
	headSent  bool
	firstByte time.Duration
	gone      bool          // the client disconnected
	gathers   bool          // writes are buffered until the next wait for the provider
	written   bool          // there are unflushed writes
	broken    bool          // the response must be aborted, not ended
	told      http.Header   // headers of the provider's response that is sent, or that became an error
	words     []byte        // body of the provider's error, if it is sent unchanged
	flushing  time.Duration // the gateway's own time during apparent waits for the provider
	tail      []byte        // last bytes, held until the request is recorded
	carry     carry         // the opened session
}

func newCall() *call {
	c := new(call)
	c.connect()
	return c
}

// connect sets the references of each value to those before it.
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
	c.bill.Ledger, c.bill.Prices = r.Ledger, r.Prices.Current()
	c.cache.Store, c.cache.Times, c.cache.Walk = r.Cache, r.CacheTimes, c
	c.cache.Fresh()
}

// reset drops every reference, so that the pool keeps no request alive.
func (c *call) reset() {
	spare := !c.out.sending.Busy() // the bytes of the body are no longer read
	if spare {
		c.out.sendBuf.Free()
	}
	body, edited := c.body.Leftover(spare), c.target.Edited
	c.stream.heldBuf.Free()
	c.plain.free()
	c.stream.turnBuf.Free()
	attempts := c.bill.Purse.Leftover()
	// Parts with reusable memory are saved one by one, because a literal of the complete call
	// would be allocated first.
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

// refuse sends an error, or ends a started stream with an error event.
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
