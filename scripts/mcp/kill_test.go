package mcp

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"gateway/shared/testkit/mcptest"
)

// client keeps a session with a server of the gateway.
func (g *gateway) client(name, slug string, by *http.Client) *mcptest.Client {
	return &mcptest.Client{URL: g.base + "/mcp/" + slug + "/mcp", HTTP: by, Header: http.Header{"X-Gateway-Api-Key": {workspaceKey}}, Name: name}
}

// TestSessionsOutliveTheGateway: the gateway is killed while each of 200 sessions makes a
// call; the sessions continue as they were. The client is told of each lost call, and each
// answered call has one record.
func TestSessionsOutliveTheGateway(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: starts a gateway, which -short leaves out")
	}
	const sessions = 200
	up := mcptest.NewHolder(t)
	g := startGateway(t)
	g.register("holder", up.URL, "none", "{}")
	by := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: sessions}}
	all := make([]*mcptest.Client, sessions)
	for i := range all {
		all[i] = g.client(fmt.Sprintf("session-%d", i), "holder", by)
	}
	mcptest.RunKillTest(t, up, all, func(holds func() error) { within(t, holds) }, g.kill, g.start)
	within(t, func() error {
		return mcptest.Recorded(all, func(path string) ([]byte, error) {
			status, text, err := g.call("GET", path, adminKey, "")
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("%d %.300s", status, text)
			}
			return []byte(text), err
		})
	})
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
