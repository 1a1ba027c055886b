package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gateway/shared/identity"
	"gateway/shared/store"
)

// overdue has the identity provider of a session be asked at its next use, and gives the
// rows of sessions.
func (e *entrance) overdue(token string) string {
	e.t.Helper()
	ctx, all := context.Background(), e.g.core.Store
	past := []store.Assign{{Path: store.At("due"), Value: time.Now().Add(-time.Minute).UnixMilli()}}
	if _, _, err := all.Table(store.Keys).Update(ctx, store.Update{Key: store.Credential("SESSION", identity.HashToken(token)), Set: past, If: []store.Cond{store.IfHas(store.At("due"))}}); err != nil {
		e.t.Fatal(err)
	}
	page, err := all.Table(store.Control).Query(ctx, store.Query{Partition: store.Scope{Org: "default"}.Partition(), Prefix: "SESSION#"})
	if err != nil || len(page.Rows) == 0 {
		e.t.Fatalf("%v %v", page.Rows, err)
	}
	for _, row := range page.Rows {
		if _, _, err := all.Table(store.Control).Update(ctx, store.Update{Key: row.Key, Set: past, If: []store.Cond{store.IfHas(store.At("renewal"))}}); err != nil {
			e.t.Fatal(err)
		}
	}
	return fmt.Sprintf("%s", page.Rows)
}

func TestASessionWithARefreshTokenLivesWhileItIsRenewed(t *testing.T) {
	t.Parallel()
	e := newEntrance(t)
	e.admin("PUT", "/auth/sso-configurations/"+e.configured, `{"scopes":["offline_access"]}`)
	got, token := e.enter(ofAnn)
	if got.status != 302 || token == "" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	var first string
	e.idp.set(func() { first = e.idp.refresh })
	if rows := e.overdue(token); first == "" || strings.Contains(rows, first) {
		t.Errorf("a refresh token is not sealed: %s", rows)
	}
	e.wantStatus("renewed", e.as(token, "GET", "/auth/self", ""), 200, "ann@corp.example.com")
	e.wantStatus("just now", e.as(token, "GET", "/auth/self", ""), 200, "ann@corp.example.com")
	e.idp.set(func() {
		if e.idp.renewed != 1 || e.idp.refresh == first {
			t.Errorf("renewed %d times", e.idp.renewed)
		}
	})

	_, token = e.enter(ofAnn)
	e.overdue(token)
	e.idp.set(func() { e.idp.refresh = "" })
	e.wantStatus("not renewed", e.as(token, "GET", "/api-keys", ""), 401, "ended")
	e.wantStatus("for good", e.as(token, "GET", "/auth/self", ""), 401, "ended")
	eventually(t, func() error {
		got := e.call("GET", "/audit-logs?start_time="+time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)+"&end_time="+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+"&resource_type=sessions&action=logout", "", "X-Gateway-Api-Key", adminKey).body
		if !strings.Contains(got, "does not renew the sign-in") || strings.Contains(got, "refresh-") {
			return errors.New(got)
		}
		return nil
	})

	_, token = e.enter(ofAnn)
	e.overdue(token)
	e.idp.Close()
	e.wantStatus("the provider is away", e.as(token, "GET", "/auth/self", ""), 200, "ann@corp.example.com")
}
