package workspaces

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"gateway/shared/admin"
	"gateway/shared/ledger"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

// exhaust uses a workspace's budgets up.
func exhaust(t *testing.T, h *admintest.Installation, l *ledger.Ledger, tokens int64) {
	t.Helper()
	ctx := context.Background()
	rec, ok, err := h.Resources.Get(ctx, store.Scope{Org: admintest.Org}, tenant.KindWorkspace, h.One)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	var w tenant.Workspace
	if err := json.Unmarshal(rec.Body, &w); err != nil {
		t.Fatal(err)
	}
	s := tenant.WorkspaceSubject(inside(&rec), rec.Name, rec.Rev, &w)
	r, err := l.Reserve(ctx, "01J9ZQ5M8T3V4W5X6Y7Z8A9B0C", []*ledger.Subject{s}, ledger.Bound{Tokens: tokens})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Settle(ctx, 0, tokens); err != nil {
		t.Fatal(err)
	}
}

func TestResetOfUsageMakesAWorkspaceActiveAgain(t *testing.T) {
	var l *ledger.Ledger
	h := admintest.Build(t, func(d admin.Deps) []admin.Family {
		l = ledger.New(d.Resources.Store(), time.Now, ledger.Hooks{})
		return []admin.Family{New(Deps{Ledger: l})}
	})
	at := "/workspaces/" + h.One
	h.Do("PUT", at, key, `{"usage_limits":[{"type":"tokens","credit_limit":100}]}`).OK()
	exhaust(t, h, l, 100)
	a := h.Do("GET", at, key, nil).OK()
	if a.At("usage_limits", "0", "current_usage") != 100.0 || a.Text("usage_limits", "0", "status") != "exhausted" || a.At("last_reset_at") != nil {
		t.Fatalf("used up: %s", a.Body)
	}
	h.Do("PUT", at, key, `{"reset_usage":false}`).OK()
	if a = h.Do("GET", at, key, nil).OK(); a.Text("usage_limits", "0", "status") != "exhausted" {
		t.Errorf("false resets: %s", a.Body)
	}
	h.Do("PUT", at, key, `{"reset_usage":true}`).OK()
	a = h.Do("GET", at, key, nil).OK()
	if a.At("usage_limits", "0", "current_usage") != 0.0 || a.Text("usage_limits", "0", "status") != "active" || a.Text("last_reset_at") == "" {
		t.Errorf("reset: %s", a.Body)
	}
	if reset := a.Text("usage_limits", "0", "last_reset_at"); reset != a.Text("last_reset_at") || len(reset) != len("2026-01-31T15:04:05.000Z") {
		t.Errorf("reset at %q", reset)
	}
	h.Do("PUT", at, key, `{"reset_usage":"yes"}`).RequireFault(400, "AB01", "reset_usage")
}
