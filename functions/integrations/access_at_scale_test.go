package integrations

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

// addWorkspaces makes the organization larger than one change.
func addWorkspaces(t testing.TB, h *admintest.Installation, n int) {
	t.Helper()
	sc := store.Scope{Org: admintest.Org}
	for k := range n {
		rec := resource.Record{Scope: sc, Kind: "WORKSPACE", Slug: fmt.Sprintf("ws-more-%06d", k), Name: "More", Status: "active", Body: []byte("{}")}
		if err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
			t.Fatal(err)
		}
	}
}

func TestManyWorkspacesGetTheirProvidersAndLoseThem(t *testing.T) {
	h := newInstallation(t)
	addWorkspaces(t, h, 40)
	slug := create(t, h, chief, `,"slug":"org"`)
	h.Do("PUT", "/integrations/"+slug+"/workspaces", chief, `{"global_workspace_access":{"enabled":true}}`).OK()
	rec, i := stored(t, h, "", slug)
	users, err := h.Resources.Users(context.Background(), rec.Ref())
	if err != nil || len(users) != 42 || !i.Global.Enabled {
		t.Fatalf("%d providers, %v", len(users), err)
	}
	h.Do("DELETE", "/integrations/"+slug, chief, nil).OK()
	if users, err = h.Resources.Users(context.Background(), rec.Ref()); err != nil || len(users) != 0 || len(providersIn(t, h, h.One)) != 0 {
		t.Errorf("after the delete: %d providers, %v", len(users), err)
	}
	if rec, _, err = h.Resources.Get(context.Background(), rec.Scope, rec.Kind, rec.ID); err != nil || !rec.Archived() {
		t.Errorf("the integration is %s, %v", rec.Status, err)
	}
	var changes []string
	for _, e := range h.Audit() {
		changes = append(changes, e.Action)
		if e.ResourceType != "integrations" || e.ResourceID != rec.ID || e.StatusCode != 200 {
			t.Errorf("audit: %+v", e)
		}
	}
	if got := strings.Join(changes, " "); got != "create manage delete" {
		t.Errorf("audit: %s", got)
	}
}

func TestCallsAtATimeMakeOneProviderPerWorkspace(t *testing.T) {
	h := newInstallation(t)
	addWorkspaces(t, h, 20)
	slug := create(t, h, chief, `,"slug":"org"`)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if got := h.Do("PUT", "/integrations/"+slug+"/workspaces", chief, `{"global_workspace_access":{"enabled":true}}`); got.Status != 200 {
				t.Errorf("%d %s", got.Status, got.Body)
			}
		})
	}
	wg.Wait()
	rec, _ := stored(t, h, "", slug)
	users, err := h.Resources.Users(context.Background(), rec.Ref())
	if err != nil {
		t.Fatal(err)
	}
	perWorkspace := map[string]int{}
	for _, u := range users {
		perWorkspace[u.Scope.Workspace]++
	}
	if len(users) != 22 || len(perWorkspace) != 22 {
		t.Errorf("%d providers in %d workspaces", len(users), len(perWorkspace))
	}
}

func TestOfTwoEqualSlugsOneIsTaken(t *testing.T) {
	h := newInstallation(t)
	var wg sync.WaitGroup
	var made atomic.Int32
	for range 6 {
		wg.Go(func() {
			got := h.Do("POST", "/integrations", key, `{"name":"a","slug":"same","ai_provider_id":"openai","key":"sk-abcdefgh","default_provider_slug":"same"}`)
			switch got.Status {
			case 200:
				made.Add(1)
			case 400, 409:
			default:
				t.Errorf("%d %s", got.Status, got.Body)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 || len(providersIn(t, h, h.One)) != 1 {
		t.Errorf("%d integrations, %d providers", made.Load(), len(providersIn(t, h, h.One)))
	}
}

func TestProviderInUseRetainsItsIntegration(t *testing.T) {
	h := newInstallation(t)
	slug := create(t, h, key, `,"slug":"own"`)
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	used := resource.Ref{Scope: sc, Kind: provider.KindProvider, ID: providersIn(t, h, h.One)[0].ID}
	by := resource.Ref{Scope: sc, Kind: "PROMPT", ID: resource.NewID(), Name: "greeting"}
	if err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error { return tx.Use(used, by) }); err != nil {
		t.Fatal(err)
	}
	if f := h.Do("DELETE", "/integrations/"+slug, key, nil).RequireFault(409, "AB07", "").Failure(); !strings.Contains(f.Message, "greeting") {
		t.Errorf("the user is not named: %s", f.Message)
	}
	h.Do("GET", "/integrations/"+slug, key, nil).OK()
}
