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

// oldStream is the transport of 2024-11-05: one stream that all answers come on, whose
// first event says where requests go.
type oldStream struct {
	post   string // where requests go
	events chan []byte
	failed error // why events is closed
	cancel context.CancelFunc
	done   chan struct{}
}

// openStream opens the stream and waits for its first event.
func (u *Upstream) openStream(ctx context.Context) (*oldStream, error) {
	// The stream outlives the call that opens it and ends with close.
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel) // until it is open
	req, err := (&Session{up: u}).request(within, http.MethodGet, u.URL, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := u.Via.RoundTrip(req)
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, upstream.Unreachable("the server", err)
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // no type is none of ours
	if resp.StatusCode != http.StatusOK || media != "text/event-stream" {
		resp.Body.Close()
		cancel()
		return nil, upstream.Fail(resp.StatusCode, "the server answers with status %d and no stream", resp.StatusCode)
	}
	s := &oldStream{events: make(chan []byte, 16), cancel: cancel, done: make(chan struct{})}
	where := make(chan string, 1)
	go s.receive(within, resp.Body, u.secrets(req.Header), where)
	select {
	case at, ok := <-where:
		if s.post = sameHost(u.URL, at); !ok || s.post == "" {
			s.close()
			return nil, upstream.Fail(resp.StatusCode, "the server's stream does not begin with an address of its own")
		}
	case <-ctx.Done():
		s.close()
		return nil, upstream.Unreachable("the server", ctx.Err())
	}
	stop()
	return s, nil
}

// sameHost is the address that an upstream names, if it is one of the same origin:
// credentials go nowhere else.
func sameHost(base, named string) string {
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

// receive hands on the events until the stream ends.
func (s *oldStream) receive(ctx context.Context, body io.ReadCloser, secrets []string, where chan<- string) {
	defer close(s.done)
	defer close(s.events)
	defer close(where)
	defer body.Close()
	var p wire.SSEParser
	p.MaxEvent = MaxAnswer
	told := false
	take := func(event string, data []byte) error {
		if event == "endpoint" && !told {
			told = true
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
func (s *oldStream) close() {
	s.cancel()
	<-s.done
}

// beside takes a message of the server that is no answer. A request is refused, because
// nothing was declared that allows it; a ping is answered.
func (s *oldStream) beside(ctx context.Context, of *Session, data []byte) {
	m, bad := ReadMessage(data) // was read as one before
	switch {
	case bad != nil:
	case m.IsRequest():
		_ = s.deliver(ctx, of, Declined(m)) // the server waits for it, and nobody here
	case m.IsNotification() && of.Heard != nil:
		of.Heard(data)
	}
}

// deliver posts a message.
func (s *oldStream) deliver(ctx context.Context, of *Session, body []byte) error {
	req, err := of.request(ctx, http.MethodPost, s.post, body)
	if err != nil {
		return err
	}
	resp, err := of.up.Via.RoundTrip(req)
	if err != nil {
		return upstream.Unreachable("the server", err)
	}
	_, _ = io.Copy(io.Discard, egress.CapBody(resp.Body, 64<<10)) // nothing of the answer counts but its status
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return upstream.Fail(resp.StatusCode, "the server answers with status %d", resp.StatusCode)
	}
	return nil
}

// send posts a message; an answer to it comes on the stream.
func (s *oldStream) send(ctx context.Context, of *Session, m *Message, body []byte) (*Message, error) {
	if err := s.deliver(ctx, of, body); err != nil {
		return nil, err
	}
	if m.IsNotification() {
		return nil, nil
	}
	for {
		select {
		case data, open := <-s.events:
			if !open {
				return nil, broken(s.failed)
			}
			answer, err := parseAnswer(data, m)
			if err != nil || answer != nil {
				return answer, err
			}
			s.beside(ctx, of, data)
		case <-ctx.Done():
			return nil, upstream.Unreachable("the server", ctx.Err())
		}
	}
}
