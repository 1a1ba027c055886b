package onlambda_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"gateway/shared/app/onaws"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/sso"
	"gateway/shared/store"
	"gateway/shared/testkit/idptest"
)

const clients = root + "/scripts/clients"

// TestPeopleSignInOnLambda: the functions, each with the permissions of its role and in two
// processes, have nothing but the store between the steps of a sign-in: by OpenID Connect
// and by SAML, in a browser and on a device, with what SCIM ends.
func TestPeopleSignInOnLambda(t *testing.T) {
	idptest.WithBrowser(t, clients, "oidc-provider")
	idp := idptest.StartSAML(t, root+"/scripts/testdeps", "https://idp.example.com/entity")
	in := restrictTo(t, []string{"auth", "scim", "auditlogs", "audit"},
		func(*restricted) string { return onaws.EnvEgress + "=127.0.0.0/8,::1" },
		func(*restricted) string { return onaws.EnvTrustedHosts + "=127.0.0.1,localhost" },
		func(in *restricted) string { return onaws.EnvPublicURL + "=" + in.url + "/v1" },
	)
	in.owns("example.com")
	env := []string{"GATEWAY_URL=" + in.url + "/v1", "GATEWAY_ADMIN_KEY=" + adminKey, "SAML_PROVIDER=" + strings.Replace(idp.URL, "127.0.0.1", "localhost", 1)}
	for _, file := range []string{"oidc_provider.test.mjs", "browser.test.mjs", "saml.test.mjs"} {
		t.Run(file, func(t *testing.T) { idptest.RunClient(t, clients, file, env...) })
	}
	in.audits("auth", `"method":"saml"`, `"method":"oidc"`, `"client_ip":"127.0.0.1"`)
	in.stops("ann@example.com")
	for _, refused := range in.recorder.Denied() {
		t.Errorf("missing: %s", refused)
	}
	if t.Failed() {
		t.Log(in.log.text())
	}
}

// owns gives the organization a verified domain: names are not looked up in tests.
func (in *restricted) owns(domain string) {
	in.t.Helper()
	made := in.send("POST", "/auth/domains", adminKey, `{"domain":"`+domain+`"}`)
	org := store.Scope{Org: "default"}
	err := in.core.Resources.Change(in.t.Context(), org, func(tx *resource.Tx) error {
		id, _ := made["id"].(string)
		rec, ok, err := tx.Get(org, sso.KindDomain, id)
		if err != nil || !ok {
			return err
		}
		d, err := resource.Decode[sso.Domain](rec)
		if err != nil {
			return err
		}
		d.VerifiedAt = time.Now().UTC().Format(time.RFC3339)
		if rec.Body, err = json.Marshal(d); err != nil {
			return err
		}
		if err := sso.Claim(tx, d); err != nil {
			return err
		}
		return tx.Update(&rec)
	})
	if err != nil {
		in.t.Fatal(err)
	}
}

// audits waits until the audit log of a kind says all that is wanted.
func (in *restricted) audits(kind string, want ...string) {
	in.t.Helper()
	now := time.Now().UTC()
	of := "/audit-logs?resource_type=" + kind + "&start_time=" + now.Add(-time.Hour).Format(time.RFC3339) + "&end_time=" + now.Add(time.Hour).Format(time.RFC3339)
	in.work(func() error {
		got := whole(in.t, in.do(in.t, "GET", of, adminKey, ""))
		for _, s := range want {
			if !strings.Contains(got, s) {
				return fmt.Errorf("no %s in %s", s, got)
			}
		}
		return nil
	})
}

// stops has SCIM stop somebody: a session opens nothing any more, in any process, and nothing
// again when its user is back.
func (in *restricted) stops(email string) {
	in.t.Helper()
	token, _ := in.send("POST", "/scim/tokens", adminKey, `{"name":"T"}`)["token"].(string)
	found := in.send("GET", "/scim/Users?filter="+strings.ReplaceAll(`userName+eq+"`+email+`"`, `"`, "%22"), token, "")
	users, _ := found["Resources"].([]any)
	if len(users) != 1 {
		in.t.Fatalf("%v", found)
	}
	id, _ := users[0].(map[string]any)["id"].(string)
	session := in.begins(id)
	// Several calls at once are answered by several processes.
	everywhere := func(want int) error {
		got := make(chan error, 4)
		for range cap(got) {
			go func() { got <- in.self(session, want) }() // each ends with its call
		}
		var out error
		for range cap(got) {
			out = cmp.Or(<-got, out)
		}
		return out
	}
	in.until(func() error { return everywhere(200) })
	in.send("PATCH", "/scim/Users/"+id, token, `{"Operations":[{"op":"replace","path":"active","value":false}]}`)
	in.until(func() error { return everywhere(401) })
	in.send("PATCH", "/scim/Users/"+id, token, `{"Operations":[{"op":"replace","path":"active","value":true}]}`)
	if err := everywhere(401); err != nil {
		in.t.Errorf("with its user back: %v", err)
	}
}

// self asks who a session is of, and holds the status against what is wanted.
func (in *restricted) self(session string, want int) error {
	req, err := http.NewRequestWithContext(in.t.Context(), "GET", in.url+"/v1/auth/self", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+session)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != want {
		return fmt.Errorf("the session gets %d, not %d", res.StatusCode, want)
	}
	return nil
}

// begins makes a session of a user.
func (in *restricted) begins(user string) (token string) {
	in.t.Helper()
	org := store.Scope{Org: "default"}
	err := in.core.Resources.Change(in.t.Context(), org, func(tx *resource.Tx) (err error) {
		token, err = signin.Begin(tx, &signin.Session{Org: org.Org, User: user, Method: signin.ByOIDC})
		return err
	})
	if err != nil {
		in.t.Fatal(err)
	}
	return token
}
