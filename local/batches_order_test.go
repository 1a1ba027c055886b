package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gateway/shared/queue"
	"gateway/shared/relay/batch"
	"gateway/shared/store"
)

// here is the scope of the default workspace.
func (r *running) here() store.Scope { return store.Scope{Org: "default", Workspace: r.workspace()} }

// Messages come several times, early, late and in any order, to several workers at a time:
// every row is still sent once.
func TestBatchMessagesMayRepeatInAnyOrder(t *testing.T) {
	t.Parallel()
	r := start(t)
	const rows = 110
	file := r.storeRows(workspaceKey, chatRows(rows, "@mock/gpt-4o-mini", func(i int) string { return "mock: delay=30ms" }))
	id := r.runBatch(workspaceKey, file, "")
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			var messages []queue.Outgoing
			for range 10 {
				messages = append(messages, batch.Message(r.here(), id, rand.Int64N(9), 0))
			}
			if err := r.g.core.RunQueue.Send(context.Background(), messages...); err != nil {
				t.Error(err)
			}
			pause(ctx, 10*time.Millisecond)
		}
	}()
	b := r.ended(workspaceKey, id)
	stop()
	<-ended
	out := r.fileRows(workspaceKey, b["output_file_id"])
	if b["status"] != "completed" || fmt.Sprint(b["request_counts"]) != counts(rows, rows, 0) || len(out) != rows {
		t.Fatalf("%v, %d rows of output", b, len(out))
	}
	if n := r.mock.Bill().Total.Requests; n != rows {
		t.Errorf("%d rows were sent %d times", rows, n)
	}
}

// A batch whose time is over ends with what it has: the other rows say so.
func TestABatchExpires(t *testing.T) {
	t.Parallel()
	r := start(t)
	const rows = 80
	id := r.runBatch(workspaceKey, r.storeRows(workspaceKey, chatRows(rows, "@mock/gpt-4o-mini", slowFrom(25))), "")
	eventually(t, func() error {
		_, err := r.g.relay.Batches().Change(context.Background(), r.here(), id, "", func(b *batch.Batch) error {
			if b.Succeeded < 25 {
				return fmt.Errorf("%d rows are done", b.Succeeded)
			}
			b.Expires = time.Now().Unix() - 1
			return nil
		})
		return err
	})
	b := r.ended(workspaceKey, id)
	good, bad := r.fileRows(workspaceKey, b["output_file_id"]), r.fileRows(workspaceKey, b["error_file_id"])
	if b["status"] != "expired" || b["expired_at"] == nil || len(good) < 25 || len(good)+len(bad) != rows || len(bad) < 5 || fmt.Sprint(b["request_counts"]) != counts(rows, len(good), len(bad)) {
		t.Fatalf("%v: %d good, %d bad", b, len(good), len(bad))
	}
	for i, row := range bad {
		if row.Error == nil || row.Error.Code != "batch_expired" || row.CustomID != fmt.Sprintf("row-%d", len(good)+i) {
			t.Fatalf("%+v", row)
		}
	}
}

// A batch whose message was lost continues after the sweep; one whose input is gone
// fails.
func TestBatchesThatLostTheirMessageOrInput(t *testing.T) {
	t.Parallel()
	r := start(t)
	file := r.storeRows(workspaceKey, chatRows(2, "@mock/gpt-4o-mini", greeting))
	lost, err := r.g.relay.Batches().Create(context.Background(), r.here(), batch.Definition{Endpoint: "/v1/chat/completions", Input: file, Window: batch.Immediate, Key: "of nobody"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.g.core.RunQueue.Send(context.Background(), batch.SweepMessage()); err != nil { // too early: it is not overdue
		t.Fatal(err)
	}
	_, err = r.g.relay.Batches().Change(context.Background(), r.here(), lost.ID, "", func(b *batch.Batch) error { b.Next -= time.Hour.Milliseconds(); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := r.g.core.RunQueue.Send(context.Background(), batch.SweepMessage()); err != nil {
		t.Fatal(err)
	}
	if b := r.ended(workspaceKey, lost.ID); b["status"] != "completed" || fmt.Sprint(b["request_counts"]) != counts(2, 0, 2) {
		t.Errorf("%v", b)
	}
	gone, err := r.g.relay.Batches().Create(context.Background(), r.here(), batch.Definition{Endpoint: "/v1/chat/completions", Input: "gw_file_gone", Window: batch.Immediate, Key: "of nobody"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.g.core.RunQueue.Send(context.Background(), batch.Message(r.here(), gone.ID, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if b := r.ended(workspaceKey, gone.ID); b["status"] != "failed" || fmt.Sprint(b["errors"]) == "<nil>" {
		t.Errorf("%v", b)
	}
}

// A config of the options may hold credentials: logs do not show it.
func TestTheConfigOfABatchIsNotLogged(t *testing.T) {
	t.Parallel()
	r := start(t)
	const secret = "sk-of-a-config-in-place"
	file := r.storeRows(workspaceKey, chatRows(1, "gpt-4o-mini", greeting))
	id := r.id("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"immediate","gateway_options":{"x-gateway-config":{"provider":"openai","api_key":%q,"custom_host":%q}}}`, file, secret, r.mockBase()), asGateway(workspaceKey)...)
	if b := r.ended(workspaceKey, id); fmt.Sprint(b["request_counts"]) != counts(1, 1, 0) {
		t.Fatalf("%v %+v", b, r.fileRows(workspaceKey, b["error_file_id"]))
	}
	seen := 0
	eventually(t, func() error {
		seen = 0
		for _, rec := range archived(t, r.g) {
			got := r.call("GET", "/logs/"+rec.ID, "")
			if got.status != 200 {
				return fmt.Errorf("%d %s", got.status, got.body)
			}
			if strings.Contains(got.body, secret) {
				t.Fatalf("%s shows it: %s", rec.Endpoint, got.body)
			}
			if rec.Endpoint == "createBatch" && !strings.Contains(got.body, "*****") {
				t.Fatalf("nothing is hidden: %s", got.body)
			}
			if rec.Endpoint == "createBatch" || rec.Endpoint == "chatComplete" {
				seen++
			}
		}
		if seen != 2 {
			return fmt.Errorf("%d records", seen)
		}
		return nil
	})
}

// Nor do the logs of batches that are rejected, however they are written.
func TestTheConfigOfARefusedBatchIsNotLogged(t *testing.T) {
	t.Parallel()
	r := start(t)
	const secret = "sk-of-a-config-in-place"
	options := fmt.Sprintf(`{"x-gateway-config":{"provider":"openai","api_key":%q}}`, secret)
	bodies := []string{
		`{"input_file_id":"gw_file_x","endpoint":"/v1/nowhere","completion_window":"immediate","gateway_options":` + options + `}`,
		`{"input_file_id":7,"gateway_options":` + options + `}`,
		`{"input_file_id":"gw_file_x","endpoint":"/v1/embeddings","completion_window":"immediate","gateway_options":` + options + `,"gateway_options":{}}`,
		`{"input_file_id":"gw_file_x","endpoint":"/v1/embeddings","completion_window":"immediate","Gateway_Options":` + options + `}`,
		`{"input_file_id":"gw_file_x","endpoint":"/v1/embeddings","completion_window":"immediate","gateway\u005foptions":` + options + `}`,
		`{"input_file_id":"gw_file_x","endpoint":"/v1/embeddings","completion_window":"immediate","gateway_options":` + strings.Replace(options, "x-gateway", `x\u002dgateway`, 1) + `}`,
		`{"input_file_id":"gw_file_x","endpoint":"/v1/embeddings","completion_window":"immediate","gateway_options":` + options,
	}
	for _, body := range bodies {
		if got := r.call("POST", "/batches", body, asGateway(workspaceKey)...); got.status < 400 || got.status > 499 {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	eventually(t, func() error {
		seen := 0
		for _, rec := range archived(t, r.g) {
			got := r.call("GET", "/logs/"+rec.ID, "")
			if got.status != 200 {
				return fmt.Errorf("%d %s", got.status, got.body)
			}
			if strings.Contains(got.body, secret) {
				t.Fatalf("it is shown: %s", got.body)
			}
			seen++
		}
		if seen != len(bodies) {
			return fmt.Errorf("%d records", seen)
		}
		return nil
	})
}
