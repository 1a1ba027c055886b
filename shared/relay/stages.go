package relay

import (
	"gateway/shared/relay/bill"
	"gateway/shared/relay/metered"
	"net/http"
	"time"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/relay/admitted"
	"gateway/shared/relay/chosen"
	"gateway/shared/relay/form"
	"gateway/shared/relay/guarded"
	"gateway/shared/relay/logged"
	"gateway/shared/relay/media"
	"gateway/shared/relay/outgoing"
	"gateway/shared/relay/patience"
	"gateway/shared/relay/pooled"
	"gateway/shared/relay/reused"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/session"
	"gateway/shared/relay/stars"
	"gateway/shared/relay/turn"
	"gateway/shared/usage"
)

// call is one request on its walk. Calls are pooled: nothing may keep a part of one once
// finish has returned.
type call struct {
	chosen.Target
	chosen.Wall
	outbound
	books
	reply
	logbook
	meters
	answerCache
	chosen.Chooser
	requests
	streams
	plains
	jobCalls
	exchanges
	sender
	managedRuns
	leased    egress.Lease // of the request
	runsTools bool         // the gateway calls tools for the model
}

// outbound is the request to a target: its body and what is known of its way out.
type outbound struct {
	*Relay
	*chosen.Target
	*chosen.Wall
	media     media.Fetched // fetched for targets that take bytes only
	sendBuf   *pooled.Buffer
	sending   *outgoing.Bytes // nil until a body in memory is sent
	modelJSON []byte
	injected  bool              // usage was asked for on the client's behalf
	bodySpent bool              // the client's body was streamed and cannot be sent again
	upload    *form.Upload      // the body that is streamed
	patience  patience.Patience // of the attempt under way
	far       session.Conn      // connection to the provider, on Socket routes
	part      chosen.Part       // the part that is asked for after the answer has begun
	waited    time.Duration     // time spent waiting for the provider
}

// reply is what the client was sent.
type reply struct {
	from      *admitted.Request
	w         http.ResponseWriter
	headSent  bool
	status    int
	firstByte time.Duration
	gone      bool          // the client went
	gathers   bool          // what is written is held until the next wait for the provider
	written   bool          // something was written and not flushed
	broken    bool          // the answer must be cut, not ended
	told      http.Header   // headers of the provider's answer that is sent, or that became an error
	words     []byte        // body of the provider's error, where it is sent as it came
	flushing  time.Duration // the gateway's own time within the time that it seemed to wait for the provider
	tail      []byte        // last bytes, held until the books are written
	failure   *fault.Fault  // why the answer is not a good one; nil: it is
	carry     carry         // the session that was opened
}

// books are what is recorded of the request, and what it holds of limits until they
// are settled.
type books struct {
	bill.Bill
	*chosen.Target
	*outbound
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
	calling  *calling // of a protocol that asks no model; nil: none
	opts     chat.Options
}

// logbook keeps bodies for the log and fills the record.
type logbook struct {
	*chosen.Target
	*outbound
	*books
	*reply
}

// meters read what an answer used and charge it.
type meters struct {
	metered.Meters
	*chosen.Target
	*outbound
	*logbook
}

// answerCache sends answers that were kept, and collects answers that are to be kept.
type answerCache struct {
	*chosen.Target
	*outbound
	*books
	*meters
}

// requests make the request to a target.
type requests struct {
	*chosen.Target
	*outbound
	*books
	*answerCache
	*chosen.Chooser
}

// streams read the beginning of an answer that is a stream, and handle it.
type streams struct {
	*chosen.Target
	*outbound
	*books
	*reply
	*requests
	heldBuf *pooled.Buffer // beginning of a stream
	turnBuf *pooled.Buffer // translation of a stream
	backlog turn.Backlog   // of the stream that is read
}

// plains read an answer that comes whole.
type plains struct {
	*chosen.Target
	*outbound
	*books
	*streams
	plain plain
}

// jobCalls carry files, batches and fine-tuning jobs that a provider has in a shape of its
// own.
type jobCalls struct {
	*chosen.Target
	*outbound
	*books
	*plains
}

// exchanges call a target and judge what comes of it before anything is sent to the
// client.
type exchanges struct {
	*chosen.Target
	*outbound
	*books
	*reply
	*jobCalls
}

// sender gives the client the answer of the target that was tried last.
type sender struct {
	*chosen.Target
	*outbound
	*books
	*reply
	*exchanges
}

// managedRuns serve the files and batches that the gateway itself keeps and runs.
type managedRuns struct {
	*chosen.Target
	*sender
}

func newCall() *call {
	c := new(call)
	c.connect()
	return c
}

// connect lets each stage see those before it. What a stage reads most is embedded in it;
// the others are reached through that.
func (c *call) connect() {
	c.Wall.Target = &c.Target
	c.outbound.Target, c.outbound.Wall = &c.Target, &c.Wall
	c.books.Target, c.books.outbound, c.stars.Target = &c.Target, &c.outbound, &c.Target
	c.logbook.Target, c.logbook.outbound, c.logbook.books, c.logbook.reply = &c.Target, &c.outbound, &c.books, &c.reply
	c.reuse.Target, c.reuse.Bill, c.reuse.Guards, c.reuse.Stars = &c.Target, &c.Bill, &c.guards, &c.stars
	c.Bill.Target, c.Fetched = &c.Target, &c.media
	c.Meters.Target, c.Meters.Bill = &c.Target, &c.Bill
	c.meters.Target, c.meters.outbound, c.meters.logbook = &c.Target, &c.outbound, &c.logbook
	c.answerCache.Target, c.answerCache.outbound, c.answerCache.books, c.answerCache.meters = &c.Target, &c.outbound, &c.books, &c.meters
	c.Chooser.Target, c.Chooser.Wall = &c.Target, &c.Wall
	c.requests.Target, c.requests.outbound, c.requests.books, c.requests.answerCache, c.requests.Chooser = &c.Target, &c.outbound, &c.books, &c.answerCache, &c.Chooser
	c.streams.Target, c.streams.outbound, c.streams.books, c.streams.reply, c.streams.requests = &c.Target, &c.outbound, &c.books, &c.reply, &c.requests
	c.plains.Target, c.plains.outbound, c.plains.books, c.plains.streams = &c.Target, &c.outbound, &c.books, &c.streams
	c.jobCalls.Target, c.jobCalls.outbound, c.jobCalls.books, c.jobCalls.plains = &c.Target, &c.outbound, &c.books, &c.plains
	c.exchanges.Target, c.exchanges.outbound, c.exchanges.books, c.exchanges.reply, c.exchanges.jobCalls = &c.Target, &c.outbound, &c.books, &c.reply, &c.jobCalls
	c.sender.Target, c.sender.outbound, c.sender.books, c.sender.reply, c.sender.exchanges = &c.Target, &c.outbound, &c.books, &c.reply, &c.exchanges
	c.managedRuns.Target, c.managedRuns.sender = &c.Target, &c.sender
	c.reply.from = &c.Request
}

func (c *call) begin(r *Relay, w http.ResponseWriter, req *http.Request, rt *routes.Route) {
	c.Arrive(r.doors, req, rt, &c.leased)
	c.Relay, c.Means, c.w = r, r.means, w
	c.Bill.Ledger, c.Bill.Book = r.Ledger, r.Book.Current()
	c.reuse.Store, c.reuse.Times, c.reuse.Walk = r.Cache, r.CacheTimes, c
	c.reuse.Fresh()
}

// reset drops every reference, so that the pool keeps no request alive.
func (c *call) reset() {
	spare := !c.sending.Busy()
	if spare {
		c.sendBuf.Free()
	}
	in := c.Target.Leftover(spare)
	c.heldBuf.Free()
	c.plain.free()
	c.turnBuf.Free()
	attempts := c.Purse.Leftover()
	// Parts that keep their memory are saved one by one, because a literal of the whole
	// call would be built beside it first.
	c.bodies.Free()
	bodies := c.bodies
	tail, modelJSON := c.tail[:0], c.modelJSON[:0]
	*c = call{}
	c.connect()
	c.Target.Reuse(in)
	c.bodies = bodies
	c.tail, c.modelJSON = tail, modelJSON
	c.Purse.Attempts = attempts
}

// refuse answers with an error, or ends a started stream with an error event.
func (c *call) refuse(err error) {
	f := fault.From(err)
	c.stars.Fault(f)
	c.failure = f
	if f.Status() >= 500 && f.Source != fault.SourceProvider {
		c.Fail("request", f)
	}
	if c.headSent {
		return // the stream has told it already
	}
	c.sendFault(f)
}
