package session

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"gateway/shared/dialect/live"
	"gateway/shared/dialect/realtime"
	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
)

// Conn is one side: a WebSocket. One goroutine may read; the other methods may be called
// from any goroutine.
type Conn interface {
	// Next waits for the next message. Its bytes are read to their end before the next
	// is waited for. The error is an *Ended, or that of a broken connection.
	Next() (binary bool, r io.Reader, err error)
	// Write sends a message within a time limit. Messages are sent one after the other.
	Write(binary bool, p []byte) error
	// Ping checks that the peer is alive; if it does not respond for long, Next fails.
	Ping() error
	// Close closes the connection with a code and a reason, and waits briefly for the peer's
	// response; Next fails by then. A code that cannot be sent is omitted.
	Close(code int, reason string)
	// Linger ends the connection after its reader has ended, and lets the peer receive the last
	// messages.
	Linger()
	// Drop ends the connection immediately.
	Drop()
}

// Sockets makes connections. Processes without long-lived connections link none.
type Sockets interface {
	// Dial opens a connection. If the upgrade fails, the response has its status and its body.
	Dial(ctx context.Context, to *Address) (Conn, *http.Response, error)
	// Accept accepts a client's upgrade. The response has the headers of h.
	Accept(w http.ResponseWriter, req *http.Request, protocol string, h http.Header) (Conn, error)
}

// Address is the destination of a connection.
type Address struct {
	URL       *url.URL // http or https
	Header    http.Header
	Protocols []string
	Dialer    *egress.Dialer
}

// ClientConn is the client side of a connection after its first message has named the model, before
// any provider is called.
type ClientConn struct {
	Conn Conn
	Wire live.Wire
	live.FirstMessage
	First int64 // bytes of the first message
}

// Codes of a closed WebSocket (RFC 6455, 7.4).
const (
	Normal             = 1000
	CloseGoingAway     = 1001
	NotText            = 1003
	NoCode             = 1005
	CloseAbnormal      = 1006 // never sent
	NotUTF8            = 1007
	Policy             = 1008
	TooLarge           = 1009
	ServerError        = 1011
	CloseTryAgainLater = 1013
)

// Ended is the error of a connection that the other end has closed, or that broke the
// rules of WebSockets and was closed for it.
type Ended struct {
	Code   int
	Reason string
}

// Error implements error.
func (e *Ended) Error() string { return "session: the connection was closed: " + e.Reason }

// Restarting is the close reason sent to clients when a stopping gateway ends their sessions.
const Restarting = "the gateway is restarting; open a new session"

// CloseNear closes the client's side after its reader has ended with err.
func CloseNear(near Conn, err error) {
	e := &Ended{Code: CloseAbnormal}
	errors.As(err, &e)
	if e.Code == CloseAbnormal {
		near.Drop()
	} else {
		near.Close(e.Code, e.Reason) // nothing is sent if the client has closed it
	}
}

// UpstreamClose returns the code and the reason with which the provider's side is closed after
// the reader of the client's has ended with err: those of the client's close, unless they
// name a fault of its messages, which the provider has not sent.
func UpstreamClose(err error) (code int, reason string) {
	e := &Ended{}
	if errors.As(err, &e) && (e.Code == Normal || e.Code == CloseGoingAway || e.Code >= 3000 && e.Code <= 4999) {
		return e.Code, e.Reason
	}
	return Normal, ""
}

// CloseForClient returns the close code and reason sent to the client after the reader of the
// provider's side has ended with err.
func CloseForClient(far Conn, err error) (code int, reason string) {
	e := &Ended{}
	switch {
	case !errors.As(err, &e), e.Code == CloseAbnormal:
		return ServerError, "the connection to the provider was lost"
	case e.Code == TooLarge, e.Code == NotUTF8:
		far.Close(e.Code, e.Reason)
		return ServerError, "the provider sent a message that cannot be forwarded"
	}
	return e.Code, e.Reason
}

// Dialers are the ways out of WebSockets, made when they are needed first. The zero
// value is good.
type Dialers struct {
	once             sync.Once
	public, trusting *egress.Dialer
}

// Of is the way out of a policy; own: to a custom host.
func (d *Dialers) Of(p egress.Policy, own bool) *egress.Dialer {
	d.once.Do(func() { d.public, d.trusting = egress.NewDialer(p.WithoutTrusted()), egress.NewDialer(p) })
	if own {
		return d.trusting
	}
	return d.public
}

// Body is the body of a response that is a connection.
type Body struct{ Conn }

// Read implements io.Reader. It returns io.EOF: only messages can be read.
func (Body) Read([]byte) (int, error) { return 0, io.EOF }

// Close implements io.Closer.
func (b Body) Close() error {
	b.Drop()
	return nil
}

// inlet reads the messages of one side completely.
type inlet struct {
	conn  Conn
	lease egress.Lease // of the message that is read
	most  int64        // bytes of one
}

// each calls f with the messages, one after the other, until the side or f ends it. f must not
// retain their bytes.
func (in *inlet) each(ctx context.Context, f func(binary bool, p []byte) error) error {
	defer in.lease.Free()
	for {
		binary, r, err := in.conn.Next()
		if err != nil {
			return err
		}
		buf := buffer.New()
		if err = buf.ReadAll(ctx, &in.lease, r, -1, in.most); err != nil {
			err = NoMemory(err)
		} else {
			err = f(binary, buf.B)
		}
		buf.Free()
		in.lease.Free()
		if err != nil {
			return err
		}
	}
}

// NoMemory returns the reason for ending a session when there is no memory for a message.
func NoMemory(err error) error {
	switch {
	case errors.Is(err, buffer.ErrTooLarge):
		err = &Ended{TooLarge, "a message has more bytes than the gateway accepts"}
	case fault.Is(err, fault.ServiceUnavailable):
		err = &Ended{ServerError, "the gateway has no memory for another large message at present"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = &Ended{CloseAbnormal, ""}
	}
	return err
}

// end disconnects the client. Work in progress at the provider is ended, read to its end and
// charged; then the provider is disconnected.
func (s *Session) end(code int, reason string, why *fault.Fault) {
	if s.state.end(&Ended{code, reason}, why, false) {
		s.Client.Close(code, reason)
		s.leave()
	}
}

// clientLeft ends the session after the client has disconnected: nothing more is sent to it.
func (s *Session) clientLeft(err error) {
	if !s.state.end(nil, nil, false) {
		return
	}
	s.state.leftBy(err)
	CloseNear(s.Client, err)
	s.leave()
}

// leave disconnects the provider once nothing is in progress there, or after a while.
func (s *Session) leave() {
	s.cancelLeft()
	if s.turns.quiet() {
		s.Provider.Close(s.state.upstreamClose())
		return
	}
	s.state.after(s.Times.Drain, s.Provider.Drop)
}

// cancelLeft cancels responses in progress that no client waits for.
func (s *Session) cancelLeft() {
	if !s.state.isOver() {
		return
	}
	for _, id := range s.turns.toCancel() {
		_ = s.Provider.Write(false, realtime.Cancel(id)) // a provider that is gone is detected by its reader
	}
}

// leaveWhenDone ends a draining session after its last response has ended. If a goroutine is
// still sending that end to the client, that goroutine calls it again afterwards.
func (s *Session) leaveWhenDone() {
	over, leaves := s.state.leaves()
	switch {
	case !leaves || !s.turns.quiet():
	case over:
		s.Provider.Close(s.state.upstreamClose())
	default:
		s.end(CloseGoingAway, Restarting, nil)
	}
}

// providerLeft reports to the client how the provider has ended the session.
func (s *Session) providerLeft(err error) {
	s.turns.leave()
	code, reason := CloseForClient(s.Provider, err)
	if s.state.end(&Ended{code, reason}, nil, true) {
		s.Client.Close(code, reason)
		s.leave()
	}
	s.Provider.Drop()
}

// Drain ends the session once no response is under way.
func (s *Session) Drain() {
	s.state.drain()
	s.leaveWhenDone()
}

// Break ends the session now.
func (s *Session) Break() {
	s.end(CloseGoingAway, Restarting, nil)
	s.Provider.Drop()
}

// Summary returns how the session ended, for its record.
func (r *Result) Summary() string {
	switch {
	case r.Code == CloseAbnormal:
		return "lost"
	case r.ByClient:
		return "closed_by_client"
	case r.ByProvider:
		return "closed_by_provider"
	case r.Code == Policy:
		return "ended_by_policy"
	case r.Code == CloseGoingAway:
		return "ended_by_restart"
	}
	return "closed_by_provider"
}

// Closer is a session that can be ended.
type Closer interface {
	// Drain ends it once no response is under way; it does not wait.
	Drain()
	// Break ends it now.
	Break()
}

// Running are the sessions of a process. The zero value has none.
type Running struct {
	mu     sync.Mutex
	all    map[Closer]struct{}
	ending bool
	wg     sync.WaitGroup
}

// Add adds a session; ok is false if no new sessions are started.
func (r *Running) Add(s Closer) (end func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending {
		return nil, false
	}
	if r.all == nil {
		r.all = make(map[Closer]struct{})
	}
	r.all[s] = struct{}{}
	r.wg.Add(1)
	return func() {
		r.mu.Lock()
		delete(r.all, s)
		r.mu.Unlock()
		r.wg.Done()
	}, true
}

// Open reports whether new sessions are started.
func (r *Running) Open() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.ending
}

// Drain makes all sessions end once no response is in progress.
func (r *Running) Drain() {
	r.mu.Lock()
	r.ending = true
	all := make([]Closer, 0, len(r.all))
	for s := range r.all {
		all = append(all, s)
	}
	r.mu.Unlock()
	for _, s := range all {
		s.Drain()
	}
}

// lastTurn is how long a response may continue while sessions are draining.
const lastTurn = 20 * time.Second

// End ends all sessions and waits for them.
func (r *Running) End() {
	r.Drain()
	late := time.AfterFunc(lastTurn, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for s := range r.all {
			go s.Break() // ends with the session
		}
	})
	defer late.Stop()
	r.wg.Wait()
}
