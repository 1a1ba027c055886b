package users

import (
	"encoding/json"
	"testing"

	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/signin/sso"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

// TestTheLinkOfAnInvitationShowsNoKeyOfSomebodyElse checks that whoever has the link, such as
// its author, gets no key of a user who shows who they are in another way: by signing in, or
// because the user was there before, under an address that it got later.
func TestTheLinkOfAnInvitationShowsNoKeyOfSomebodyElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		domain   string
		provider bool
		exists   bool
		shown    bool
	}{
		"nobody can sign in":         {"example.com", false, false, true},
		"the domain is another one":  {"example.net", true, false, true},
		"the user can sign in":       {"example.com", true, false, false},
		"the user was there already": {"", false, true, false},
	} {
		h, _ := newInstallation(t)
		create := func(kind resource.Kind, slug string, form any) {
			body, err := json.Marshal(form)
			if err == nil {
				err = h.Resources.Change(t.Context(), org, func(tx *resource.Tx) error {
					return tx.Create(&resource.Record{Scope: org, Kind: kind, ID: resource.NewID(), Slug: slug, Name: slug, Status: "active", Body: body})
				})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if c.domain != "" {
			create(sso.KindDomain, sso.Slug(c.domain), sso.Domain{Domain: c.domain, Challenge: "x", VerifiedAt: "2026-01-01T00:00:00.000Z"})
		}
		if c.provider {
			create(sso.KindConnection, "idp", sso.Connection{Protocol: sso.OIDC, Issuer: "https://login.example.com", ClientID: "c"})
		}
		token := tokenOf(t, h.Do("POST", "/admin/users/invites", chief, invitation1(h, `,"workspace_api_key_details":{"scopes":["completions.write"]}`)).OK().Text("invite_link"))
		if c.exists {
			addUser(t, h, "ann@example.com", membership.Member)
		}
		done := h.Do("POST", "/invites/accept?token="+token, "", `{"first_name":"Ann","last_name":"Lee"}`).OK()
		if got := len(done.At("api_keys").([]any)); (got > 0) != c.shown {
			t.Errorf("%s: %d keys are shown", name, got)
		}
		for _, ws := range []string{h.One, h.Two} {
			recs, err := h.Resources.List(t.Context(), storeScope(ws), identity.KindKey)
			if err != nil || len(recs) != 1 {
				t.Fatalf("%s: %d keys, %v", name, len(recs), err)
			}
			rec, _, err := h.Resources.Get(t.Context(), storeScope(ws), identity.KindKey, recs[0].ID)
			if err != nil || rec.HasSecret(identity.UncollectedSecret) == c.shown {
				t.Errorf("%s: the key waits to be collected: %v, %v", name, !c.shown, err)
			}
		}
	}
}

func storeScope(ws string) store.Scope { return store.Scope{Org: admintest.Org, Workspace: ws} }
