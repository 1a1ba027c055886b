package onlambda_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/local/onlambda"
	"gateway/shared/app/onaws"
)

// holder is a server of MCP with sessions, which holds some calls back until it is told.
type holder struct {
	*httptest.Server
	held atomic.Int32
	on   chan struct{} // closed: held calls go on
	came sync.Map      // how often each text came: *atomic.Int32
}

func newHolder(t *testing.T) *holder {
	h := &holder{on: make(chan struct{})}
	s := sdk.NewServer(&sdk.Implementation{Name: "holder", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "say"}, func(_ context.Context, r *sdk.CallToolRequest, a struct {
		Text string `json:"text"`
	}) (*sdk.CallToolResult, any, error) {
		n, _ := h.came.LoadOrStore(a.Text, new(atomic.Int32))
		n.(*atomic.Int32).Add(1)
		if strings.HasPrefix(a.Text, "hold") {
			h.held.Add(1)
			<-h.on
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: r.Session.ID() + " said " + a.Text}}}, nil, nil
	})
	h.Server = httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}

// talk is a client with a session, which it keeps whatever happens.
type talk struct {
	addr   string
	client *http.Client
	name   string
	id     string // of the session, as the gateway gave it
	behind string // the server's own, as the tool tells it
	calls  int
}

// send sends a message as the load balancer hands it on.
func (c *talk) send(trace, body string) (header http.Header, status int, answer string, err error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+c.addr+"/v1/mcp/holder/mcp", strings.NewReader(body))
	if err != nil {
		return nil, 0, "", err
	}
	for name, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "X-Gateway-Api-Key": workspaceKey, "X-Gateway-Origin-Secret": edgeSecret,
		"X-Gateway-Trace-Id": trace, "Mcp-Session-Id": c.id, "Mcp-Protocol-Version": "2025-11-25",
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

func (c *talk) begin() error {
	h, status, answer, err := c.send(c.name+"-begin", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
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
func (c *talk) say(text string) error {
	c.calls++
	_, status, answer, err := c.send(fmt.Sprintf("%s-%d", c.name, c.calls), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"say","arguments":{"text":%q}}}`, c.calls, text))
	if err != nil {
		return err
	}
	behind, _, ok := strings.Cut(answer, " said "+text)
	if status != http.StatusOK || !ok || !strings.Contains(answer, fmt.Sprintf(`"id":%d`, c.calls)) {
		return fmt.Errorf("%s: %d %s", text, status, answer)
	}
	behind = behind[strings.LastIndexByte(behind, '"')+1:]
	if c.behind == "" {
		c.behind = behind
	}
	if behind == "" || behind != c.behind {
		return fmt.Errorf("%s: the server's session is %q, and was %q", text, behind, c.behind)
	}
	return nil
}

// TestSessionsOutliveTheContainer: 200 sessions go on as they were after the container was
// killed in the middle of a call of each. Each call that was answered has one record, each
// that was cut off none or one, and nothing is missing at the server.
func TestSessionsOutliveTheContainer(t *testing.T) {
	const sessions = 200
	up := newHolder(t)
	in := restrictTo(t, []string{"mcpservers", "logs", "usage", "audit"}, func(*restricted) string { return onaws.EnvEgress + "=127.0.0.0/8" })
	if err := onlambda.Build(t.Context(), root, in.dir, "container"); err != nil {
		t.Fatal(err)
	}
	const at = `"workspace_id":"default"}`
	in.ask("POST", "/mcp-integrations", adminKey, fmt.Sprintf(`{"name":"H","slug":"holder","url":%q,"auth_type":"none","transport":"http","configurations":{},`, up.URL)+at)
	in.ask("POST", "/mcp-servers", adminKey, `{"name":"H","slug":"holder","mcp_integration_id":"holder",`+at)
	addr, journal := freeAddress(t), t.TempDir()
	var cmd *exec.Cmd
	var log *output
	end := func(sig syscall.Signal) {
		_ = cmd.Process.Signal(sig) // does nothing to one that has ended
		_ = cmd.Wait()
	}
	cmd, log = in.launchContainer(addr, journal)
	t.Cleanup(func() {
		end(syscall.SIGTERM)
		if t.Failed() {
			t.Log(log.text())
		}
	})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: sessions}}
	t.Cleanup(client.CloseIdleConnections)
	all := make([]*talk, sessions)
	for i := range all {
		all[i] = &talk{addr: addr, client: client, name: fmt.Sprintf("session-%d", i)}
	}
	each := func(do func(c *talk) error) *sync.WaitGroup {
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
	each(func(c *talk) error {
		if err := c.begin(); err != nil {
			return err
		}
		return c.say("before " + c.name)
	}).Wait()
	if t.Failed() {
		return
	}
	cut := each(func(c *talk) error {
		if err := c.say("hold " + c.name); err == nil {
			return fmt.Errorf("a call was answered that nobody answered")
		}
		return nil
	})
	in.until(func() error {
		if n := up.held.Load(); n != sessions {
			return fmt.Errorf("%d calls reached the server", n)
		}
		return nil
	})
	end(syscall.SIGKILL)
	cut.Wait()
	close(up.on)
	cmd, log = in.launchContainer(addr, journal)
	each(func(c *talk) error {
		if err := c.say("hold " + c.name); err != nil { // the client's own decision
			return err
		}
		return c.say("after " + c.name)
	}).Wait()
	for _, c := range all {
		for text, want := range map[string]int32{"before ": 1, "hold ": 2, "after ": 1} {
			n, ok := up.came.Load(text + c.name)
			if !ok || n.(*atomic.Int32).Load() != want {
				t.Errorf("%s%s did not come %d times", text, c.name, want)
			}
		}
	}
	end(syscall.SIGTERM) // what it has of events is queued
	in.work(func() error { return in.recorded(all) })
	for _, refused := range in.recorder.Refused() {
		t.Errorf("missing: %s", refused)
	}
}

// recorded tells whether the records of calls are those that there should be.
func (in *restricted) recorded(all []*talk) error {
	seen := map[string]int{}
	for page := 0; ; page++ {
		raw, err := json.Marshal(in.ask("GET", fmt.Sprintf("/logs?workspace_id=default&page_size=100&current_page=%d", page), adminKey, "")["data"])
		var rows []struct {
			Trace  string `json:"trace_id"`
			Method string `json:"mcp_method"`
		}
		if err != nil || json.Unmarshal(raw, &rows) != nil {
			return fmt.Errorf("%.300s %w", raw, err)
		}
		for _, l := range rows {
			if l.Method == "tools/call" {
				seen[l.Trace]++
			}
		}
		if len(rows) == 0 {
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
