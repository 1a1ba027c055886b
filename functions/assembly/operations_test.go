package assembly_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"gateway/functions/docs/document"
)

var anyVariable = regexp.MustCompile(`\{[^}]*\}`)

// TestEveryOperationIsServed walks the list of what the API has: each operation is
// in the document, except those that the list marks, which are not.
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
