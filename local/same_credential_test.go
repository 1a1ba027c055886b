package main

import (
	"fmt"
	"strings"
	"testing"
)

// saveTwice is share with an integration of each workspace's own that holds the
// same credential: nobody shares anything but the account.
func saveTwice(t *testing.T) neighbours {
	n := neighbours{running: start(t)}
	for i, key := range []*string{&n.mine, &n.theirs} {
		ws := n.admin("POST", "/workspaces", fmt.Sprintf(`{"name":"Neighbour %d"}`, i))
		n.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":"vk","slug":"common","provider":"openai","key":"mock-common","workspace_id":%q,"customHost":%q,"note":"%d"}`, ws["id"], n.mockBase(), i))
		*key = n.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"]}`, ws["id"]))["key"].(string)
	}
	return n
}

// met waits until both workspaces know of each other's use of the credential.
func (n neighbours) met() {
	n.t.Helper()
	for _, pair := range [][2]string{{n.mine, n.theirs}, {n.theirs, n.mine}} {
		file := n.id("POST", "/files", form("purpose", "vision", "file", "a:b"), as(pair[0], formType...)...)
		eventually(n.t, func() error {
			if got := n.call("GET", "/files", "", as(pair[1])...); got.status != 200 || strings.Contains(got.body, file) {
				return fmt.Errorf("another workspace's file is listed: %d %s", got.status, got.body)
			}
			return nil
		})
	}
}

//lane:exhaustive
func TestOneCredentialSavedTwiceIsolatesTenants(t *testing.T) {
	t.Parallel()
	n := saveTwice(t)
	before := n.id("POST", "/files", form("purpose", "vision", "file", "a:b"), as(n.mine, formType...)...)
	n.met()
	othersAreMissing(t, n)
	// What was made before the other came stays its maker's, and its maker's only.
	if got := n.call("GET", "/files/"+before, "", as(n.mine)...); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := n.call("GET", "/files/"+before, "", as(n.theirs)...); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
}
