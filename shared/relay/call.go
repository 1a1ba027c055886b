package relay

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/ledger"
	"gateway/shared/relay/form"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/tenant"
	"gateway/shared/usage"
	"gateway/shared/wire"
	"gateway/shared/wire/life"
)

// call is one request on its walk. It is pooled: nothing of it may be kept once
// finish has returned.
type call struct {
	*Relay
	rt    *Route
	w     http.ResponseWriter
	req   *http.Request
	base  context.Context // the request's values; never ends
	ctx   context.Context // lives on when the client goes
	stop  context.CancelFunc
	alive *lifetime // what ctx and stop are of
	start time.Time

	// What admission learned.
	who        *identity.Principal
	view       *resource.View
	ws         *tenant.Effective
	org        *tenant.Organisation
	ask        asked
	keyInAuth  bool    // the gateway key came in Authorization
	token      string  // the gateway key itself, so that it is never sent on
	behalf     *Behalf // who a request is made for that came from no client
	mine       bool    // the gateway does it itself: no provider is asked
	unread     bool    // the body's model could not be read: it is not JSON, or hides it
	pathID     string  // the variable of the route's path, escaped
	id         string  // unescaped
	rehearsing bool    // nothing is sent
	keptRead   bool
	kept       stored     // what the path says of things that providers keep
	form       *form.Form // of a multipart body
	in         []byte     // client body, when it is in memory
	inBuf      *buffer
	walk       wire.Walk
	checked    chat.Checked
	model      string // as the client named it, without @slug/
	slug       string // of @slug/model in the body
	stream     bool
	wantUsage  bool  // the client asked for usage in the stream
	outBound   int64 // most output tokens, times n
	outAssumed bool  // the request states no bound
	metadata   map[string]string
	merged     map[string]string                         // memory of metadata that no header brought
	walker     *route.Walk                               // nil: no route has been found
	way        route.Walk                                // its memory
	params     func(name string) (json.RawMessage, bool) // param as a value, made once
	routing    routing
	admitted   *ledger.Admission

	// What dispatch learned.
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
	bodySpent       bool         // the client's body was streamed and cannot be sent again
	caching         *caching     // nil: the target's answers are not kept
	upload          *form.Upload // the body that is streamed
	wanted          Demand       // what the price depends on besides tokens

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
	heldBuf     *buffer // beginning of a stream
	turnBuf     *buffer // translation of a stream
	tail        []byte  // last bytes, held until the books are written
	inBooks     bool
	afterwards  []func()
	lease       egress.Lease // memory of what the call holds whole
	backlog     backlog      // of the stream that is read
	opts        chat.Options
}

func (c *call) begin(r *Relay, w http.ResponseWriter, req *http.Request, rt *Route) {
	c.Relay, c.rt, c.w, c.req = r, rt, w, req
	c.start = r.Now()
	c.base = life.Endless(req.Context())
	c.alive = new(lifetime)
	c.alive.Begin(c.base)
	c.ctx, c.stop = &c.alive.Life, c.alive.End // a bare Life: who waits for its end needs no channel
	c.rec.ID = ulid.MustNewDefault(c.start).String()
	c.rec.Start = c.start
	c.rec.Endpoint, c.rec.Method, c.rec.Path = rt.Endpoint, req.Method, req.URL.EscapedPath()
	c.rec.CacheStatus = cacheDisabled
	// A client that goes while the provider is silent is noticed here, not by a
	// write. Nothing of the pooled call is touched from the other goroutine.
	c.alive.drain = r.DrainTime
	c.alive.client.Begin(req.Context(), c.alive.left)
}

// lifetime is the context of a call's work. It outlives the pooled call.
type lifetime struct {
	life.Life
	client life.Watch // over the client's own context
	drain  time.Duration
}

// left: the client has gone, and the answer is read on for a while.
func (l *lifetime) left() { time.AfterFunc(l.drain, l.End) }

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

// since is the time from arrival.
func (c *call) since() time.Duration { return c.Now().Sub(c.start) }

// strict tells whether the answer must keep to the OpenAI shape.
func (c *call) strict() bool { return !c.ask.Lenient && !c.to.lenient }

// fail reports a failure that the caller does not see.
func (c *call) fail(where string, err error) {
	if err == nil {
		return
	}
	if c.Faults != nil {
		c.Faults(where, err)
		return
	}
	logFault(where, c.rec.ID, err)
}

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
