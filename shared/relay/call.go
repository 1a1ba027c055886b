package relay

import (
	"crypto/rand"
	"encoding/hex"
	"gateway/shared/relay/patience"
	"net/http"
	"time"

	"github.com/google/uuid"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/relay/form"
	"gateway/shared/usage"
	"gateway/shared/wire"
)

// call is one request on its walk. It is pooled: nothing of it may be kept once
// finish has returned.
type call struct {
	plan
	w http.ResponseWriter

	// What dispatch learned.
	demands                           // of the body for the target
	patience        patience.Patience // of the attempt under way
	admitted        *ledger.Admission
	to              choice
	admittedTargets []*ledger.Admission
	reserved        *ledger.Reservation // of key and workspace, for the whole request
	held            targetHold          // of the target being tried
	decoded         *chat.Request       // canonical form, made once
	decodedOwn      bool                // decoded is of the client's own body, not of an edited one
	loss            chat.Loss
	media           media     // fetched for targets that take bytes only
	edited          wire.Walk // of a body that a config has changed
	sendBuf         *buffer
	sending         *outgoing // nil until a body in memory is sent
	modelJSON       []byte
	injected        bool         // usage was asked for on the client's behalf
	further         bool         // a further part of the answer that is being sent is read
	bodySpent       bool         // the client's body was streamed and cannot be sent again
	caching         *caching     // nil: the target's answers are not kept
	upload          *form.Upload // the body that is streamed

	// What was sent back.
	headSent    bool
	status      int
	answered    int64 // bytes of the answer's body
	firstByte   time.Duration
	gone        bool          // the client went
	gathers     bool          // what is written is flushed before a wait for the provider
	written     bool          // something was written and not flushed
	broken      bool          // the answer must be cut, not ended
	endFault    *fault.Fault  // of the provider: why an answer that had begun did not end well
	sentHeader  http.Header   // of the request that the target was sent last
	told        http.Header   // of the answer that is sent, or became an error
	waited      time.Duration // for the provider
	rec         usage.Record
	bodies      usage.Bodies
	outBuf      *buffer // capture of the answer for the log
	sealedBuf   *buffer // what the log keeps, sealed
	logBuf      *buffer // headers for the log
	receivedBuf *buffer // capture of the provider's answer
	plain       plain   // an answer that came whole
	heldBuf     *buffer // beginning of a stream
	turnBuf     *buffer // translation of a stream
	tail        []byte  // last bytes, held until the books are written
	inBooks     bool
	afterwards  []func()
	leased      egress.Lease // of the request
	backlog     backlog      // of the stream that is read
	opts        chat.Options
}

func (c *call) begin(r *Relay, w http.ResponseWriter, req *http.Request, rt *Route) {
	c.arrive(r, req, rt)
	c.w, c.lease = w, &c.leased
	c.rec.CacheStatus = cacheDisabled
}

// reset drops every reference, so that the pool keeps no request alive.
func (c *call) reset() {
	c.alive.client.Stop()
	c.stop()
	c.lease.Free()
	if !c.sending.busy() {
		c.inBuf.free()
		c.sendBuf.free()
	}
	c.outBuf.free()
	c.logBuf.free()
	c.sealedBuf.free()
	c.receivedBuf.free()
	c.heldBuf.free()
	c.plain.free()
	c.turnBuf.free()
	clear(c.afterwards)
	c.walk.Spans = c.walk.Spans[:0] // of another body
	c.checked.Keys = nil            // likewise
	clear(c.checked.Excess)
	c.checked.Excess = c.checked.Excess[:0]
	clear(c.rec.Attempts)
	attempts := c.rec.Attempts[:0]
	// What keeps its memory is taken out one by one: a literal of all would be
	// built beside the call first.
	walk, edited, checked := c.walk, c.edited, c.checked
	tail, modelJSON, afterwards, params := c.tail[:0], c.modelJSON[:0], c.afterwards[:0], c.params
	merged, sentHeaders := c.merged, c.bodies.SentHeaders[:0]
	clear(merged)
	*c = call{}
	c.walk, c.edited, c.checked = walk, edited, checked
	c.merged, c.bodies.SentHeaders = merged, sentHeaders
	c.tail, c.modelJSON, c.afterwards, c.params = tail, modelJSON, afterwards, params
	c.rec.Attempts = attempts
}

// newTraceID makes a random UUID. The package's own way needs memory for its bytes.
func newTraceID() string {
	var b uuid.UUID
	_, _ = rand.Read(b[:])                      // never fails (crypto/rand)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // version 4, variant of RFC 9562
	return b.String()
}

func newSpanID() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// strict tells whether the answer must keep to the OpenAI shape.
func (c *call) strict() bool { return !c.ask.Lenient && !c.to.lenient }

// refuse answers with an error, or ends a started stream with an error event.
func (c *call) refuse(err error) {
	f := fault.From(err)
	c.hideInFault(f)
	c.rec.ErrorCode, c.rec.ErrorMessage = string(f.Code), recorded(f)
	if f.Status() >= 500 && f.Source != fault.SourceProvider {
		c.fail("request", f)
	}
	if c.headSent {
		return // the stream has told it already
	}
	c.sendFault(f)
}
