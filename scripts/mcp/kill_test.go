package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"gateway/shared/mcp/mcptest"
)

// client keeps a session with a server of the gateway.
func (g *gateway) client(name, slug string, by *http.Client) *mcptest.Client {
	return &mcptest.Client{URL: g.base + "/mcp/" + slug + "/mcp", HTTP: by, Header: http.Header{"X-Gateway-Api-Key": {workspaceKey}}, Name: name}
}

// TestSessionsOutliveTheGateway: 200 sessions go on as they were after the gateway was
// killed in the middle of a call of each; no call is lost without its client being told,
// and each that was answered has one record.
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
	mcptest.Outlive(t, up, all, func(holds func() error) { within(t, holds) }, g.kill, g.start)
	within(t, func() error { return mcptest.Recorded(all, g.said) })
}

// said gives the traces of calls of the tool on a page of the log.
func (g *gateway) said(page int) (traces []string, more bool, _ error) {
	status, text, err := g.call("GET", fmt.Sprintf("/logs?workspace_id=default&page_size=100&current_page=%d", page), adminKey, "")
	var logs struct {
		Data []struct {
			Trace  string `json:"trace_id"`
			Method string `json:"mcp_method"`
			Name   string `json:"mcp_name"`
		} `json:"data"`
	}
	if err != nil || status != http.StatusOK || json.Unmarshal([]byte(text), &logs) != nil {
		return nil, false, fmt.Errorf("%d %.300s %w", status, text, err)
	}
	for _, l := range logs.Data {
		if l.Method == "tools/call" && l.Name == "say" {
			traces = append(traces, l.Trace)
		}
	}
	return traces, len(logs.Data) > 0, nil
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
