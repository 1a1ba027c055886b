package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestOnlyWhoMaySetLimitsSetsPrices: budgets count by prices, so that somebody who may not raise
// the limits of a workspace may not change its prices. A field with a price that is not tried
// here fails the test.
//
//lane:exhaustive
func TestOnlyWhoMaySetLimitsSetsPrices(t *testing.T) {
	t.Parallel()
	r := start(t)
	ws := r.workspace()
	manager := r.signIn(r.person("manager@example.com", "member", "default", "manager"), 0)
	chief := r.signIn(r.person("chief@example.com", "member", "default", "admin"), 0)
	r.admin("POST", "/integrations", `{"name":"co","slug":"co","ai_provider_id":"openai","key":"company-key","workspace_id":"`+ws+`"}`)
	r.admin("PUT", "/integrations/co/models?workspace_id="+ws, `{"models":[{"slug":"mine","enabled":true,"pricing_config":{"pay_as_you_go":{"request_token":{"price":1}}}}]}`)
	const models, price = "/integrations/co/models", `"pricing_config":{"pay_as_you_go":{"request_token":{"price":0}}}`
	tried := []string{"models", "multiplier"} // pricing_settings of the organization, for its admins
	for _, c := range []struct{ field, method, path, body string }{
		{"pricing_adjustments", "PUT", "/integrations/co", `{"pricing_adjustments":{"multiplier":{"default":0}}}`},
		{"pricing_adjustments", "PUT", "/integrations/co", `{"pricing_adjustments":null}`},
		{"pricing_adjustments", "POST", "/integrations", `{"name":"new","ai_provider_id":"openai","key":"k","workspace_id":"` + ws + `","pricing_adjustments":{"multiplier":{"default":0}}}`},
		{"pricing_config", "DELETE", models + "?slugs=mine", ""},
		{"pricing_config", "PUT", models, `{"models":[{"slug":"gpt-4o","enabled":true,` + price + `}]}`},
		{"pricing_config", "PUT", models, `{"models":[{"slug":"mine","enabled":true,` + price + `}]}`},
		{"pricing_config", "PUT", models, `{"models":[{"slug":"mine","enabled":true,"pricing_config":null}]}`},
		{"base_model_slug", "PUT", models, `{"models":[{"slug":"gpt-4o","enabled":true,"base_model_slug":"gpt-4o-mini"}]}`},
	} {
		tried = append(tried, c.field)
		path := c.path + map[bool]string{true: "&", false: "?"}[strings.Contains(c.path, "?")] + "workspace_id=" + ws
		if c.method == "POST" {
			path = c.path
		}
		if got := r.as(manager, c.method, path, c.body); got.status != 403 {
			t.Errorf("a manager: %s %s %s: %d %s", c.method, c.path, c.body, got.status, got.body)
		}
		if got := r.as(chief, c.method, path, c.body); got.status != 200 {
			t.Errorf("an admin of the workspace: %s %s %s: %d %s", c.method, c.path, c.body, got.status, got.body)
		}
	}
	r.admin("PUT", "/integrations/co?workspace_id="+ws, `{"pricing_adjustments":{"multiplier":{"default":0.5,"request_token":2}}}`)
	r.admin("PUT", models+"?workspace_id="+ws, `{"models":[{"slug":"again","enabled":true,`+price+`}]}`)
	r.wantStatus("the same price", r.as(manager, "PUT", models+"?workspace_id="+ws, `{"models":[{"slug":"again","enabled":false, "pricing_config": { "pay_as_you_go" : {"request_token":{"price":0.0}}}}]}`), 200, "")
	for _, body := range []string{`{"description":"theirs"}`, `{"name":"co"}`, `{"name":"co","pricing_adjustments": {"multiplier" : {"request_token":2.0, "default":0.50}}}`} {
		r.wantStatus("other fields", r.as(manager, "PUT", "/integrations/co?workspace_id="+ws, body), 200, "")
	}
	r.wantStatus("enabling", r.as(manager, "PUT", models+"?workspace_id="+ws, `{"models":[{"slug":"gpt-4o","enabled":false}]}`), 200, "")

	names := regexp.MustCompile(`pric|multiplier|base_model`)
	var walk func(at string, v any)
	walk = func(at string, v any) {
		object, _ := v.(map[string]any)
		properties, _ := object["properties"].(map[string]any)
		for name, of := range properties {
			if names.MatchString(name) && !slices.Contains(tried, name) && !slices.Contains(notPrices, name) {
				t.Errorf("%s has the field %s: say who may set it", at, name)
			}
			if !slices.Contains(tried, name) {
				walk(at, of)
			}
		}
		if items := object["items"]; items != nil {
			walk(at, items)
		}
	}
	var document struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct {
					Schema json.RawMessage `json:"schema"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
	}
	raw := r.call("GET", "/openapi.json", "").body
	if err := json.Unmarshal(resolved(t, raw), &document); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for path, methods := range document.Paths {
		for method, op := range methods {
			for _, content := range op.RequestBody.Content {
				var schema any
				if json.Unmarshal(content.Schema, &schema) == nil && schema != nil {
					seen++
					walk(fmt.Sprint(method, " ", path), schema)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("%d bodies were read", seen)
	}
}

// notPrices are fields of that name that set no price of a workspace: settings of the
// organization, for its admins, and the assumptions of a simulation.
var notPrices = []string{"pricing_settings", "unpriced", "prices", "multipliers"}
