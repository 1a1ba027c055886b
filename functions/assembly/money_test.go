package assembly_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gateway/functions/docs/document"
)

// TestEveryCostNamesItsUnit goes through all schemas of answers: beside each cost stand its
// unit and the cost in US dollars, and beside each price the price in US dollars, unless the
// number is documented to be US dollars itself.
func TestEveryCostNamesItsUnit(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]struct {
			Responses  json.RawMessage
			Parameters json.RawMessage
		}
		Components struct{ Schemas, Responses json.RawMessage }
	}
	if err := json.Unmarshal(document.JSON, &doc); err != nil {
		t.Fatal(err)
	}
	costs := 0
	var look func(at string, v any)
	look = func(at string, v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				look(at, one)
			}
		case map[string]any:
			if props, ok := v["properties"].(map[string]any); ok {
				for name, beside := range map[string][]string{"cost": {"cost_unit", "cost_usd"}, "gateway_total": {"cost_unit", "cost_usd"}, "price": {"price_usd"}} {
					number, ok := props[name].(map[string]any)
					if !ok || number["type"] != "number" {
						continue
					}
					if text, _ := number["description"].(string); strings.HasPrefix(text, "US dollars") {
						continue
					}
					costs++
					for _, other := range beside {
						if props[other] == nil {
							t.Errorf("%s: %s without %s", at, name, other)
						}
					}
				}
			}
			for _, one := range v {
				look(at, one)
			}
		}
	}
	sources := map[string]json.RawMessage{"schemas": doc.Components.Schemas, "responses": doc.Components.Responses}
	for path, operations := range doc.Paths {
		for method, op := range operations {
			sources[method+" "+path] = op.Responses
		}
	}
	for at, raw := range sources {
		if raw == nil {
			continue
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		look(at, v)
	}
	if costs < 10 {
		t.Errorf("only %d costs and prices", costs)
	}
}
