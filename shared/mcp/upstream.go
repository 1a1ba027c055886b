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

// MaxResponse is the size limit of an upstream's response in bytes.
const MaxResponse = 12 << 20

// Upstream describes how to reach a server.
type Upstream struct {
	URL          string
	Transport    string
	Headers      http.Header // credentials and configured headers
	Client       []string    // names of the headers that were forwarded from the client
	Secret       []string    // names of the headers with values from a secret manager
	RoundTripper http.RoundTripper
}

// Session is an initialized session with an upstream.
type Session struct {
	up      *Upstream
	ID      string // empty if the upstream has no session
	Version string
	Hello   json.RawMessage // the result of initialize
	// OnNotification is called for notifications on the stream of the SSE transport. It may be
	// nil.
	OnNotification func(message []byte)
	stream         *legacySSE // only for the SSE transport
	calls          int
}

// initializeParams returns the params of initialize.
func initializeParams(version string, capabilities json.RawMessage) json.RawMessage {
	raw, _ := json.Marshal(map[string]any{ // only strings
		"protocolVersion": version, "capabilities": capabilities,
		"clientInfo": ClientInfo,
	})
	return raw
}

// Connect begins a session. capabilities are those of the client, or nil if there are none.
func (u *Upstream) Connect(ctx context.Context, capabilities json.RawMessage) (*Session, error) {
	if capabilities == nil {
		capabilities = json.RawMessage("{}")
	}
	s := &Session{up: u}
	if u.Transport == TransportSSE {
		var err error
		if s.stream, err = u.openLegacySSE(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.initialize(ctx, capabilities); err != nil {
		s.Close()
		if u.isLegacySSE(ctx, err) {
			return nil, upstream.Fail(http.StatusOK, "the server uses the older SSE transport: set the integration's transport to sse")
		}
		return nil, err
	}
	return s, nil
}

// legacyProbeTimeout is the wait for the first event of the SSE transport. The stream of newer
// servers stays silent.
const legacyProbeTimeout = 3 * time.Second

// isLegacySSE reports whether a server that rejected a posted initialize supports the SSE
// transport.
func (u *Upstream) isLegacySSE(ctx context.Context, err error) bool {
	var refused *upstream.Failure
	if u.Transport == TransportSSE || !errors.As(err, &refused) {
		return false
	}
	switch refused.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
	default:
		return false
	}
	within, cancel := context.WithTimeout(ctx, legacyProbeTimeout)
	defer cancel()
	stream, err := u.openLegacySSE(within)
	if err != nil {
		return false
	}
	stream.close()
	return true
}

func (s *Session) initialize(ctx context.Context, capabilities json.RawMessage) error {
	result, err := s.Call(ctx, "initialize", initializeParams(Versions[0], capabilities))
	if err != nil {
		return err
	}
	var negotiated struct {
		Version string `json:"protocolVersion"`
	}
	if json.Unmarshal(result, &negotiated) != nil || negotiated.Version == "" {
		return upstream.Fail(http.StatusOK, "the server's response to initialize has no protocolVersion")
	}
	s.Version, s.Hello = negotiated.Version, result
	return s.Notify(ctx, "notifications/initialized")
}

// Close releases the session's resources without ending it at the upstream.
func (s *Session) Close() {
	if s.stream != nil {
		s.stream.close()
	}
}

// End ends the session at the upstream. Errors are ignored: the upstream expires sessions.
func (s *Session) End(ctx context.Context) {
	defer s.Close()
	if s.ID == "" || s.stream != nil {
		return
	}
	req, err := s.request(ctx, http.MethodDelete, s.up.URL, nil)
	if err != nil {
		return
	}
	if resp, err := s.up.RoundTripper.RoundTrip(req); err == nil {
		resp.Body.Close()
	}
}

// Call sends a request and waits for its response. It returns an *Error for an error of the
// upstream and an *upstream.Failure otherwise.
func (s *Session) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	s.calls++
	m := &Message{Version: "2.0", ID: json.RawMessage(strconv.Itoa(s.calls)), Method: method, Params: params}
	answer, err := s.send(ctx, m)
	switch {
	case err != nil:
		return nil, err
	case answer == nil:
		return nil, upstream.Fail(http.StatusOK, "the server's response to %s has no result", method)
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
	resp, err := s.up.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, upstream.Unreachable("the server", err)
	}
	defer resp.Body.Close()
	if id := resp.Header.Get(HeaderSession); id != "" && m.Method == "initialize" {
		s.ID = id
	}
	return read(resp, m, s.up.secrets(req.Header))
}

// request returns a request; the session's headers take precedence over those of the upstream.
func (s *Session) request(ctx context.Context, method, url string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, upstream.Fail(0, "the server's address is invalid")
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

// read returns the response to m, or nil if there is none.
func read(resp *http.Response, m *Message, secrets []string) (*Message, error) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // an invalid type is neither of those below
	body := egress.CapBody(resp.Body, MaxResponse)
	switch {
	case resp.StatusCode/100 == 3:
		return nil, upstream.Fail(resp.StatusCode, "the server responded with a redirect; redirects are not followed")
	case m.IsNotification() && resp.StatusCode/100 == 2:
		return nil, nil
	case media == "text/event-stream" && resp.StatusCode/100 == 2:
		return readEvents(body, m, secrets)
	case media != "application/json":
		return nil, upstream.Fail(resp.StatusCode, "the server responded with status %d and no JSON", resp.StatusCode)
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, readFailure(err)
	}
	mask.Bytes(raw, secrets)
	answer, err := parseResponse(raw, m)
	if answer == nil && err == nil {
		err = upstream.Fail(resp.StatusCode, "the server's response does not belong to the request")
	}
	if resp.StatusCode/100 != 2 && (err != nil || answer.Error == nil) {
		return nil, upstream.Fail(resp.StatusCode, "the server responded with status %d", resp.StatusCode)
	}
	return answer, err
}

func readFailure(err error) *upstream.Failure {
	f := upstream.Fail(http.StatusOK, "the server's response is incomplete or too long")
	f.Cause = err
	return f
}

// maxDepth is the nesting limit of messages from upstreams.
const maxDepth = 256

// parseResponse decodes a message. It returns nil if the message is not the response to m.
func parseResponse(raw []byte, m *Message) (*Message, error) {
	if err := wire.CheckStrict(raw, maxDepth); err != nil {
		return nil, upstream.Fail(http.StatusOK, "the server's response is not JSON")
	}
	answer, bad := ReadMessage(raw)
	if bad != nil {
		return nil, upstream.Fail(http.StatusOK, "the server's response is not a JSON-RPC message")
	}
	if !answer.IsResponse() || !bytes.Equal(answer.ID, m.ID) {
		return nil, nil
	}
	return answer, nil
}

// errResponseFound stops reading a stream.
var errResponseFound = errors.New("mcp: found")

// readEvents reads a stream until the response to m.
func readEvents(body io.Reader, m *Message, secrets []string) (*Message, error) {
	var answer *Message
	p := wire.SSEParser{MaxEvent: MaxResponse}
	take := func(_ string, data []byte) error {
		if len(bytes.TrimSpace(data)) == 0 {
			return nil
		}
		data = bytes.Clone(data)
		mask.Bytes(data, secrets)
		found, err := parseResponse(data, m)
		if err != nil {
			return err
		}
		if found != nil {
			answer = found
			return errResponseFound
		}
		return nil
	}
	buf := make([]byte, 16<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if fed := p.Feed(buf[:n], take); fed != nil && !errors.Is(fed, errResponseFound) {
				return nil, asFailure(fed)
			}
		}
		if answer != nil {
			return answer, nil
		}
		if err == io.EOF {
			if fed := p.End(take); fed != nil && !errors.Is(fed, errResponseFound) {
				return nil, asFailure(fed)
			}
			if answer != nil {
				return answer, nil
			}
			return nil, upstream.Fail(http.StatusOK, "the server ended its stream without a response")
		}
		if err != nil {
			return nil, readFailure(err)
		}
	}
}

func asFailure(err error) error {
	var f *upstream.Failure
	if errors.As(err, &f) {
		return f
	}
	return readFailure(err)
}
