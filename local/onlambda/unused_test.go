package onlambda_test

import (
	"maps"
	"os"
	"slices"
	"strings"

	"gateway/shared/host/placement"
	"gateway/shared/testkit/awstest/rights"
)

// kind groups functions that run the same code with the same permissions.
func kind(name string) string {
	_, places := placement.Families()
	switch {
	case name == "dryrun":
	case name == "container", name == "batchruns", places[name] == placement.Stream:
		return "data-plane"
	case slices.Contains([]string{"apikeys", "workspaces", "integrations", "providers"}, name):
		return "limited"
	case slices.Contains([]string{"analytics", "logs", "auditlogs", "docs"}, name):
	case places[name] == placement.Buffered:
		return "administration"
	}
	return name
}

// unusedFile lists, with the reason for each, what roles allow and nothing here used:
// kind, action, resource, reason; * is every kind.
const unusedFile = "testdata/unused.txt"

// compareUnused holds the list against what was unused by every function of a kind,
// both ways.
func (in *restricted) compareUnused() {
	in.t.Helper()
	granted, left := map[string]int{}, map[string]int{}
	row := func(name string, g rights.Grant) string {
		resource := strings.NewReplacer("arn:aws:", "", "us-east-1:123456789012:", "", ":::", ":").Replace(g.Resource)
		if strings.HasPrefix(resource, "logs:") {
			return "* " + g.Action + " logs"
		}
		return kind(name) + " " + g.Action + " " + resource
	}
	for name, policy := range in.policies {
		for _, g := range rights.Grants(policy) {
			granted[row(name, g)]++
		}
		for _, g := range in.recorder.Unused(name) {
			left[row(name, g)]++
		}
	}
	raw, err := os.ReadFile(unusedFile)
	if err != nil {
		in.t.Fatal(err)
	}
	known, sometimes := map[string]bool{}, map[string]bool{} // the second depends on what comes together
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		if len(f) < 5 {
			in.t.Errorf("%s: no reason: %s", unusedFile, line)
			continue
		}
		known[strings.Join(f[:3], " ")] = true
		sometimes[strings.Join(f[:3], " ")] = f[3] == "sometimes:"
	}
	for _, r := range slices.Sorted(maps.Keys(granted)) {
		switch unused := left[r] == granted[r]; {
		case unused && !known[r]:
			in.t.Errorf("allowed, never used and not in %s: %s", unusedFile, r)
		case !unused && known[r] && !sometimes[r]:
			in.t.Errorf("used, and in %s: %s", unusedFile, r)
		}
		delete(known, r)
	}
	for r := range known {
		in.t.Errorf("%s: nobody may %s", unusedFile, r)
	}
}
