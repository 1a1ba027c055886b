package onlambda_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"syscall"
	"testing"

	"gateway/shared/app/onaws"
	"gateway/shared/testkit/mcptest"
)

// TestSessionsOutliveTheContainer: 200 sessions continue as they were after the container was
// killed in the middle of a call of each. Each call that was answered has one record, each
// that was cut off none or one, and nothing is missing at the server.
func TestSessionsOutliveTheContainer(t *testing.T) {
	const sessions = 200
	up := mcptest.NewHolder(t)
	in := restrictTo(t, []string{"mcpservers", "logs", "usage", "audit"}, func(*restricted) string { return onaws.EnvEgress + "=127.0.0.0/8" })
	build(t, in.dir, "container")
	const at = `"workspace_id":"default"}`
	in.send("POST", "/mcp-integrations", adminKey, fmt.Sprintf(`{"name":"H","slug":"holder","url":%q,"auth_type":"none","transport":"http","configurations":{},`, up.URL)+at)
	in.send("POST", "/mcp-servers", adminKey, `{"name":"H","slug":"holder","mcp_integration_id":"holder",`+at)
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
	by := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: sessions}}
	t.Cleanup(by.CloseIdleConnections)
	all := make([]*mcptest.Client, sessions)
	for i := range all { // requests come as the load balancer hands them on
		all[i] = &mcptest.Client{
			URL: "http://" + addr + "/v1/mcp/holder/mcp", HTTP: by, Name: fmt.Sprintf("session-%d", i),
			Header: http.Header{"X-Gateway-Api-Key": {workspaceKey}, "X-Gateway-Origin-Secret": {edgeSecret}},
		}
	}
	mcptest.RunKillTest(t, up, all, in.until, func() { end(syscall.SIGKILL) }, func() { cmd, log = in.launchContainer(addr, journal) })
	end(syscall.SIGTERM) // what it has of events is queued
	in.work(func() error {
		return mcptest.Recorded(all, func(path string) ([]byte, error) { return json.Marshal(in.send("GET", path, adminKey, "")) })
	})
	for _, refused := range in.recorder.Denied() {
		t.Errorf("missing: %s", refused)
	}
}
