package realtime

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	wires "gateway/shared/dialect/live"
	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/relay/session"
)

// Timeouts.
const (
	openTime  = 20 * time.Second // to open a connection to a provider
	writeTime = 30 * time.Second // for the peer to receive a message
	silence   = 75 * time.Second // after which a silent peer is gone
	closeTime = time.Second      // to respond to a close
	maxLinger = 1 << 20          // bytes read from a closed peer
)

// writeBuffer is pooled and only used while a message is written, so that idle connections hold
// none. A provider gets larger messages in pieces of it, because clients mask their frames.
const (
	readBuffer  = 4 << 10
	writeBuffer = 16 << 10
)

var buffers sync.Pool

// SocketMaker opens and accepts connections. The zero value is ready.
type SocketMaker struct{}

// Accept implements session.Sockets.
func (SocketMaker) Accept(w http.ResponseWriter, req *http.Request, protocol string, h http.Header) (session.Conn, error) {
	var protocols []string
	if protocol != "" {
		protocols = []string{protocol}
	}
	up := websocket.Upgrader{
		Subprotocols:    protocols,
		WriteBufferSize: writeBuffer, WriteBufferPool: &buffers, // and the server's buffer to read with
		CheckOrigin: func(*http.Request) bool { return true }, // the key authenticates, for any origin
		Error:       func(http.ResponseWriter, *http.Request, int, error) {},
	}
	raw := &inspected{}
	ws, err := up.Upgrade(hijacker{w, raw}, req, h)
	if err != nil {
		return nil, fault.Invalid("upgrade", "the connection cannot become a WebSocket: it is not HTTP/1.1, or the handshake violates RFC 6455").WithCause(err)
	}
	return wrap(ws, raw, 0), nil
}

// hijacker finds the connection of a wrapped response writer.
type hijacker struct {
	http.ResponseWriter
	raw *inspected
}

// Hijack implements http.Hijacker.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, b, err := http.NewResponseController(h.ResponseWriter).Hijack()
	*h.raw = inspected{Conn: conn}
	if err == nil && b.Reader.Buffered() > 0 { // the library would close it silently
		_ = conn.SetWriteDeadline(time.Now().Add(closeTime))
		_, _ = io.WriteString(conn, early) // a client that is gone needs no response
	}
	return h.raw, b, err
}

// early is the response to a client that sends data before the response to its handshake. A
// proxy could read those bytes as another request while the gateway reads them as part of the
// session.
const early = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 142\r\n\r\n" +
	`{"error":{"message":"body: no data may be sent before the response to the handshake","type":"invalid_request_error","code":"invalid_request"}}`

// Dial implements session.Sockets.
func (SocketMaker) Dial(ctx context.Context, to *session.Address) (session.Conn, *http.Response, error) {
	raw := &inspected{}
	inspect := func(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			*raw = inspected{Conn: conn, frames: frames{response: true}}
			return raw, nil
		}
	}
	d := websocket.Dialer{
		NetDialContext: inspect(to.Dialer.Dial), NetDialTLSContext: inspect(to.Dialer.DialTLS),
		HandshakeTimeout: openTime, ReadBufferSize: readBuffer, WriteBufferSize: writeBuffer, WriteBufferPool: &buffers,
		Subprotocols: to.Protocols,
	}
	scheme := "ws://"
	if to.URL.Scheme == "https" {
		scheme = "wss://"
	}
	ws, resp, err := d.DialContext(ctx, scheme+to.URL.Host+to.URL.RequestURI(), to.Header) // exact addresses are opaque
	if err != nil {
		if resp != nil && errors.Is(err, websocket.ErrBadHandshake) {
			return nil, resp, nil
		}
		return nil, nil, err
	}
	return wrap(ws, raw, session.ServerError), resp, nil
}

// conn is one side.
type conn struct {
	ws    *websocket.Conn
	fault int           // close code if this side breaks the protocol; 0: the code in the error
	write chan struct{} // contains one element while a message is written
	ends  atomic.Bool   // a close was sent
	once  sync.Once
}

func wrap(ws *websocket.Conn, raw *inspected, fault int) *conn {
	c := &conn{ws: ws, fault: fault, write: make(chan struct{}, 1)}
	raw.tell = func(why *session.Ended) { c.Close(why.Code, why.Reason) }
	c.alive()
	ws.SetPongHandler(func(string) error { c.alive(); return nil })
	answer := ws.PingHandler()
	ws.SetPingHandler(func(text string) error { c.alive(); return answer(text) })
	return c
}

// alive records that the peer has sent something.
func (c *conn) alive() {
	if !c.ends.Load() {
		_ = c.ws.SetReadDeadline(time.Now().Add(silence))
	}
}

// Next implements session.Conn.
func (c *conn) Next() (binary bool, r io.Reader, err error) {
	kind, r, err := c.ws.NextReader()
	if err != nil {
		return false, nil, c.ended(err)
	}
	c.alive()
	return kind == websocket.BinaryMessage, r, nil
}

// ended returns the reason why reading has stopped.
func (c *conn) ended(err error) error {
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		return &session.Ended{Code: closed.Code, Reason: closed.Text}
	}
	var net net.Error
	if errors.As(err, &net) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &session.Ended{Code: session.CloseAbnormal}
	}
	why := &session.Ended{Code: websocket.CloseProtocolError, Reason: "the WebSocket protocol was violated"}
	errors.As(err, &why)
	c.Close(why.Code, why.Reason) // the library has usually sent it
	if c.fault != 0 {
		return &session.Ended{Code: c.fault, Reason: "the provider violated the WebSocket protocol"}
	}
	return why
}

var errSlow = errors.New("socket: the peer does not read")

// Write implements session.Conn.
func (c *conn) Write(binary bool, p []byte) error {
	select {
	case c.write <- struct{}{}:
	default:
		late := time.NewTimer(writeTime)
		defer late.Stop()
		select {
		case c.write <- struct{}{}:
		case <-late.C:
			return errSlow
		}
	}
	defer func() { <-c.write }()
	kind := websocket.TextMessage
	if binary {
		kind = websocket.BinaryMessage
	}
	_ = c.ws.SetWriteDeadline(time.Now().Add(writeTime)) // the write fails as well
	return c.ws.WriteMessage(kind, p)
}

// Ping implements session.Conn.
func (c *conn) Ping() error {
	return c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(closeTime))
}

// maxReason limits the reason of a close, in bytes.
const maxReason = 123

// Close implements session.Conn.
func (c *conn) Close(code int, reason string) {
	var frame []byte
	if sendable(code) {
		frame = websocket.FormatCloseMessage(code, strings.ToValidUTF8(reason[:min(len(reason), maxReason)], ""))
	}
	err := c.ws.WriteControl(websocket.CloseMessage, frame, time.Now().Add(closeTime))
	if err != nil && !errors.Is(err, websocket.ErrCloseSent) {
		c.Drop()
		return
	}
	c.ends.Store(true)
	_ = c.ws.SetReadDeadline(time.Now().Add(closeTime))
}

// sendable reports whether a code may be sent in a close frame (RFC 6455, 7.4).
func sendable(code int) bool {
	switch {
	case code >= 3000 && code <= 4999:
		return true
	case code < 1000 || code > 1014:
		return false
	}
	return code != 1004 && code != session.NoCode && code != session.CloseAbnormal
}

// Linger implements session.Conn.
func (c *conn) Linger() {
	raw := c.ws.NetConn()
	if tcp, ok := raw.(interface{ CloseWrite() error }); ok && tcp.CloseWrite() == nil {
		_ = raw.SetReadDeadline(time.Now().Add(closeTime))
		_, _ = io.CopyN(io.Discard, raw, maxLinger) // unread data would reset the connection
	}
	c.Drop()
}

// Drop implements session.Conn.
func (c *conn) Drop() { c.once.Do(func() { _ = c.ws.Close() }) }

// MaxFirstMessage limits a first message, in bytes.
const MaxFirstMessage = 1 << 20

// OpenLive waits for a client's first message, at most within. The error is a fault of it, or a
// *session.Ended.
func OpenLive(ctx context.Context, within time.Duration, near session.Conn, wire wires.Wire, memory *egress.Memory, tenant string) (*session.ClientConn, error) {
	tooLate := fmt.Sprintf("The first message of a session, which names its model, must arrive within %v", within)
	late := time.AfterFunc(within, func() { near.Close(session.Policy, tooLate) })
	defer late.Stop()
	var lease egress.Lease
	lease.Of(memory, tenant)
	defer lease.Free()
	binary, buf, err := message(ctx, near, &lease, MaxFirstMessage)
	if err != nil {
		if !late.Stop() {
			return nil, fault.New(fault.RequestTimeout, "", tooLate)
		}
		return nil, err
	}
	defer buf.Free()
	if !binary && !utf8.Valid(buf.B) {
		return nil, &session.Ended{Code: session.NotUTF8, Reason: "a text message must be UTF-8"}
	}
	o := &session.ClientConn{Conn: near, Wire: wire, First: int64(len(buf.B))}
	o.FirstMessage, err = wire.Opens(buf.B)
	return o, err
}

// message reads the next message of a side completely. The caller frees its buffer.
func message(ctx context.Context, c session.Conn, lease *egress.Lease, most int64) (binary bool, buf *buffer.Buffer, err error) {
	binary, r, err := c.Next()
	if err != nil {
		return false, nil, err
	}
	buf = buffer.New()
	if err = buf.ReadAll(ctx, lease, r, -1, most); err == nil {
		return binary, buf, nil
	}
	buf.Free()
	return false, nil, session.NoMemory(err)
}

// CloseCode returns the close code for a fault.
func CloseCode(f *fault.Fault) int {
	switch status := f.Status(); {
	case f.Code == fault.ServiceUnavailable:
		return session.CloseGoingAway
	case status == 429:
		return session.CloseTryAgainLater
	case status >= 500:
		return session.ServerError
	}
	return session.Policy
}

// reason returns the close reason for a fault: the field and the message.
func reason(f *fault.Fault) string {
	if f.Field == "" || strings.Contains(f.Message, f.Field) {
		return f.Message
	}
	return f.Field + ": " + f.Message
}

// RejectLive sends a client the reason why no session starts, and disconnects it.
func RejectLive(near session.Conn, wire wires.Wire, f *fault.Fault, id string) {
	if told := wire.Error(f, "event_"+id, ""); told != nil {
		_ = near.Write(false, told) // a client that is gone needs no reason
	}
	near.Close(CloseCode(f), reason(f))
	for { // until it has responded, or its time is over
		if _, _, err := near.Next(); err != nil {
			break
		}
	}
	near.Linger()
}
