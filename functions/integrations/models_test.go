package integrations

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestModelsAreEnabledPricedAndAdded(t *testing.T) {
	h := newInstallation(t)
	slug := create(t, h, chief, "")
	path := "/integrations/" + slug + "/models"
	model := func(name string) map[string]any {
		for _, e := range h.Do("GET", path, chief, nil).OK().At("models").([]any) {
			if o := e.(map[string]any); o["slug"] == name {
				return o
			}
		}
		return nil
	}
	if m := model("gpt-4o-mini"); m == nil || m["enabled"] != true || m["is_custom"] != false {
		t.Fatalf("a model of the catalog: %v", m)
	}
	// The integration's key is sent to the host of a model, so it has to be given again.
	h.Do("PUT", path, chief, `{"models":[{"slug":"mine","enabled":true,"configurations":{"custom_host":"https://models.example.com/v1"}}]}`).RequireFault(400, "AB01", "models.mine.configurations.custom_host")
	if got := h.Do("PUT", path, chief, `{"key":"sk-first-secret-of-mine","models":[
		{"slug":"gpt-4o-mini","enabled":false},
		{"slug":"mine","enabled":true,"is_finetune":true,"base_model_slug":"gpt-4o","configurations":{"custom_host":"https://models.example.com/v1","custom_headers":{"X-Key":"CANARY-0123456789"}},
		 "pricing_config":{"type":"static","pay_as_you_go":{"request_token":{"price":0.001},"response_token":{"price":0.002}}}}]}`).OK(); string(got.Body) != "{}" {
		t.Errorf("update answered %s", got.Body)
	}
	m := model("mine")
	shown, err := json.Marshal(m)
	want := `{"base_model_slug":"gpt-4o","configurations":{"custom_host":"https://models.example.com/v1","masked_custom_headers":{"X-Key":"CA****89"}},"enabled":true,"is_custom":true,"is_finetune":true,"name":"mine","pricing_config":{"pay_as_you_go":{"request_token":{"price":0.001},"response_token":{"price":0.002}},"type":"static"},"slug":"mine"}`
	if err != nil || string(shown) != want {
		t.Errorf("own model\n%s want\n%s", shown, want)
	}
	if rec, i := stored(t, h, "", slug); strings.Contains(string(rec.Body), "CANARY-0123456789") || !rec.HasSecret("model_headers/mine") || i.ModelHeaders["mine"]["X-Key"] == "" {
		t.Errorf("headers of a model are stored unsealed: %s", rec.Body)
	}
	h.Do("PUT", path, chief, `{"key":"sk-first-secret-of-mine","models":[{"slug":"mine","enabled":true,"configurations":{"custom_host":"https://models.example.com/v1","custom_headers":{"X-Key":"CA****89"}}}]}`).RequireFault(400, "AB01", "models[0].configurations.custom_headers.X-Key")
	if model("gpt-4o-mini")["enabled"] != false || model("gpt-4o")["enabled"] != true {
		t.Error("one model was disabled and not another")
	}
	// Absent fields are unchanged; null clears.
	h.Do("PUT", "/integrations/"+slug+"/integration-models", chief, `{"allow_all_models":false,"models":[{"slug":"mine","enabled":true,"configurations":null,"pricing_config":null,"base_model_slug":null}]}`).OK()
	if m = model("mine"); m["configurations"] != nil || m["pricing_config"] != nil || m["base_model_slug"] != nil || m["is_finetune"] != true {
		t.Errorf("after null: %v", m)
	}
	if rec, i := stored(t, h, "", slug); rec.HasSecret("model_headers/mine") || len(i.ModelHeaders) > 0 {
		t.Error("headers stay sealed without a host")
	}
	if model("gpt-4o")["enabled"] != false {
		t.Error("without allow_all_models a model that nobody enabled may be called")
	}
	if _, i := stored(t, h, "", slug); !i.Allows("mine") || i.Allows("gpt-4o") || i.Allows("gpt-4o-mini") {
		t.Errorf("allowed: %+v", i.Models)
	}
	h.Do("DELETE", path+"?slugs=mine,gpt-4o-mini", chief, nil).RequireFault(400, "AB01", "slugs")
	h.Do("DELETE", path+"?slugs=mine,never-there", chief, nil).OK()
	if model("mine") != nil {
		t.Error("a deleted model is listed")
	}
	h.Do("PUT", path, chief, `{"models":[{"slug":"other","enabled":true}]}`).OK()
	h.Do("DELETE", path, chief, `{"models":["other"]}`).OK()
	if model("other") != nil {
		t.Error("a model named in the body is listed")
	}
}
