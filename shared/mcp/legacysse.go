package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"

	"gateway/shared/egress"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
	"gateway/shared/wire/mask"
)

// legacySSE is the transport of version 2024-11-05: all responses arrive on one event stream;
// its first event contains the address for requests.
type legacySSE struct {
	post   string // address for requests
	events chan []byte
	failed error // set before events is closed
	cancel context.CancelFunc
	done   chan struct{}
}

// openLegacySSE opens the stream and waits for its first event.
func (u *Upstream) openLegacySSE(ctx context.Context) (*legacySSE, error) {
	// The stream outlives ctx and ends with close.
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel) // cancels only until the stream is open
	req, err := (&Session{up: u}).request(within, http.MethodGet, u.URL, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := u.RoundTripper.RoundTrip(req)
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, upstream.Unreachable("the server", err)
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // an invalid type is not an event stream
	if resp.StatusCode != http.StatusOK || media != "text/event-stream" {
		resp.Body.Close()
		cancel()
		return nil, upstream.Fail(resp.StatusCode, "the server responded with status %d and no stream", resp.StatusCode)
	}
	s := &legacySSE{events: make(chan []byte, 16), cancel: cancel, done: make(chan struct{})}
	where := make(chan string, 1)
	go s.receive(within, resp.Body, u.secrets(req.Header), where)
	select {
	case at, ok := <-where:
		if s.post = sameOriginURL(u.URL, at); !ok || s.post == "" {
			s.close()
			return nil, upstream.Fail(resp.StatusCode, "the server's stream does not begin with an endpoint on the same origin")
		}
	case <-ctx.Done():
		s.close()
		return nil, upstream.Unreachable("the server", ctx.Err())
	}
	stop()
	return s, nil
}

// sameOriginURL resolves an address that an upstream named. It returns "" for another origin,
// so that credentials are not sent elsewhere.
func sameOriginURL(base, named string) string {
	b, err := url.Parse(base)
	if err != nil {
		return ""
	}
	at, err := b.Parse(named)
	if err != nil || at.Scheme != b.Scheme || at.Host != b.Host || named == "" {
		return ""
	}
	return at.String()
}

// receive forwards events until the stream ends.
func (s *legacySSE) receive(ctx context.Context, body io.ReadCloser, secrets []string, where chan<- string) {
	defer close(s.done)
	defer close(s.events)
	defer close(where)
	defer body.Close()
	var p wire.SSEParser
	p.MaxEvent = MaxResponse
	received := false
	take := func(event string, data []byte) error {
		if event == "endpoint" && !received {
			received = true
			where <- string(bytes.TrimSpace(data))
			return nil
		}
		data = bytes.Clone(data)
		mask.Bytes(data, secrets)
		select {
		case s.events <- data:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	buf := make([]byte, 16<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if fed := p.Feed(buf[:n], take); fed != nil {
				s.failed = fed
				return
			}
		}
		if err != nil {
			if s.failed = err; errors.Is(err, io.EOF) {
				s.failed = io.ErrUnexpectedEOF
			}
			return
		}
	}
}

// close ends the stream and its goroutine.
func (s *legacySSE) close() {
	s.cancel()
	<-s.done
}

// handleServerMessage handles a message that is not a response. Requests other than ping are
// declined, because no capability was declared for them.
func (s *legacySSE) handleServerMessage(ctx context.Context, of *Session, data []byte) {
	m, bad := ReadMessage(data) // parseResponse has validated it
	switch {
	case bad != nil:
	case m.IsRequest():
		_ = s.postMessage(ctx, of, DeclineRequest(m)) // the server waits for the response; the caller does not
	case m.IsNotification() && of.OnNotification != nil:
		of.OnNotification(data)
	}
}

// postMessage posts a message.
func (s *legacySSE) postMessage(ctx context.Context, of *Session, body []byte) error {
	req, err := of.request(ctx, http.MethodPost, s.post, body)
	if err != nil {
		return err
	}
	resp, err := of.up.RoundTripper.RoundTrip(req)
	if err != nil {
		return upstream.Unreachable("the server", err)
	}
	_, _ = io.Copy(io.Discard, egress.CapBody(resp.Body, 64<<10)) // only the status matters
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return upstream.Fail(resp.StatusCode, "the server responded with status %d", resp.StatusCode)
	}
	return nil
}

// send posts a message and waits for its response on the stream.
func (s *legacySSE) send(ctx context.Context, of *Session, m *Message, body []byte) (*Message, error) {
	if err := s.postMessage(ctx, of, body); err != nil {
		return nil, err
	}
	if m.IsNotification() {
		return nil, nil
	}
	for {
		select {
		case data, open := <-s.events:
			if !open {
				return nil, readFailure(s.failed)
			}
			answer, err := parseResponse(data, m)
			if err != nil || answer != nil {
				return answer, err
			}
			s.handleServerMessage(ctx, of, data)
		case <-ctx.Done():
			return nil, upstream.Unreachable("the server", ctx.Err())
		}
	}
}
