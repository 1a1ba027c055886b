package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gateway/functions/expiry"
	"gateway/shared/audit"
	"gateway/shared/resource"
)

// TestAutomaticRotationHandsOutTheNewSecretOnce runs the key worker on a later
// day: the old secret continues through its transition, the new one is collected.
func TestAutomaticRotationHandsOutTheNewSecretOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	made := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(
		`{"name":"turning","workspace_id":%q,"scopes":["completions.write"],"rotation_policy":{"rotation_period":"weekly","key_transition_period_ms":3600000}}`, r.workspace()))
	id, old := made["id"].(string), made["key"].(string)
	collect := func(key string) reply {
		return r.call("POST", "/api-keys/"+id+"/collect", "", "X-Gateway-Api-Key", key)
	}
	if got := collect(adminKey); got.status != 404 {
		t.Fatalf("before any rotation: %d %s", got.status, got.body)
	}

	if err := (&expiry.Worker{Resources: r.g.core.Resources, Sealer: r.g.core.Sealer}).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	later := time.Now().AddDate(0, 0, 30) // the machine was off when it was due
	then := resource.New(r.g.core.Store, resource.Embedded(), resource.Clock(func() time.Time { return later }))
	worker := expiry.Worker{Sealer: r.g.core.Sealer, Resources: then}
	for range 2 { // the second run finds nothing to do
		if err := worker.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	later = later.Add(time.Hour) // the sweep takes what has waited for a while
	if n, err := audit.NewSender(then, r.g.core.Audit).Sweep(context.Background()); err != nil || n == 0 {
		t.Fatalf("%d audit records swept, %v", n, err)
	}
	shown := r.admin("GET", "/api-keys/"+id, "")
	if shown["secret_to_collect"] != true || shown["last_rotated_at"] == nil {
		t.Errorf("after the rotation the key is shown as %v", shown)
	}
	next, err := time.Parse(time.RFC3339, shown["rotation_policy"].(map[string]any)["next_rotation_at"].(string))
	if err != nil || !next.After(later.Add(-time.Hour)) || next.Weekday() != time.Monday {
		t.Errorf("the next rotation is at %v, %v", next, err)
	}
	if got := collect(workspaceKey); got.status != 403 {
		t.Errorf("a key without the right collects: %d %s", got.status, got.body)
	}
	got := collect(adminKey)
	fresh, _ := got.json(t)["key"].(string)
	if got.status != 200 || fresh == "" || fresh == old {
		t.Fatalf("collected %d %s", got.status, got.body)
	}
	if got := collect(adminKey); got.status != 404 {
		t.Errorf("collected twice: %d %s", got.status, got.body)
	}
	eventually(t, func() error {
		for name, key := range map[string]string{"old": old, "new": fresh} {
			got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", ""), "X-Gateway-Api-Key", key)
			if got.status != 200 {
				return fmt.Errorf("the %s secret: %d %s", name, got.status, got.body)
			}
		}
		return nil
	})
	eventually(t, func() error {
		list, err := audit.NewReader(r.g.core.Store, func() time.Time { return later }).List(context.Background(), "default", audit.Filter{Start: time.Now().Add(-time.Hour), End: later, Size: 100})
		if err != nil {
			return err
		}
		text, _ := json.Marshal(list)
		if strings.Contains(string(text), fresh) {
			t.Fatal("the audit log holds the new secret")
		}
		if !strings.Contains(string(text), "rotation_mode") {
			return fmt.Errorf("no record of the rotation in %s", text)
		}
		return nil
	})
}
