package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// TestKeysThatOthersKnowChooseNoAccount: a key of a user that another user created before keys
// had ranks may be known to that user.
func TestKeysThatOthersKnowChooseNoAccount(t *testing.T) {
	t.Parallel()
	r := start(t)
	ws := r.workspace()
	ann := r.person("ann@example.com", "member", "default", "member")
	of := r.admin("POST", "/mcp-integrations", fmt.Sprintf(`{"name":"o","auth_type":"oauth_auto","transport":"http","url":"https://mcp.example.com/mcp","workspace_id":%q}`, ws))
	at := "/mcp-servers/" + r.admin("POST", "/mcp-servers", fmt.Sprintf(`{"name":"o","mcp_integration_id":%q,"workspace_id":%q}`, of["id"], ws))["id"].(string) + "/tokens"
	id := r.admin("POST", "/api-keys/workspace/user", fmt.Sprintf(`{"name":"k","user_id":%q,"workspace_id":%q,"scopes":["mcp.invoke","mcp_servers.read"]}`, ann, ws))["id"].(string)
	key, _ := r.as(r.signIn(ann, 0), "POST", "/api-keys/"+id+"/collect", "").json(t)["key"].(string)
	put := func() reply {
		return r.call("PUT", at, `{"access_token":"t"}`, "X-Gateway-Api-Key", key)
	}
	r.wantStatus("her own key", put(), 200, `"connected":true`)
	if err := r.g.core.Resources.Change(context.Background(), store.Scope{Org: "default"}, func(tx *resource.Tx) error {
		rec, ok, err := tx.Get(store.Scope{Org: "default", Workspace: ws}, identity.KindKey, id)
		if err != nil || !ok {
			return fmt.Errorf("no key: %w", err)
		}
		var k identity.Key
		if err := json.Unmarshal(rec.Body, &k); err != nil {
			return err
		}
		k.Rank = ""
		if rec.Body, err = json.Marshal(&k); err != nil {
			return err
		}
		if err := tx.Update(&rec); err != nil {
			return err
		}
		return identity.Stage(tx, &rec, &k, "default")
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if got := put(); got.status != 403 {
			return fmt.Errorf("a key that others know: %d %s", got.status, got.body)
		}
		return nil
	})
	r.wantStatus("deleting", r.call("DELETE", at, "", "X-Gateway-Api-Key", key), 403, "Other users may have seen this key")
}
