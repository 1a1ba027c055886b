package mcptest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Version is the protocol version of clients.
const Version = "2025-11-25"

// Client maintains a session with a server through the gateway.
type Client struct {
	URL             string // of the server at the gateway
	HTTP            *http.Client
	Header          http.Header // credentials of each request
	Name            string      // the trace id of the nth call is Name-n
	ID              string      // session id from the gateway
	upstreamSession string      // the server's session id, as the tool reports it
	calls           int
}

// send sends a message and returns the response.
func (c *Client) send(trace, body string) (header http.Header, status int, answer string, err error) {
	req, err := http.NewRequest(http.MethodPost, c.URL, strings.NewReader(body))
	if err != nil {
		return nil, 0, "", err
	}
	for name, values := range c.Header {
		req.Header[name] = values
	}
	for name, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"X-Gateway-Trace-Id": trace, "Mcp-Session-Id": c.ID, "Mcp-Protocol-Version": Version,
	} {
		if v != "" {
			req.Header.Set(name, v)
		}
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return nil, 0, "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return res.Header, res.StatusCode, string(raw), err
}

// Begin begins the session.
func (c *Client) Begin() error {
	h, status, answer, err := c.send(c.Name+"-begin", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+Version+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("initialize: %d %s %w", status, answer, err)
	}
	if c.ID = h.Get("Mcp-Session-Id"); c.ID == "" {
		return fmt.Errorf("no session: %s", answer)
	}
	if _, status, answer, err = c.send(c.Name+"-begun", `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil || status != http.StatusAccepted {
		return fmt.Errorf("initialized: %d %s %w", status, answer, err)
	}
	return nil
}

// Say calls the tool of a Holder. It returns an error if there is no valid response.
func (c *Client) Say(text string) error {
	c.calls++
	trace := fmt.Sprintf("%s-%d", c.Name, c.calls)
	_, status, answer, err := c.send(trace, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"say","arguments":{"text":%q}}}`, c.calls, text))
	if err != nil {
		return err
	}
	behind, _, ok := strings.Cut(answer, separator+text)
	if status != http.StatusOK || !ok || !strings.Contains(answer, fmt.Sprintf(`"id":%d`, c.calls)) {
		return fmt.Errorf("%s: %d %s", trace, status, answer)
	}
	behind = behind[strings.LastIndexByte(behind, '"')+1:]
	if c.upstreamSession == "" {
		c.upstreamSession = behind
	}
	if behind == "" || behind != c.upstreamSession {
		return fmt.Errorf("%s: the server's session is %q, and was %q", trace, behind, c.upstreamSession)
	}
	return nil
}
