package assembly_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gateway/functions/docs/components"
	"gateway/functions/docs/document"
)

// money are the names of fields with an amount of money, or with one that may be money, such
// as the usage of a budget.
var money = regexp.MustCompile(`(?i)cost|price|spen[dt]|saving|amount|credit|budget|charge|gateway_total|_usage$|^available$|alert_threshold|usd`)

// otherNumbers are numbers of such a name that are no money, with what they are.
var otherNumbers = map[string]string{"reset_usage": "whether the usage was reset", "priced_requests": "a number of requests", "max_extra_cost": "a share of the other cost"}

// inUSD matches amounts in US dollars, which have various names; inBudget those in the unit of
// a budget, which its type determines; inCents those with a unit field of cents.
var (
	inUSD    = regexp.MustCompile(`US dollars`)
	inBudget = regexp.MustCompile(`(?i)in the unit of credit_limit|Requests or tokens`)
	inCents  = regexp.MustCompile(`US cents|[Ii]n cost_unit|price_unit`)
)

// filter are names of bounds that a client gave, which are shown as they were given.
var filter = regexp.MustCompile(`_(min|max)$`)

// dollars returns the field that gives an amount of cents in US dollars.
func dollars(name string) string {
	if name == "total" {
		return "cost_usd"
	}
	return name + "_usd"
}

// TestEveryAmountNamesItsUnit checks all schemas of the document: the description of each
// amount of money states its unit, and each amount in cents in a response has a field for the
// unit, if the description refers to it, and the amount in US dollars. A new field fails until
// its unit is decided.
func TestEveryAmountNamesItsUnit(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]struct {
			Responses, RequestBody json.RawMessage
			Parameters             []struct {
				Name, Description string
				Schema            struct {
					Type        any
					Description string
				}
			}
		}
		Components struct{ Schemas, Responses json.RawMessage }
	}
	resolved, err := components.Resolve(document.JSON)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(resolved, &doc); err != nil {
		t.Fatal(err)
	}
	amounts := map[string]int{}
	check := func(at, name string, field, siblings map[string]any, response bool) {
		text, _ := field["description"].(string)
		if !money.MatchString(name) || !isAmount(field) || otherNumbers[name] != "" {
			return
		}
		switch {
		case inUSD.MatchString(text):
			amounts["dollars"]++
		case inBudget.MatchString(text):
			amounts["budget"]++
		case inCents.MatchString(text):
			amounts["cents"]++
			if strings.Contains(text, "cost_unit") && siblings["cost_unit"] == nil {
				t.Errorf("%s: %s without cost_unit", at, name)
			}
			if response && !filter.MatchString(name) && siblings[dollars(name)] == nil {
				t.Errorf("%s: %s without %s", at, name, dollars(name))
			}
		default:
			t.Errorf("%s: %s states no unit: %q", at, name, text)
		}
	}
	var look func(at string, response bool, v any)
	look = func(at string, response bool, v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				look(at, response, one)
			}
		case map[string]any:
			props, _ := v["properties"].(map[string]any)
			for name, field := range props {
				if field, ok := field.(map[string]any); ok {
					check(at, name, field, props, response)
				}
			}
			for name, one := range v {
				if name != "example" && name != "examples" && name != "default" {
					look(at, response, one)
				}
			}
		}
	}
	read := func(at string, response bool, raw json.RawMessage) {
		if raw == nil {
			return
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		look(at, response, v)
	}
	read("schemas", false, doc.Components.Schemas)
	read("responses", true, doc.Components.Responses)
	for path, operations := range doc.Paths {
		for method, op := range operations {
			at := strings.ToUpper(method) + " " + path
			read(at, true, op.Responses)
			read(at+" (request)", false, op.RequestBody)
			for _, p := range op.Parameters {
				check(at+" (query)", p.Name, map[string]any{"type": p.Schema.Type, "description": p.Description + p.Schema.Description}, nil, false)
			}
		}
	}
	for _, unit := range []string{"dollars", "budget", "cents"} {
		if amounts[unit] < 10 {
			t.Errorf("only %d amounts in %s", amounts[unit], unit)
		}
	}
}

// isAmount reports whether a field is a number, or an object of numbers such as an estimate.
func isAmount(field map[string]any) bool {
	types := fmt.Sprint(field["type"])
	if strings.Contains(types, "number") || strings.Contains(types, "integer") {
		return true
	}
	props, _ := field["properties"].(map[string]any)
	return len(props) > 0 && !slices.ContainsFunc(mapValues(props), func(p any) bool {
		field, ok := p.(map[string]any)
		return !ok || !isAmount(field)
	})
}

func mapValues(m map[string]any) []any {
	var out []any
	for _, v := range m {
		out = append(out, v)
	}
	return out
}
