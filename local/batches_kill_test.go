package main

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"gateway/local/mockprovider"
)

// at is a gateway in another process, as far as requests to it go.
func (p *process) at(t *testing.T) *running { return &running{t: t, base: p.base} }

// TestABatchGoesOnAfterItsProcessWasKilled kills the process twice while a batch runs:
// between two steps, and with rows under way. In the end each row has one response, and the
// books agree with the bill, except for the rows that were under way.
func TestABatchGoesOnAfterItsProcessWasKilled(t *testing.T) {
	t.Parallel()
	mock := mockprovider.New(mockprovider.Options{})
	addr, err := mock.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mock.Close()
	dir := t.TempDir()
	const rows = 90
	p := spawn(t, dir)
	r := p.at(t)
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"Outer","slug":"outer","ai_provider_id":"openai","key":"mock-outer","configurations":{"custom_host":%q}}`, "http://"+strings.TrimPrefix(addr, "http://")+"/v1"))
	r.admin("PUT", "/integrations/outer/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	file := r.storeRows(workspaceKey, chatRows(rows, "@outer/gpt-4o-mini", slowFrom(50)))
	id := r.runBatch(workspaceKey, file, "")
	done := func() int {
		b := r.call("GET", "/batches/"+id, "", asGateway(workspaceKey)...).json(t)
		n, _ := b["request_counts"].(map[string]any)["completed"].(float64)
		return int(n)
	}
	kill := func() {
		if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = p.cmd.Wait()
		http.DefaultClient.CloseIdleConnections()
	}
	for kills, least := range []int{25, 50} {
		eventually(t, func() error {
			if n := done(); n < least {
				return fmt.Errorf("%d rows are done", n)
			}
			if kills == 1 && mock.Bill().Open == 0 {
				return fmt.Errorf("no row is under way")
			}
			return nil
		})
		kill()
		p = spawn(t, dir)
		r.base = p.base
	}
	b := r.ended(workspaceKey, id)
	out := r.fileRows(workspaceKey, b["output_file_id"])
	if b["status"] != "completed" || fmt.Sprint(b["request_counts"]) != counts(rows, rows, 0) || len(out) != rows {
		t.Fatalf("%v, %d rows of output", b, len(out))
	}
	accepted := map[string]bool{}
	for i, row := range out {
		if row.CustomID != fmt.Sprintf("row-%d", i) || row.Response == nil || row.Response.Status != 200 || accepted[row.Response.Request] {
			t.Fatalf("row %d: %+v", i, row)
		}
		accepted[row.Response.Request] = true
	}
	// What a process that died was at stands in the bill; with nothing else there.
	kill()
	own := startIn(t, dir)
	eventually(t, func() error {
		recorded := map[string]bool{}
		for _, rec := range archived(t, own.g) {
			if rec.Endpoint == "chatComplete" {
				recorded[rec.ID] = true
			}
		}
		for request := range accepted {
			if !recorded[request] {
				return fmt.Errorf("%d of %d accepted rows are in the books", len(recorded), len(accepted))
			}
		}
		sent := int(mock.Bill().Total.Requests)
		if len(recorded) > sent || sent > rows+2*batchPace.Flush {
			return fmt.Errorf("%d records, and the provider was asked %d times", len(recorded), sent)
		}
		return nil
	})
}

// TestABatchOutlivesAStop stops the process in good order while rows are under way:
// they end, and no row is sent twice.
func TestABatchOutlivesAStop(t *testing.T) {
	t.Parallel()
	mock := mockprovider.New(mockprovider.Options{})
	addr, err := mock.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mock.Close()
	dir := t.TempDir()
	p := spawn(t, dir)
	r := p.at(t)
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"Outer","slug":"outer","ai_provider_id":"openai","key":"mock-outer","configurations":{"custom_host":%q}}`, "http://"+strings.TrimPrefix(addr, "http://")+"/v1"))
	r.admin("PUT", "/integrations/outer/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	id := r.runBatch(workspaceKey, r.storeRows(workspaceKey, chatRows(60, "@outer/gpt-4o-mini", func(i int) string { return "mock: delay=300ms" })), "")
	eventually(t, func() error {
		if mock.Bill().Open == 0 {
			return fmt.Errorf("no row is under way")
		}
		return nil
	})
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	own := startIn(t, dir)
	b := own.ended(workspaceKey, id)
	if b["status"] != "completed" || fmt.Sprint(b["request_counts"]) != counts(60, 60, 0) {
		t.Fatalf("%v", b)
	}
	if n := mock.Bill().Total.Requests; n != 60 {
		t.Errorf("60 rows were sent %d times", n)
	}
	eventually(t, func() error {
		got := int64(0)
		for _, rec := range archived(t, own.g) {
			got += int64(rec.Cost)
		}
		if want := mock.Bill().Total.NanoDollars; got != want || want == 0 {
			return fmt.Errorf("our books %d, the bill %d", got, want)
		}
		return nil
	})
}
