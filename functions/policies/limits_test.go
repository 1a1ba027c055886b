package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/identity"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

// limited stores a resource with limits, used reserved requests of it are settled.
func limited(t *testing.T, h *admintest.Installation, l *ledger.Ledger, rec resource.Record, body any, used int, subject func(resource.Record) *ledger.Subject) resource.Record {
	t.Helper()
	var err error
	if rec.Body, err = json.Marshal(body); err != nil {
		t.Fatal(err)
	}
	if err := h.Resources.Change(context.Background(), rec.Scope, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
		t.Fatal(err)
	}
	spend(t, l, subject(rec), used)
	return rec
}

func spend(t *testing.T, l *ledger.Ledger, s *ledger.Subject, requests int) {
	t.Helper()
	for range requests {
		r, err := l.Reserve(context.Background(), resource.NewID(), []*ledger.Subject{s}, ledger.Bound{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Settle(context.Background(), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// newLimitsInstallation has a limit of each kind in the first workspace, and one key in the second.
func newLimitsInstallation(t *testing.T) *admintest.Installation {
	h, l := newInstallation(t)
	budget := ledger.UsageLimit{Type: ledger.Requests, CreditLimit: 10}
	one := store.Scope{Org: admintest.Org, Workspace: h.One}
	user := h.Caller(admintest.MemberKey).UserID
	key := func(sc store.Scope, kind identity.KeyType, name, of string, used int) {
		limited(t, h, l, resource.Record{Scope: sc, Kind: identity.KindKey, Name: name, Status: "active", Fields: map[string]string{"type": string(kind), "user": of}}, identity.Key{Type: kind, UserID: of, UsageLimits: &budget}, used, func(rec resource.Record) *ledger.Subject {
			return identity.SubjectOf(sc, rec.ID, rec.Name, rec.Rev, nil, &budget)
		})
	}
	key(one, identity.WorkspaceService, "service", "", 9)
	key(one, identity.WorkspaceUser, "own", user, 6)
	key(one, identity.WorkspaceUser, "other", "another-user", 5)
	key(store.Scope{Org: admintest.Org, Workspace: h.Two}, identity.WorkspaceService, "foreign", "", 10)
	in := provider.Instance{UsageLimits: &budget}
	limited(t, h, l, resource.Record{Scope: one, Kind: provider.KindProvider, Slug: "saved", Name: "Saved", Status: "active"}, in, 4, func(rec resource.Record) *ledger.Subject {
		return provider.InstanceSubject(one, rec.ID, rec.Slug, rec.Rev, &in)
	})
	open := provider.WorkspaceAccess{Workspace: h.One, Enabled: true, UsageLimits: []ledger.UsageLimit{budget}}
	closed := provider.WorkspaceAccess{Workspace: h.Two, Enabled: true, UsageLimits: []ledger.UsageLimit{budget}}
	for slug, access := range map[string]provider.WorkspaceAccess{"open": open, "closed": closed} {
		limited(t, h, l, resource.Record{Scope: one.Organisation(), Kind: provider.KindIntegration, Slug: slug, Name: slug, Status: "active"}, provider.Integration{AIProviderID: "openai", Workspaces: []provider.WorkspaceAccess{access}}, 3, func(rec resource.Record) *ledger.Subject {
			return provider.AccessSubject(store.Scope{Org: admintest.Org, Workspace: access.Workspace}, rec.ID, rec.Slug, rec.Rev, access)
		})
	}
	if err := h.Resources.Change(context.Background(), one.Organisation(), func(tx *resource.Tx) error {
		rec, _, err := tx.Get(one.Organisation(), tenant.KindWorkspace, h.One)
		if err != nil {
			return err
		}
		w, err := tenant.ReadWorkspace(rec)
		if err != nil {
			return err
		}
		w.UsageLimits = []ledger.UsageLimit{budget}
		if rec.Body, err = json.Marshal(w); err != nil {
			return err
		}
		return tx.Update(&rec)
	}); err != nil {
		t.Fatal(err)
	}
	id := h.Do("POST", usage, admintest.WorkspaceA, `{"name":"Teams","conditions":[{"key":"metadata.team","value":"*"}],"group_by":[{"key":"metadata.team"}],"type":"requests","credit_limit":10,"alert_threshold":5}`).OK().Text("id")
	rec, _, err := h.Resources.Get(context.Background(), one, ledger.KindUsagePolicy, id)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ledger.DecodePolicy(rec)
	if err != nil {
		t.Fatal(err)
	}
	spend(t, l, p.SubjectOf(one, id, p.Name, p.Revision, "metadata.team:blue"), 10)
	spend(t, l, p.SubjectOf(one, id, p.Name, p.Revision, "metadata.team:red"), 1)
	return h
}

// shares are the rows of a list as kind, name or counter, and share.
func shares(a admintest.Response) (out []string) {
	rows, _ := a.At("data").([]any)
	for _, row := range rows {
		r := row.(map[string]any)
		name := r["name"]
		if r["value_key"] != nil {
			name = r["value_key"]
		}
		out = append(out, fmt.Sprint(r["kind"], " ", name, " ", r["used_share"]))
	}
	return out
}

func TestLimitsAreListedByShareUsed(t *testing.T) {
	t.Parallel()
	h := newLimitsInstallation(t)
	const path = "/policies/limits"
	all := []string{"policy metadata.team:blue 1", "key service 0.9", "key own 0.6", "key other 0.5", "provider saved 0.4", "integration open 0.3", "policy metadata.team:red 0.1", "workspace One 0"}
	got := h.Do("GET", path, key, nil).OK()
	if !slices.Equal(shares(got), all) || got.At("total") != float64(len(all)) || got.At("total_is_lower_bound") != nil {
		t.Errorf("%s", got.Body)
	}
	if got.Text("data", "0", "status") != "exhausted" || got.At("data", "0", "available") != 0.0 || got.At("data", "1", "current_usage") != 9.0 || got.At("data", "1", "available") != 1.0 || got.At("data", "1", "next_reset_at") != nil {
		t.Errorf("%s", got.Body)
	}
	if got := h.Do("GET", path+"?page_size=2", key, nil).OK(); !slices.Equal(shares(got), all[:2]) || got.At("total") != float64(len(all)) {
		t.Errorf("%s", got.Body)
	}
	for kind, want := range map[string][]string{"key": {all[1], all[2], all[3]}, "workspace": {all[7]}, "provider": {all[4]}, "integration": {all[5]}, "policy": {all[0], all[6]}} {
		if got := shares(h.Do("GET", path+"?kind="+kind, key, nil).OK()); !slices.Equal(got, want) {
			t.Errorf("%s: %q", kind, got)
		}
	}
	for query, field := range map[string]string{"page_size=0": "page_size", "page_size=101": "page_size", "kind=token": "kind", "current_page=1": "current_page"} {
		h.Do("GET", path+"?"+query, key, nil).RequireFault(400, "AB01", field)
	}
}

// Callers see the limits of what they may list, in their own workspace.
func TestLimitsOfOthersAreNotListed(t *testing.T) {
	t.Parallel()
	h := newLimitsInstallation(t)
	const path = "/policies/limits"
	for name, c := range map[string]struct {
		key, query string
		scopes     []string // of the member; nil: all
		want       []string
	}{
		"a member sees its own keys":   {admintest.MemberKey, "?kind=key", nil, []string{"key own 0.6"}},
		"a manager sees all keys":      {admintest.ManagerKey, "?kind=key", nil, []string{"key service 0.9", "key own 0.6", "key other 0.5"}},
		"without the scopes of others": {admintest.MemberKey, "", []string{"policies.list"}, []string{"policy metadata.team:blue 1", "policy metadata.team:red 0.1"}},
		"scope of providers alone":     {admintest.MemberKey, "", []string{"policies.list", "virtual_keys.list"}, []string{"policy metadata.team:blue 1", "provider saved 0.4", "policy metadata.team:red 0.1"}},
		"service keys need their own":  {admintest.ManagerKey, "?kind=key", []string{"policies.list", "workspace_user_api_keys.list"}, []string{"key own 0.6", "key other 0.5"}},
		"another workspace":            {admintest.WorkspaceB, "", nil, []string{"key foreign 1", "integration closed 0.3"}},
		"an organization names none":   {admintest.AdminKey, "?kind=key", nil, []string{"key foreign 1", "key service 0.9", "key own 0.6", "key other 0.5"}},
		"an organization names one":    {admintest.AdminKey, "?workspace_id=" + h.Two, nil, []string{"key foreign 1", "integration closed 0.3"}},
	} {
		caller := h.Caller(c.key)
		if c.scopes != nil {
			less := caller
			less.Scopes = admintest.ScopeList(c.scopes)
			h.SetCaller(c.key, less)
		}
		got := shares(h.Do("GET", path+c.query, c.key, nil).OK())
		h.SetCaller(c.key, caller)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	h.SetCaller(admintest.MemberKey, func() admin.Caller {
		c := h.Caller(admintest.MemberKey)
		c.Scopes = admintest.ScopeList{"policies.read"}
		return c
	}())
	h.Do("GET", path, admintest.MemberKey, nil).RequireFault(403, "AB03", "")
	h.Do("GET", path+"?workspace_id="+h.One, admintest.OtherAdmin, nil).RequireFault(404, "AB08", "workspace_id")
}
