package session

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"gateway/shared/dialect/live"
	"gateway/shared/egress"
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

// Maker makes connections. Processes without long-lived connections link none.
type Maker interface {
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

// Opened is the client side of a connection after its first message has named the model, before
// any provider is called.
type Opened struct {
	Near Conn
	Wire live.Wire
	live.Opening
	First int64 // bytes of the first message
}

// Codes of a closed WebSocket (RFC 6455, 7.4).
const (
	Normal      = 1000
	GoingAway   = 1001
	NotText     = 1003
	NoCode      = 1005
	Lost        = 1006 // never sent
	NotUTF8     = 1007
	Policy      = 1008
	TooLarge    = 1009
	ServerError = 1011
	TryLater    = 1013
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
	e := &Ended{Code: Lost}
	errors.As(err, &e)
	if e.Code == Lost {
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
	if errors.As(err, &e) && (e.Code == Normal || e.Code == GoingAway || e.Code >= 3000 && e.Code <= 4999) {
		return e.Code, e.Reason
	}
	return Normal, ""
}

// CloseForClient returns the close code and reason sent to the client after the reader of the
// provider's side has ended with err.
func CloseForClient(far Conn, err error) (code int, reason string) {
	e := &Ended{}
	switch {
	case !errors.As(err, &e), e.Code == Lost:
		return ServerError, "the connection to the provider was lost"
	case e.Code == TooLarge, e.Code == NotUTF8:
		far.Close(e.Code, e.Reason)
		return ServerError, "the provider sent a message that cannot be passed on"
	}
	return e.Code, e.Reason
}
