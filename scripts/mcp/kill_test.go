package mcp

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
	"time"

	official "github.com/modelcontextprotocol/go-sdk/mcp"
)

// holder is a server with sessions that holds calls back until it is told.
type holder struct {
	*httptest.Server
	held  atomic.Int32
	on    chan struct{} // closed: held calls go on
	calls sync.Map      // how often each text came: *atomic.Int32
}

type words struct {
	Text string `json:"text"`
}

func newHolder(t *testing.T) *holder {
	h := &holder{on: make(chan struct{})}
	s := official.NewServer(&official.Implementation{Name: "holder", Version: "1"}, nil)
	official.AddTool(s, &official.Tool{Name: "say"}, func(_ context.Context, r *official.CallToolRequest, w words) (*official.CallToolResult, any, error) {
		n, _ := h.calls.LoadOrStore(w.Text, new(atomic.Int32))
		n.(*atomic.Int32).Add(1)
		if strings.HasPrefix(w.Text, "hold") {
			h.held.Add(1)
			<-h.on
		}
		return &official.CallToolResult{Content: []official.Content{&official.TextContent{Text: r.Session.ID() + " said " + w.Text}}}, nil, nil
	})
	h.Server = httptest.NewServer(official.NewStreamableHTTPHandler(func(*http.Request) *official.Server { return s }, nil))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}

// conversation is a client with a session, which it keeps whatever happens.
type conversation struct {
	g      *gateway
	client *http.Client
	name   string
	at     string // slug of the server
	id     string // of the session, as the gateway gave it
	behind string // the server's own, as the tool tells it
	made   int
}

// send sends a message and gives the answer.
func (c *conversation) send(trace, body string) (header http.Header, status int, answer string, err error) {
	req, err := http.NewRequest(http.MethodPost, c.g.base+"/mcp/"+c.at+"/mcp", strings.NewReader(body))
	if err != nil {
		return nil, 0, "", err
	}
	for name, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "X-Gateway-Api-Key": workspaceKey,
		"X-Gateway-Trace-Id": trace, "Mcp-Session-Id": c.id, "Mcp-Protocol-Version": withSessions,
	} {
		if v != "" {
			req.Header.Set(name, v)
		}
	}
	res, err := c.client.Do(req)
	if err != nil {
		return nil, 0, "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return res.Header, res.StatusCode, string(raw), err
}

func (c *conversation) begin() error {
	h, status, answer, err := c.send(c.name+"-begin", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+withSessions+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("initialize: %d %s %w", status, answer, err)
	}
	if c.id = h.Get("Mcp-Session-Id"); c.id == "" {
		return fmt.Errorf("no session: %s", answer)
	}
	if _, status, answer, err = c.send(c.name+"-begun", `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil || status != http.StatusAccepted {
		return fmt.Errorf("initialized: %d %s %w", status, answer, err)
	}
	return nil
}

// say calls the tool. An error says that no answer came, or a wrong one.
func (c *conversation) say(text string) error {
	c.made++
	trace := fmt.Sprintf("%s-%d", c.name, c.made)
	_, status, answer, err := c.send(trace, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"say","arguments":{"text":%q}}}`, c.made, text))
	if err != nil {
		return err
	}
	behind, _, ok := strings.Cut(answer, " said "+text)
	if status != http.StatusOK || !ok || !strings.Contains(answer, fmt.Sprintf(`"id":%d`, c.made)) {
		return fmt.Errorf("%s: %d %s", trace, status, answer)
	}
	behind = behind[strings.LastIndexByte(behind, '"')+1:]
	if c.behind == "" {
		c.behind = behind
	}
	if behind == "" || behind != c.behind {
		return fmt.Errorf("%s: the server's session is %q, and was %q", trace, behind, c.behind)
	}
	return nil
}

// TestSessionsOutliveTheGateway: 200 sessions go on as they were after the gateway was
// killed in the middle of a call of each; no call is lost without its client being told,
// and each that was answered has one record.
func TestSessionsOutliveTheGateway(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: starts a gateway, which -short leaves out")
	}
	const sessions = 200
	up := newHolder(t)
	g := startGateway(t)
	g.register("holder", up.URL, "none", "{}")
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: sessions}}
	all := make([]*conversation, sessions)
	for i := range all {
		all[i] = &conversation{g: g, client: client, name: fmt.Sprintf("session-%d", i), at: "holder"}
	}
	each := func(do func(c *conversation) error) *sync.WaitGroup {
		wg := new(sync.WaitGroup)
		for _, c := range all {
			wg.Go(func() {
				if err := do(c); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			})
		}
		return wg
	}
	each(func(c *conversation) error {
		if err := c.begin(); err != nil {
			return err
		}
		return c.say("before " + c.name)
	}).Wait()
	if t.Failed() {
		return
	}
	cut := each(func(c *conversation) error {
		if err := c.say("hold " + c.name); err == nil {
			return fmt.Errorf("a call was answered that nobody answered")
		}
		return nil
	})
	within(t, func() error {
		if n := up.held.Load(); n != sessions {
			return fmt.Errorf("%d calls reached the server", n)
		}
		return nil
	})
	g.kill()
	cut.Wait()
	close(up.on)
	g.start()
	each(func(c *conversation) error {
		if err := c.say("hold " + c.name); err != nil { // the client's own decision
			return err
		}
		return c.say("after " + c.name)
	}).Wait()
	for _, c := range all {
		for text, want := range map[string]int32{"before ": 1, "hold ": 2, "after ": 1} {
			n, ok := up.calls.Load(text + c.name)
			if !ok || n.(*atomic.Int32).Load() != want {
				t.Errorf("%s%s did not come %d times", text, c.name, want)
			}
		}
	}
	within(t, func() error { return g.recorded(all) })
}

// recorded tells whether each call that was answered has one record, and each that was cut
// off none or one.
func (g *gateway) recorded(all []*conversation) error {
	seen := map[string]int{}
	for page := 0; ; page++ {
		status, text, err := g.call("GET", fmt.Sprintf("/logs?workspace_id=default&page_size=100&current_page=%d", page), adminKey, "")
		var logs struct {
			Data []struct {
				Trace  string `json:"trace_id"`
				Method string `json:"mcp_method"`
				Name   string `json:"mcp_name"`
			} `json:"data"`
		}
		if err != nil || status != http.StatusOK || json.Unmarshal([]byte(text), &logs) != nil {
			return fmt.Errorf("%d %.300s %w", status, text, err)
		}
		for _, l := range logs.Data {
			if l.Method == "tools/call" && l.Name == "say" {
				seen[l.Trace]++
			}
		}
		if len(logs.Data) == 0 {
			break
		}
	}
	total := 0
	for _, c := range all {
		for call, least := range map[int]int{1: 1, 2: 0, 3: 1, 4: 1} {
			n := seen[fmt.Sprintf("%s-%d", c.name, call)]
			if total += n; n < least || n > 1 {
				return fmt.Errorf("%s: call %d has %d records", c.name, call, n)
			}
		}
	}
	if len(seen) != total {
		return fmt.Errorf("%d records of %d calls", total, len(seen))
	}
	return nil
}

// within waits until something holds.
func within(t *testing.T, holds func() error) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
