package mcptest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Holder is a server built with the official SDK, with sessions and the tool say. It delays
// calls whose text begins with "hold" until GoOn.
type Holder struct {
	*httptest.Server
	held atomic.Int32
	on   chan struct{}
	came sync.Map // number of calls by text: *atomic.Int32
}

// NewHolder starts a Holder.
func NewHolder(t testing.TB) *Holder {
	h := &Holder{on: make(chan struct{})}
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
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: r.Session.ID() + separator + a.Text}}}, nil, nil
	})
	h.Server = httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}

// separator separates the server's session id from the text.
const separator = " said "

// Held returns the number of delayed calls so far.
func (h *Holder) Held() int { return int(h.held.Load()) }

// GoOn releases delayed calls and stops delaying.
func (h *Holder) GoOn() { close(h.on) }

// Came returns the number of calls with a text.
func (h *Holder) Came(text string) int {
	n, ok := h.came.Load(text)
	if !ok {
		return 0
	}
	return int(n.(*atomic.Int32).Load())
}
