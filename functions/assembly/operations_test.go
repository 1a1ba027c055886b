package assembly_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"gateway/functions/docs/components"
	"gateway/functions/docs/document"
)

var anyVariable = regexp.MustCompile(`\{[^}]*\}`)

// TestPagesAreOfTheirSizes holds how long pages are unless a query says so, and how
// long they can be.
func TestPagesAreOfTheirSizes(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]struct {
			Get struct {
				Parameters []struct {
					Name   string
					Schema struct{ Default, Minimum, Maximum any }
				}
			}
		}
	}
	resolved, err := components.Resolve(document.JSON)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(resolved, &doc); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][3]int{
		"/integrations": {100, 1, 1000}, "/providers": {100, 1, 1000}, "/virtual-keys": {100, 1, 1000}, "/users": {100, 1, 1000}, "/users/invites": {100, 1, 1000},
		"/guardrails": {100, 1, 1000}, "/mcp-integrations": {100, 1, 1000}, "/mcp-servers": {100, 1, 100}, "/secret-references": {100, 1, 100},
		"/mcp-integrations/{integrationId}/capabilities": {100, 1, 500}, "/mcp-servers/{serverId}/capabilities": {100, 1, 500},
		"/mcp-servers/{serverId}/user-access": {100, 1, 500}, "/mcp-servers/{serverId}/connections": {100, 1, 500},
		"/policies/usage-limits/{policyId}/entities": {100, 1, 100}, "/policies/rate-limits/{policyId}/entities": {100, 1, 100},
		"/audit-logs": {100, 0, 100}, "/scim/workspaces": {100, 1, 1000},
	} {
		found := false
		for _, p := range doc.Paths[path].Get.Parameters {
			if p.Name == "page_size" || p.Name == "pageSize" {
				found = true
				if got, want := [3]any{p.Schema.Default, p.Schema.Minimum, p.Schema.Maximum}, [3]any{float64(want[0]), float64(want[1]), float64(want[2])}; got != want {
					t.Errorf("%s: %s has standard, least and most %v, want %v", path, p.Name, got, want)
				}
			}
		}
		if !found {
			t.Errorf("%s has no size of pages", path)
		}
	}
}

// TestEveryOperationIsServed goes through the list of the API's operations: each must be in
// the document, except those that the list marks, which must not.
func TestEveryOperationIsServed(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(document.JSON, &doc); err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{}
	for path, operations := range doc.Paths {
		for method := range operations {
			served[strings.ToUpper(method)+" "+anyVariable.ReplaceAllString(path, "{}")] = true
		}
	}
	list, err := os.ReadFile("testdata/operations.txt")
	if err != nil {
		t.Fatal(err)
	}
	n, missing := 0, map[string][]string{}
	for line := range strings.Lines(string(list)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		n++
		name, open := strings.CutPrefix(line, "- ")
		name, what, _ := strings.Cut(name, " : ")
		switch {
		case open && served[name]:
			t.Errorf("%s is served: take the mark in testdata/operations.txt away", name)
		case open:
			missing[what] = append(missing[what], name)
		case !served[name]:
			t.Errorf("%s is not served", name)
		}
	}
	for what, names := range missing {
		t.Logf("not served yet, %s: %s", what, strings.Join(names, ", "))
	}
	if n < 200 {
		t.Errorf("the list has only %d operations", n)
	}
}
