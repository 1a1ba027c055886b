package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"gateway/shared/egress"
	"gateway/shared/provider"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
	"gateway/shared/wire/mask"
)

// Exchange is a request to an upstream and the sequence of messages in its response.
type Exchange struct {
	Status  int
	Session string // session id from the response headers
	// Challenges are the WWW-Authenticate values of a rejected request.
	Challenges []string
	Events     bool // the response is an event stream
	body       io.ReadCloser
	parser     wire.SSEParser
	at         position
	ready      [][]byte
	buf        []byte
	ended      bool
	secrets    []string // credentials of the request, redacted from messages
}

// Resumes returns the id of the last event and the wait before the stream is resumed. ok is
// false if the stream cannot be resumed.
func (x *Exchange) Resumes() (after string, wait time.Duration, ok bool) {
	return x.at.id, x.at.wait, x.Events && x.at.id != ""
}

// SingleMessage returns an exchange with one message.
func SingleMessage(message []byte) *Exchange {
	return &Exchange{Status: http.StatusOK, ready: [][]byte{message}, ended: true}
}

// secrets returns the credentials of a request to the server. Servers echo them in errors,
// descriptions and results, so they are redacted from every message.
func (u *Upstream) secrets(sent http.Header) []string {
	return provider.HeaderSecrets(nil, sent, u.Client, u.Secret)
}

// Send makes a request of the streamable HTTP transport. h takes precedence over configured
// headers. The caller handles a status without messages.
func (u *Upstream) Send(ctx context.Context, method string, h http.Header, body []byte) (*Exchange, error) {
	req, err := http.NewRequestWithContext(ctx, method, u.URL, nil)
	if err != nil {
		return nil, upstream.Fail(0, "the server's address is invalid")
	}
	if body != nil { // egress requires bodies of this type
		req.Body, req.ContentLength = egress.NewBody(body), int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return egress.NewBody(body), nil }
	}
	for name, values := range u.Headers {
		req.Header[name] = values
	}
	for name, values := range h {
		req.Header[name] = values
	}
	if req.Header.Set("Accept", "application/json, text/event-stream"); method == http.MethodGet {
		req.Header.Set("Accept", "text/event-stream")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := u.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, upstream.Unreachable("the server", err)
	}
	if resp.StatusCode/100 == 3 {
		resp.Body.Close()
		return nil, upstream.Fail(resp.StatusCode, "the server responded with a redirect; redirects are not followed")
	}
	secrets := u.secrets(req.Header)
	mask.Header(resp.Header, secrets)
	x := &Exchange{Status: resp.StatusCode, Session: resp.Header.Get(HeaderSession), Challenges: resp.Header["Www-Authenticate"], body: resp.Body, secrets: secrets}
	x.parser.MaxEvent = MaxResponse
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // an invalid type is not one of those below
	switch {
	case media == "text/event-stream" && resp.StatusCode == http.StatusOK:
		x.Events = true
	case media == "application/json":
		raw, err := readBody(resp)
		if err != nil {
			x.Close()
			return nil, readFailure(err)
		}
		if len(bytes.TrimSpace(raw)) > 0 {
			x.ready = [][]byte{raw}
		}
		x.ended = true
	default:
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // drains the body so that the connection can be reused
		x.ended = true
	}
	return x, nil
}

// maxPrealloc limits the memory allocated because of a Content-Length.
const maxPrealloc = 64 << 10

// readBody reads a response into a buffer of its announced size.
func readBody(resp *http.Response) ([]byte, error) {
	body := egress.CapBody(resp.Body, MaxResponse)
	if resp.ContentLength <= 0 || resp.ContentLength > maxPrealloc {
		return io.ReadAll(body)
	}
	raw := bytes.NewBuffer(make([]byte, 0, resp.ContentLength+bytes.MinRead))
	_, err := raw.ReadFrom(body)
	return raw.Bytes(), err
}

// Close ends the exchange.
func (x *Exchange) Close() {
	if x.body != nil {
		x.body.Close()
	}
}

// Next returns the next message, which is JSON without duplicate fields, or io.EOF after the
// last one.
func (x *Exchange) Next() ([]byte, error) {
	for len(x.ready) == 0 {
		if x.ended {
			return nil, io.EOF
		}
		if err := x.read(); err != nil {
			return nil, err
		}
	}
	next := x.ready[0]
	x.ready = x.ready[1:]
	mask.Bytes(next, x.secrets)
	if wire.CheckStrict(next, maxDepth) != nil {
		return nil, upstream.Fail(x.Status, "the server's response is not JSON")
	}
	return next, nil
}

func (x *Exchange) read() error {
	if x.buf == nil {
		x.buf = make([]byte, 16<<10)
	}
	take := func(_ string, data []byte) error {
		if len(bytes.TrimSpace(data)) > 0 {
			x.ready = append(x.ready, bytes.Clone(data))
		}
		return nil
	}
	n, err := x.body.Read(x.buf)
	x.at.feed(x.buf[:n])
	if fed := x.parser.Feed(x.buf[:n], take); fed != nil {
		return readFailure(fed)
	}
	switch {
	case errors.Is(err, io.EOF):
		x.ended = true
		if fed := x.parser.End(take); fed != nil {
			return readFailure(fed)
		}
	case err != nil:
		return readFailure(err)
	}
	return nil
}

// position tracks how far an event stream was read: the id of the last complete event and the
// reconnection time.
type position struct {
	id        string
	wait      time.Duration
	line      []byte // current line, up to maxLine bytes
	pendingID string // id of the incomplete event
	pending   bool   // the incomplete event has an id
}

// maxLine is the length of lines that are parsed. Longer event ids are ignored.
const maxLine = 1 << 10

// feed parses the next bytes of the stream.
func (p *position) feed(in []byte) {
	for len(in) > 0 {
		end := bytes.IndexAny(in, "\r\n")
		part := in
		if end >= 0 {
			part = in[:end]
		}
		if room := maxLine - len(p.line); room > 0 {
			p.line = append(p.line, part[:min(len(part), room)]...)
		}
		if end < 0 {
			return
		}
		after := in[end] == '\r' && end+1 < len(in) && in[end+1] == '\n'
		p.endLine()
		if in = in[end+1:]; after {
			in = in[1:]
		}
	}
}

// endLine parses a line. A CRLF that was split between two reads looks like an additional empty
// line, which may end an event early; the event id is complete by then.
func (p *position) endLine() {
	line := p.line
	p.line = p.line[:0]
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch {
	case len(line) == 0:
		if p.pending {
			p.id, p.pending = p.pendingID, false
		}
	case string(name) == "id" && len(line) < maxLine && bytes.IndexByte(value, 0) < 0:
		p.pendingID, p.pending = string(value), true
	case string(name) == "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			p.wait = time.Duration(ms) * time.Millisecond
		}
	}
}
