package assembly_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/testkit/admintest/drive"
)

// notSentBack are updates whose GET of the same path cannot be sent back, with the reason.
var notSentBack = map[string]string{
	"/agent-integrations/{integrationId}/skills":     "the GET is a page of a list, under another name",
	"/agent-servers/{serverId}/skills":               "the GET is a page of a list, under another name",
	"/agent-servers/{serverId}/user-access":          "the GET is a page of a list, under another name",
	"/mcp-integrations/{integrationId}/capabilities": "the GET is a page of a list, under another name",
	"/mcp-servers/{serverId}/capabilities":           "the GET is a page of a list, under another name",
	"/mcp-servers/{serverId}/user-access":            "the GET is a page of a list, under another name",
	"/mcp-servers/{serverId}/tokens":                 "the GET shows no token",
	"/workspace-exclusions/input-guardrails":         "the GET is a page of a list, under another name",
	"/workspace-exclusions/output-guardrails":        "the GET is a page of a list, under another name",
	"/prompts/{promptId}/versions/{versionId}":       "a version is immutable: the PUT takes its label alone",
}

// inOrganisation are updates of resources of the organization alone.
var inOrganisation = []string{"/integrations/{slug}/workspaces", "/mcp-integrations/{integrationId}/workspaces", "/agent-integrations/{integrationId}/workspaces"}

// alwaysNew are members that an update may change although it changes nothing else.
// An agent whose configuration is sent is asked for its card again.
var alwaysNew = []string{"last_updated_at", "updated_by", "updated_at", "last_synced_at"}

// TestWhatAReadReturnsCanBeSentBack reads everything that has an update, sends the response
// back as it is, and reads it again: nothing has changed.
func TestWhatAReadReturnsCanBeSentBack(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	e.fill(t)
	e.open(t)
	tried := map[string]bool{}
	once := func(what, path string) {
		t.Helper()
		before := e.must("GET", path, rootKey, "")
		sent, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		if status, answer := e.request("PUT", path, rootKey, sent); status != 200 {
			t.Errorf("%s: %d %.600s\nsent %.1500s", what, status, answer, sent)
			return
		}
		after := e.must("GET", path, rootKey, "")
		for _, o := range []map[string]any{before, after} {
			data, _ := o["data"].(map[string]any)
			for _, name := range alwaysNew {
				delete(o, name)
				delete(data, name)
			}
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s changed (-read +read again):\n%s", what, diff)
		}
	}
	for _, create := range e.doc.Creates() {
		update := e.doc.Linked(create, "update")
		if update == nil || notSentBack[update.Path] != "" {
			continue
		}
		for _, place := range []drive.Place{drive.Workspace, drive.Organisation} {
			for _, enums := range e.w.Variants(create) {
				thing, err := e.w.Create(create, place, enums)
				if err != nil {
					continue // TestADeclaringClientDrivesEveryResource reports it
				}
				what := fmt.Sprint("PUT ", update.Path, " in workspace ", place, " ", enums)
				variables := maps.Clone(thing.Variables)
				delete(variables, "version")
				path, err := e.w.Path(update, place, variables)
				if err != nil {
					t.Errorf("%s: %v", what, err)
					continue
				}
				tried[update.Path] = true
				once(what, path)
			}
		}
	}
	for _, put := range e.doc.Operations {
		read := e.doc.At("GET", put.Path)
		if put.Method != "PUT" || put.Alias || put.Body == nil || read == nil || read.Public || tried[put.Path] || notSentBack[put.Path] != "" || strings.HasPrefix(put.Path, "/scim/Users") || strings.HasPrefix(put.Path, "/scim/Groups") {
			continue
		}
		place := places(e.w, put)[0]
		if slices.Contains(inOrganisation, put.Path) {
			place = drive.Organisation
		}
		for _, place := range []drive.Place{place} {
			path, err := e.w.Path(read, place, nil)
			if err != nil {
				t.Errorf("%s: %v", put.Path, err)
				continue
			}
			tried[put.Path] = true
			once("PUT "+put.Path, path)
		}
	}
	for path := range notSentBack {
		if tried[path] || e.doc.At("PUT", path) == nil {
			t.Errorf("%s is listed and was sent back, or is no route", path)
		}
	}
	if len(tried) < 30 {
		t.Errorf("only %d updates were tried: %v", len(tried), tried)
	}
}
