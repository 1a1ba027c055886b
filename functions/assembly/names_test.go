package assembly_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/admin"
)

// TestSlugsCanBeSet creates resources with a slug of the client's, reads them by it, and
// creates them again.
func TestSlugsCanBeSet(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	in.must("POST", "/virtual-keys", rootKey, `{"name":"K","slug":"openai","workspace_id":"first-space","provider":"openai","key":"k-secret-value"}`)
	for path, fields := range map[string]string{
		"/configs":          `"config":{"retry":{"attempts":3}}`,
		"/guardrails":       `"checks":[{"id":"default.wordCount","parameters":{"minWords":1}}],"actions":{"deny":true}`,
		"/collections":      `"parent_collection_id":null`,
		"/prompts":          `"string":"Hi","parameters":{},"virtual_key":"openai","model":"gpt-4o"`,
		"/prompts/partials": `"string":"Hi"`,
	} {
		body := fmt.Sprintf(`{"name":"N","slug":"chosen-%d","workspace_id":"first-space",%s}`, len(path), fields)
		made := in.must("POST", path, rootKey, body)
		slug := fmt.Sprint("chosen-", len(path))
		if made["slug"] != slug {
			t.Errorf("%s: %v", path, made)
		}
		if got := in.must("GET", path+"/"+slug+"?workspace_id=first-space", rootKey, ""); got["slug"] != slug {
			t.Errorf("%s: %v", path, got)
		}
		if status, answer := in.request("POST", path, rootKey, []byte(body)); status != 409 {
			t.Errorf("%s again: %d %s", path, status, answer)
		}
		if status, answer := in.request("POST", path, rootKey, []byte(strings.Replace(body, slug, "a b@c", 1))); status != 400 || !names(answer, "slug") {
			t.Errorf("%s with a bad slug: %d %s", path, status, answer)
		}
	}
	if status, answer := in.request("POST", "/prompts", rootKey, []byte(`{"name":"N","slug":"partials","workspace_id":"first-space","string":"Hi","parameters":{},"virtual_key":"openai"}`)); status != 400 || !names(answer, "slug") {
		t.Errorf("the slug partials: %d %s", status, answer)
	}
	// A prompt without a collection is in the default one.
	prompt := in.must("GET", "/prompts/chosen-8?workspace_id=first-space", rootKey, "")
	collection := in.must("GET", fmt.Sprint("/collections/", prompt["collection_id"]), rootKey, "")
	if collection["is_default"] != 1.0 {
		t.Errorf("the prompt is in %v", collection)
	}
	// An update that sends null leaves the collection.
	in.must("PUT", "/prompts/chosen-8", rootKey, `{"workspace_id":"first-space","name":"M","collection_id":null}`)
	if again := in.must("GET", "/prompts/chosen-8?workspace_id=first-space", rootKey, ""); again["collection_id"] != prompt["collection_id"] || again["name"] != "M" {
		t.Errorf("after the update: %v", again)
	}
}

// TestIDsAreTheSameEverywhere holds the id of a workspace in lists against that of its read,
// and the names of the link of an invitation against each other.
func TestIDsAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	listed := in.must("GET", "/workspaces", rootKey, "")["data"].([]any)[0].(map[string]any)
	read := in.must("GET", "/workspaces/first-space", rootKey, "")
	if listed["id"] != read["id"] || listed["slug"] != "first-space" || read["slug"] != "first-space" {
		t.Errorf("listed %v %v, read %v %v", listed["id"], listed["slug"], read["id"], read["slug"])
	}
	made := in.must("POST", "/users/invites", rootKey, `{"email":"a@example.com","role":"admin"}`)
	again := in.must("POST", "/users/invites/"+made["id"].(string)+"/resend", rootKey, "")
	if again["invite_link"] != again["inviteLink"] || again["invite_link"] == nil || made["invite_link"] == nil {
		t.Errorf("%v, %v", made, again)
	}
}

// TestBodiesNameTheWorkspaceAsQueriesDo calls every POST and PUT with the workspace in the
// body and in the query: the responses are the same, whether the workspace exists, is
// another one than the key's, or does not exist.
func TestBodiesNameTheWorkspaceAsQueriesDo(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	in.must("POST", "/workspaces", rootKey, `{"name":"Second"}`)
	second := in.must("GET", "/workspaces?exact_name=Second", rootKey, "")["data"].([]any)[0].(map[string]any)["slug"].(string)
	same := func(raw []byte) string {
		var of struct {
			Data, Error json.RawMessage
		}
		if err := json.Unmarshal(raw, &of); err != nil {
			return string(raw)
		}
		return string(of.Error)
	}
	tried := 0
	for _, family := range in.families {
		for i := range family.Routes {
			r := &family.Routes[i]
			if r.Method != "POST" && r.Method != "PUT" || r.Public || r.Authenticate != nil || r.Rejections != nil || r.Unparsed || r.ByWorkspaces || r.MaxItems > 0 || r.Level == admin.InOrganisation || r.Level == admin.Shared {
				continue
			}
			path := strings.NewReplacer("{type}", "workspace", "{subType}", "service", "{", "", "}", "").Replace(r.Path)
			for _, key := range []string{rootKey, firstKey} {
				for _, workspace := range []string{"nowhere", second, "other-space"} {
					status, answer := in.request(r.Method, path+"?workspace_id="+workspace, key, []byte("{}"))
					inBody, body := in.request(r.Method, path, key, []byte(`{"workspace_id":"`+workspace+`"}`))
					tried++
					if status != inBody || same(answer) != same(body) {
						t.Errorf("%s %s with %.9s in %s: %d %.200s in the query, %d %.200s in the body", r.Method, r.Path, key, workspace, status, answer, inBody, body)
					}
				}
			}
		}
	}
	if tried < 300 {
		t.Errorf("only %d calls", tried)
	}
}
