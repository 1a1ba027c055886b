package mcpservers

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"gateway/shared/resource"
	"gateway/shared/seal/reference"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

func TestSecretsOfIntegrationsStayAtTheirAddress(t *testing.T) {
	t.Parallel()
	h, own, other := newInstallation(t), newUpstream(t, false), newUpstream(t, false)
	own.want("Bearer saved")
	other.want("")
	const headers = `"configurations":{"headers":{"Authorization":"Bearer saved"}}`
	at := "/mcp-integrations/" + register(h, own.URL, `"auth_type":"headers",`+headers).Text("slug")
	move := fmt.Sprintf(`"url":%q`, other.URL)
	for _, more := range []string{"", `,"auth_type":"none"`, `,"configurations":{"forward_headers":["x-trace"]}`, `,"configurations":{"custom_headers":{"X-A":"b"}}`} {
		h.Do("PUT", at, key, "{"+move+more+"}").RequireFault(400, "AB01", "url")
	}
	if got := h.Do("GET", at, key, nil).OK().Text("url"); got != own.URL {
		t.Errorf("the integration is at %s", got)
	}
	h.Do("PUT", at, key, "{"+move+","+headers+"}").OK()
	h.Do("PUT", at, key, fmt.Sprintf(`{"url":%q,"auth_type":"none","configurations":null}`, own.URL)).OK()
	// A token of the client credentials grant is also sent to the server.
	h.Do("PUT", at, key, `{"auth_type":"oauth_client_credentials","configurations":{"oauth_metadata":{"token_endpoint":"https://idp.example.com/token","client_id":"me","client_secret":"shh-not-told"}}}`).OK()
	h.Do("PUT", at, key, "{"+move+"}").RequireFault(400, "AB01", "url")
	// Users of references must not send them to another address.
	h.VaultReference("ref", "https://vault.example.com")
	h.Do("POST", "/mcp-integrations", key, `{"name":"Mapped","url":"https://attacker.example.com","transport":"http","auth_type":"headers","secret_mappings":[{"target_field":"configurations.headers.A","secret_reference_id":"ref"}]}`).RequireFault(400, "AB01", "url")
}

// A restricted mapping fails when its reference names another field of the secret.
func TestRestrictedMappingsFollowTheirReference(t *testing.T) {
	t.Parallel()
	h, up, vault := newInstallation(t), newUpstream(t, false), admintest.NewVault(t, "Bearer one")
	up.want("Bearer one")
	of := h.VaultReference("ref", vault.URL)
	at := "/mcp-integrations/" + register(h, up.URL, `"auth_type":"headers","secret_mappings":[{"target_field":"configurations.headers.Authorization","secret_reference_id":"ref","secret_key":"pass","restricted":true}]`).Text("slug")
	works := func() bool { return h.Do("POST", at+"/test", key, nil).OK().At("success") == true }
	if !works() {
		t.Fatal("the mapping does not work")
	}
	err := h.Resources.Change(context.Background(), store.Scope{Org: admintest.Org}, func(tx *resource.Tx) error {
		rec, _, err := tx.Get(of.Scope, of.Kind, of.ID)
		if err != nil {
			return err
		}
		form, err := reference.Decode(rec.Body)
		if err != nil {
			return err
		}
		form.SecretKey = "other"
		if rec.Body, err = json.Marshal(form); err != nil {
			return err
		}
		return tx.Update(&rec)
	})
	if err != nil {
		t.Fatal(err)
	}
	if works() {
		t.Error("the mapping gives a member that the reference does not name")
	}
}
