package main

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"gateway/shared/app"
)

// Processes of one installation that start together on an empty store fill it once, and all
// of them start.
func TestAnEmptyStoreIsFilledOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	for n := range 5 {
		org := fmt.Sprintf("org-%d", n)
		var wg sync.WaitGroup
		made, errs := make([]*app.BootstrapResult, 4), make([]error, 4)
		for i := range made {
			wg.Go(func() {
				made[i], errs[i] = r.g.core.Bootstrap(context.Background(), app.First{Organisation: org, Workspace: org, AdminKey: "admin-key-of-" + org, WorkspaceKey: "data-key-of-" + org, MockURL: r.mock.URL()})
			})
		}
		wg.Wait()
		makers := 0
		for i := range made {
			if errs[i] != nil {
				t.Errorf("%s: %v", org, errs[i])
			}
			if made[i] != nil {
				makers++
			}
		}
		if makers != 1 {
			t.Errorf("%s was made %d times", org, makers)
		}
		r.wantStatus(org, r.without("GET", "/admin/workspaces", "", "X-Gateway-Api-Key", "admin-key-of-"+org), 200, `"total":1`)
	}
	// A key that opens another organization is rejected, as before.
	if _, err := r.g.core.Bootstrap(context.Background(), app.First{Organisation: "late", Workspace: "late", AdminKey: "admin-key-of-org-0", WorkspaceKey: "another"}); err == nil {
		t.Error("a key opens two organisations")
	}
}
