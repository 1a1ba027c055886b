package ownership

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gateway/shared/dialect/reference"
	"gateway/shared/fault"
	"gateway/shared/store"
)

func TestItemsBelongToTheirWorkspace(t *testing.T) {
	t.Parallel()
	ctx, now := context.Background(), time.Now()
	o := newOwners(t, &now)
	mine, theirs := store.Scope{Org: "o", Workspace: "mine"}, store.Scope{Org: "o", Workspace: "theirs"}
	places := []string{"credential", "integration"}
	for sc, id := range map[store.Scope]string{mine: "rs_mine", theirs: "rs_theirs"} {
		for range 2 {
			if err := o.OwnItems(ctx, sc, places, "p", []string{id, id, ""}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := o.OwnItems(ctx, mine, places, "p", []string{"rs_theirs"}); err != nil {
		t.Fatal(err)
	}
	for kind, payload := range map[string]string{
		"message":              `"role":"assistant","content":"x"`,
		"reasoning":            `"summary":[],"encrypted_content":"abc"`,
		"mcp_approval_request": `"server_label":"s","name":"f","arguments":"{}"`,
	} {
		for id, foreign := range map[string][2]bool{"rs_mine": {}, "rs_theirs": {true, true}, "rs_nobody": {true, false}} {
			for i, w := range []TenantIsolation{{Enabled: true, Shared: true, Places: places}, {Enabled: true, Places: places}} {
				for _, whole := range []bool{false, true} {
					item := fmt.Sprintf(`{"type":%q,"id":%q}`, kind, id)
					if whole {
						item = fmt.Sprintf(`{"type":%q,"id":%q,%s}`, kind, id, payload)
					}
					body := []byte(`{"input":[` + item + `,{"type":"mcp_approval_response","approval_request_id":"` + id + `","approve":true}]}`)
					got, err := o.FindForeign(ctx, mine, &w, reference.Items(body))
					if !whole && foreign[i] {
						if f := fault.From(err); err == nil || f.Status() != 404 || f.Field != "input[0]" || !strings.Contains(f.Message, id) {
							t.Errorf("%s: %v", body, err)
						}
						continue
					}
					if err != nil || got[id] != foreign[i] {
						t.Errorf("%s: %v %v, want %v", body, got, err, foreign[i])
					}
					sent := string(reference.ReplaceForeign(body, got))
					if strings.Contains(sent, id) == foreign[i] || strings.Count(sent, `"rs_`) != 2 {
						t.Errorf("%s is sent as %s", body, sent)
					}
				}
			}
		}
	}
}

func TestItemsAreKeptUnlessTheBodySaysNot(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{`{"store":false}`: false, `{"store":true}`: true, `{}`: true, `{"store":null}`: true} {
		if StoresItems([]byte(body)) != want {
			t.Errorf("%s: %v", body, !want)
		}
	}
}
