package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"gateway/shared/egress"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
	"gateway/shared/wire/mask"
)

// Headers of the protocol, in the spelling of net/http.
const (
	HeaderSession = "Mcp-Session-Id"
	HeaderVersion = "Mcp-Protocol-Version"
)

// MaxAnswer bounds one answer of an upstream, in bytes.
const MaxAnswer = 12 << 20

// Upstream is how a server is reached.
type Upstream struct {
	URL       string
	Transport string
	Headers   http.Header // credentials, and what is configured
	Client    []string    // names of those headers that were forwarded from the client
	Secret    []string    // names of those headers that a secret manager fills
	Via       http.RoundTripper
}

// Session is a conversation with an upstream, after initialize.
type Session struct {
	up      *Upstream
	ID      string // the upstream's; "": it keeps none
	Version string
	Hello   json.RawMessage // the result of initialize
	// Heard is told of notifications that come on the stream of the transport sse; nil: nobody is.
	Heard  func(message []byte)
	stream *oldStream // of the transport sse
	calls  int
}

// hello is what the gateway says of itself.
func hello(version string, capabilities json.RawMessage) json.RawMessage {
	raw, _ := json.Marshal(map[string]any{ // texts only
		"protocolVersion": version, "capabilities": capabilities,
		"clientInfo": OwnName,
	})
	return raw
}

// Connect begins a session. capabilities are those of the client that is spoken
// for; nil for none.
func (u *Upstream) Connect(ctx context.Context, capabilities json.RawMessage) (*Session, error) {
	if capabilities == nil {
		capabilities = json.RawMessage("{}")
	}
	s := &Session{up: u}
	if u.Transport == TransportSSE {
		var err error
		if s.stream, err = u.openStream(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.begin(ctx, capabilities); err != nil {
		s.Close()
		if u.older(ctx, err) {
			return nil, upstream.Fail(http.StatusOK, "the server speaks by the older transport, with a stream for its answers: the integration's transport must be sse")
		}
		return nil, err
	}
	return s, nil
}

// lookOlder is how long a stream is waited for that would show the older transport; newer
// servers have a stream that stays silent.
const lookOlder = 3 * time.Second

// older tells whether a server that refuses a posted initialize has a stream of the older
// transport.
func (u *Upstream) older(ctx context.Context, err error) bool {
	var refused *upstream.Failure
	if u.Transport == TransportSSE || !errors.As(err, &refused) {
		return false
	}
	switch refused.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
	default:
		return false
	}
	within, cancel := context.WithTimeout(ctx, lookOlder)
	defer cancel()
	stream, err := u.openStream(within)
	if err != nil {
		return false
	}
	stream.close()
	return true
}

func (s *Session) begin(ctx context.Context, capabilities json.RawMessage) error {
	result, err := s.Call(ctx, "initialize", hello(Versions[0], capabilities))
	if err != nil {
		return err
	}
	var said struct {
		Version string `json:"protocolVersion"`
	}
	if json.Unmarshal(result, &said) != nil || said.Version == "" {
		return upstream.Fail(http.StatusOK, "the server's answer to initialize names no version of the protocol")
	}
	s.Version, s.Hello = said.Version, result
	return s.Notify(ctx, "notifications/initialized")
}

// Close ends what the session holds. The upstream's own end is told by End.
func (s *Session) Close() {
	if s.stream != nil {
		s.stream.close()
	}
}

// End tells the upstream that the session is over; one that cannot be told forgets it
// by itself.
func (s *Session) End(ctx context.Context) {
	defer s.Close()
	if s.ID == "" || s.stream != nil {
		return
	}
	req, err := s.request(ctx, http.MethodDelete, s.up.URL, nil)
	if err != nil {
		return
	}
	if resp, err := s.up.Via.RoundTrip(req); err == nil {
		resp.Body.Close()
	}
}

// Call sends a request and waits for its answer. An error of the upstream is an
// *Error, anything else a *upstream.Failure.
func (s *Session) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	s.calls++
	m := &Message{Version: "2.0", ID: json.RawMessage(strconv.Itoa(s.calls)), Method: method, Params: params}
	answer, err := s.send(ctx, m)
	switch {
	case err != nil:
		return nil, err
	case answer == nil:
		return nil, upstream.Fail(http.StatusOK, "the server's answer to %s has no result", method)
	case answer.Error != nil:
		return nil, answer.Error
	}
	return answer.Result, nil
}

// Notify sends a notification.
func (s *Session) Notify(ctx context.Context, method string) error {
	_, err := s.send(ctx, &Message{Version: "2.0", Method: method})
	return err
}

func (s *Session) send(ctx context.Context, m *Message) (*Message, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("mcp: encode: %w", err)
	}
	if s.stream != nil {
		return s.stream.send(ctx, s, m, body)
	}
	req, err := s.request(ctx, http.MethodPost, s.up.URL, body)
	if err != nil {
		return nil, err
	}
	resp, err := s.up.Via.RoundTrip(req)
	if err != nil {
		return nil, upstream.Unreachable("the server", err)
	}
	defer resp.Body.Close()
	if id := resp.Header.Get(HeaderSession); id != "" && m.Method == "initialize" {
		s.ID = id
	}
	return read(resp, m, s.up.secrets(req.Header))
}

// request is a request with the headers of the session over those of the upstream.
func (s *Session) request(ctx context.Context, method, url string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, upstream.Fail(0, "the server's address cannot be called")
	}
	for name, values := range s.up.Headers {
		req.Header[name] = values
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.ID != "" {
		req.Header.Set(HeaderSession, s.ID)
	}
	if s.Version != "" {
		req.Header.Set(HeaderVersion, s.Version)
	}
	return req, nil
}

// read finds the answer to a message in what an upstream sent for it; nil where none
// belongs to it.
func read(resp *http.Response, m *Message, secrets []string) (*Message, error) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // no type is none of ours
	body := egress.CapBody(resp.Body, MaxAnswer)
	switch {
	case resp.StatusCode/100 == 3:
		return nil, upstream.Fail(resp.StatusCode, "the server answers with a redirect, which is not followed")
	case m.IsNotification() && resp.StatusCode/100 == 2:
		return nil, nil
	case media == "text/event-stream" && resp.StatusCode/100 == 2:
		return readEvents(body, m, secrets)
	case media != "application/json":
		return nil, upstream.Fail(resp.StatusCode, "the server answers with status %d and no JSON", resp.StatusCode)
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, broken(err)
	}
	mask.Bytes(raw, secrets)
	answer, err := parseAnswer(raw, m)
	if answer == nil && err == nil {
		err = upstream.Fail(resp.StatusCode, "the server's answer is not that to the request")
	}
	if resp.StatusCode/100 != 2 && (err != nil || answer.Error == nil) {
		return nil, upstream.Fail(resp.StatusCode, "the server answers with status %d", resp.StatusCode)
	}
	return answer, err
}

func broken(err error) *upstream.Failure {
	f := upstream.Fail(http.StatusOK, "the server's answer ended early or is too long")
	f.Cause = err
	return f
}

// maxDepth is how deep an upstream's messages may nest.
const maxDepth = 256

// parseAnswer reads a message; nil where it is another than the answer to m.
func parseAnswer(raw []byte, m *Message) (*Message, error) {
	if err := wire.CheckStrict(raw, maxDepth); err != nil {
		return nil, upstream.Fail(http.StatusOK, "the server's answer is not JSON")
	}
	answer, bad := ReadMessage(raw)
	if bad != nil {
		return nil, upstream.Fail(http.StatusOK, "the server's answer is not a JSON-RPC message")
	}
	if !answer.IsAnswer() || !bytes.Equal(answer.ID, m.ID) {
		return nil, nil
	}
	return answer, nil
}

// errFound ends the reading of a stream.
var errFound = errors.New("mcp: found")

// readEvents reads a stream until the answer to m comes.
func readEvents(body io.Reader, m *Message, secrets []string) (*Message, error) {
	var answer *Message
	p := wire.SSEParser{MaxEvent: MaxAnswer}
	take := func(_ string, data []byte) error {
		if len(bytes.TrimSpace(data)) == 0 {
			return nil
		}
		data = bytes.Clone(data)
		mask.Bytes(data, secrets)
		found, err := parseAnswer(data, m)
		if err != nil {
			return err
		}
		if found != nil {
			answer = found
			return errFound
		}
		return nil
	}
	buf := make([]byte, 16<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if fed := p.Feed(buf[:n], take); fed != nil && !errors.Is(fed, errFound) {
				return nil, asFailure(fed)
			}
		}
		if answer != nil {
			return answer, nil
		}
		if err == io.EOF {
			if fed := p.End(take); fed != nil && !errors.Is(fed, errFound) {
				return nil, asFailure(fed)
			}
			if answer != nil {
				return answer, nil
			}
			return nil, upstream.Fail(http.StatusOK, "the server ended its stream without an answer")
		}
		if err != nil {
			return nil, broken(err)
		}
	}
}

func asFailure(err error) error {
	var f *upstream.Failure
	if errors.As(err, &f) {
		return f
	}
	return broken(err)
}
