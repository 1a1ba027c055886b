// Package mcptest contains what the tests of several hosts share to show that sessions survive
// a restart of the process between client and server. Only tests import it.
package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// RunKillTest begins a session for each client, kills the process during a call of each, and
// continues all sessions in the process that launch starts. wait repeats until there is no
// error; kill returns when the process has exited.
func RunKillTest(t *testing.T, h *DelayingServer, clients []*Client, wait func(func() error), kill, launch func()) {
	t.Helper()
	each := func(do func(c *Client) error) *sync.WaitGroup {
		wg := new(sync.WaitGroup)
		for _, c := range clients {
			wg.Go(func() {
				if err := do(c); err != nil {
					t.Errorf("%s: %v", c.Name, err)
				}
			})
		}
		return wg
	}
	each(func(c *Client) error {
		if err := c.Begin(); err != nil {
			return err
		}
		return c.CallTool("before " + c.Name)
	}).Wait()
	if t.Failed() {
		t.FailNow()
	}
	cut := each(func(c *Client) error {
		if err := c.CallTool("hold " + c.Name); err == nil {
			return fmt.Errorf("a call was answered that nobody answered")
		}
		return nil
	})
	wait(func() error {
		if n := h.Delayed(); n != len(clients) {
			return fmt.Errorf("%d calls reached the server", n)
		}
		return nil
	})
	kill()
	cut.Wait()
	h.Release()
	launch()
	each(func(c *Client) error {
		if err := c.CallTool("hold " + c.Name); err != nil { // the client aborts
			return err
		}
		return c.CallTool("after " + c.Name)
	}).Wait()
	for _, c := range clients {
		for text, want := range map[string]int{"before ": 1, "hold ": 2, "after ": 1} {
			if n := h.Calls(text + c.Name); n != want {
				t.Errorf("%s%s came %d times, not %d", text, c.Name, n, want)
			}
		}
	}
}

// Recorded checks that each answered call of RunKillTest has one record and each interrupted call
// at most one. get returns the administration API's response for a path.
func Recorded(clients []*Client, get func(path string) ([]byte, error)) error {
	seen := map[string]int{}
	for n, more := 0, true; more; n++ {
		page, err := get(fmt.Sprintf("/logs?workspace_id=default&page_size=100&current_page=%d", n))
		if err != nil {
			return err
		}
		if more, err = countCalls(page, seen); err != nil {
			return err
		}
	}
	total := 0
	for _, c := range clients {
		for call, least := range map[int]int{1: 1, 2: 0, 3: 1, 4: 1} {
			n := seen[fmt.Sprintf("%s-%d", c.Name, call)]
			if total += n; n < least || n > 1 {
				return fmt.Errorf("%s: call %d has %d records", c.Name, call, n)
			}
		}
	}
	if len(seen) != total {
		return fmt.Errorf("%d records of %d calls", total, len(seen))
	}
	return nil
}

// countCalls counts the calls of the tool on a page of the log, by trace, and reports whether
// the page has records.
func countCalls(page []byte, seen map[string]int) (more bool, _ error) {
	var logs struct {
		Data []struct {
			Trace  string `json:"trace_id"`
			Method string `json:"mcp_method"`
			Name   string `json:"mcp_name"`
		} `json:"data"`
	}
	if err := json.Unmarshal(page, &logs); err != nil {
		return false, fmt.Errorf("%.300s: %w", page, err)
	}
	for _, l := range logs.Data {
		if l.Method == "tools/call" && l.Name == "say" {
			seen[l.Trace]++
		}
	}
	return len(logs.Data) > 0, nil
}

// DelayingServer is a server built with the official SDK, with sessions and the tool say. It delays
// calls whose text begins with "hold" until Release.
type DelayingServer struct {
	*httptest.Server
	held  atomic.Int32
	on    chan struct{}
	calls sync.Map // number of calls by text: *atomic.Int32
}

// NewHolder starts a DelayingServer.
func NewHolder(t testing.TB) *DelayingServer {
	h := &DelayingServer{on: make(chan struct{})}
	s := sdk.NewServer(&sdk.Implementation{Name: "holder", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "say"}, func(_ context.Context, r *sdk.CallToolRequest, a struct {
		Text string `json:"text"`
	}) (*sdk.CallToolResult, any, error) {
		n, _ := h.calls.LoadOrStore(a.Text, new(atomic.Int32))
		n.(*atomic.Int32).Add(1)
		if strings.HasPrefix(a.Text, "hold") {
			h.held.Add(1)
			<-h.on
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: r.Session.ID() + separator + a.Text}}}, nil, nil
	})
	h.Server = httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}

// separator separates the server's session id from the text.
const separator = " said "

// Delayed returns the number of delayed calls so far.
func (h *DelayingServer) Delayed() int { return int(h.held.Load()) }

// Release releases delayed calls and stops delaying.
func (h *DelayingServer) Release() { close(h.on) }

// Calls returns the number of calls with a text.
func (h *DelayingServer) Calls(text string) int {
	n, ok := h.calls.Load(text)
	if !ok {
		return 0
	}
	return int(n.(*atomic.Int32).Load())
}

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

// CallTool calls the tool of a DelayingServer. It returns an error if there is no valid response.
func (c *Client) CallTool(text string) error {
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
