package approval

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

func requests(t *testing.T, workspace string, table store.Table) *Requests {
	t.Helper()
	return &Requests{Table: table, Now: time.Now, Scope: store.Scope{Org: "o", Workspace: workspace}}
}

func status(err error) int {
	if err == nil {
		return 200
	}
	return fault.From(err).Status()
}

func TestApprovalIsGoodForOneCall(t *testing.T) {
	t.Parallel()
	ctx, table := context.Background(), newTable(t)
	r, other := requests(t, "w", table), requests(t, "x", table)
	call := Call{ID: "call_1", Server: "@s", Tool: "add", Arguments: `{"a":1}`}
	ask := func() string {
		t.Helper()
		id, err := r.Create(ctx, &call)
		if err != nil || ModelID(id) != call.ID || id == Prefix+call.ID {
			t.Fatal(id, err)
		}
		return id
	}
	id := ask()
	for name, c := range map[string]struct {
		of   *Requests
		id   string
		call Call
	}{
		"a forged id":         {r, Prefix + call.ID, call},
		"other arguments":     {r, id, Call{ID: call.ID, Server: call.Server, Tool: call.Tool, Arguments: `{"a":2}`}},
		"another tool":        {r, id, Call{ID: call.ID, Server: call.Server, Tool: "delete", Arguments: call.Arguments}},
		"another server":      {r, id, Call{ID: call.ID, Server: "@x", Tool: call.Tool, Arguments: call.Arguments}},
		"another call":        {r, id, Call{ID: "call_2", Server: call.Server, Tool: call.Tool, Arguments: call.Arguments}},
		"another workspace":   {other, id, call},
		"an id with more":     {r, id + "x", call},
		"an id without parts": {r, "", call},
	} {
		if err := c.of.Approve(ctx, "f", c.id, &c.call); status(err) != 400 || fault.From(err).Field != "f" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := r.Approve(ctx, "f", id, &call); err != nil {
		t.Error(err)
	}
	if err := r.Approve(ctx, "f", id, &call); status(err) != 400 || !strings.Contains(err.Error(), "already approved or denied") {
		t.Errorf("approved again: %v", err)
	}
	if err := r.Deny(ctx, "f", id, &call); err != nil {
		t.Errorf("denied after the call: %v", err)
	}
	id = ask()
	for range 2 {
		if err := r.Deny(ctx, "f", id, &call); err != nil {
			t.Error(err)
		}
	}
	if err := r.Approve(ctx, "f", id, &call); status(err) != 400 {
		t.Errorf("approved after a denial: %v", err)
	}
	id = ask()
	late := *r
	late.Now = func() time.Time { return time.Now().Add(Lifetime + time.Minute) }
	if err := late.Approve(ctx, "f", id, &call); status(err) != 400 {
		t.Errorf("approved late: %v", err)
	}
}

func TestConcurrentApprovalsMakeOneCall(t *testing.T) {
	t.Parallel()
	r := requests(t, "w", newTable(t))
	call := Call{ID: "call_1", Server: "@s", Tool: "add"}
	id, err := r.Create(context.Background(), &call)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var good atomic.Int64
	for range 8 {
		wg.Go(func() {
			if r.Approve(context.Background(), "f", id, &call) == nil {
				good.Add(1)
			}
		})
	}
	wg.Wait()
	if good.Load() != 1 {
		t.Errorf("%d approvals are good", good.Load())
	}
}

func newTable(t *testing.T) store.Table {
	t.Helper()
	tables, err := sqlite.Open(filepath.Join(t.TempDir(), "tables.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tables.Close() })
	return tables.Table(store.Usage)
}
