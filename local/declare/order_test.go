package declare

import (
	"math/rand/v2"
	"testing"
)

func TestDependenciesAreFirst(t *testing.T) {
	resource := func(slug string, fields map[string]any) *Resource {
		fields["slug"] = slug
		return &Resource{Fields: fields}
	}
	list := []*Resource{
		resource("col-a-0a1b2c", map[string]any{"name": "a", "parent_collection_id": "top"}),
		resource("top", map[string]any{"name": "the top of all"}),
		resource("pp-b-0a1b2d", map[string]any{"string": "{{> pp-c-0a1b2e}} and the top"}),
		resource("pp-c-0a1b2e", map[string]any{"string": "plain", "tags": []any{"col-a-0a1b2c"}}),
		resource("x-0a1b2f", map[string]any{"string": "x-0a1b30 in a cycle"}),
		resource("x-0a1b30", map[string]any{"string": "x-0a1b2f in a cycle"}),
	}
	for range 100 {
		rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		at := map[string]int{}
		for i, r := range dependenciesFirst(list) {
			at[r.Fields["slug"].(string)] = i
		}
		if len(at) != len(list) || !(at["top"] < at["col-a-0a1b2c"] && at["col-a-0a1b2c"] < at["pp-c-0a1b2e"] && at["pp-c-0a1b2e"] < at["pp-b-0a1b2d"]) {
			t.Fatalf("the order is %v", at)
		}
	}
}

// Two gateways list the same resources in different orders.
func TestExportDoesNotDependOnTheOrderOfCreation(t *testing.T) {
	k := kindOf("integrations")
	a := &item{kind: k, slug: "mock", fields: map[string]any{"slug": "mock"}}
	b := &item{kind: k, slug: "mock-anthropic", fields: map[string]any{"slug": "mock-anthropic"}}
	for _, items := range [][]*item{{a, b}, {b, a}} {
		if got := inNameOrder(items, k); got[0] != a || got[1] != b {
			t.Errorf("the export begins with %s", got[0].name())
		}
	}
}
