package together_test

import (
	"flag"
	"strings"
	"testing"

	"gateway/functions/collections"
	"gateway/functions/configs"
	"gateway/functions/guardrails"
	"gateway/functions/partials"
	"gateway/functions/prompts"
	"gateway/functions/secretreferences"
	"gateway/functions/workspaces"
	"gateway/shared/admin"
	"gateway/shared/egress"
	"gateway/shared/testkit/admintest"
)

func newGuardInstallation(t *testing.T) *admintest.Installation {
	t.Helper()
	check := egress.Policy{}.CheckURL
	return admintest.Build(t, func(admin.Deps) []admin.Family {
		return []admin.Family{guardrails.New(guardrails.Deps{CheckURL: check}), configs.New(configs.Deps{CheckURL: check}), workspaces.New(workspaces.Deps{})}
	})
}

var update = flag.Bool("update", false, "rewrite golden files")

const simpleGuardrail = `{"name":"Words","checks":[{"id":"default.contains","parameters":{"words":["a"]}}],"actions":{"deny":true}}`

func TestGuardrailsPassTheChecksOfEveryFamily(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, guardrails.New(guardrails.Deps{CheckURL: egress.Policy{}.CheckURL}))
	admintest.CheckFamily(t, h)
	id := h.Do("POST", "/guardrails", key, simpleGuardrail).OK().Text("id")
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		var body any
		if method == "PUT" {
			body = `{"name":"x"}`
		}
		admintest.ForeignIsMissing(t, h, method, "/guardrails", id, body)
	}
	admintest.BadBodies(t, h, "POST", "/guardrails", key, simpleGuardrail)
	admintest.BadBodies(t, h, "PUT", "/guardrails/"+id, key, `{"name":"x"}`)
	if n := h.Do("GET", "/guardrails", key, nil).OK().At("total"); n != 1.0 {
		t.Errorf("%v guardrails", n)
	}
	h.Golden(*update, "guardrails.txt", admintest.As(key, "GET", "/guardrails/"+id, ""), admintest.As(key, "GET", "/guardrails", ""),
		admintest.As(key, "PUT", "/guardrails/"+id, `{"actions":{"onFail":"warn","sequential":true},"checks":[{"id":"default.modelWhitelist","name":"n","is_enabled":false,"parameters":{"models":["m"]}}]}`),
		admintest.As(key, "GET", "/guardrails/"+id+"/versions", ""))
}

func TestGuardrailsAreCheckedWhenSaved(t *testing.T) {
	t.Parallel()
	h := newGuardInstallation(t)
	at := "/guardrails/" + h.Do("POST", "/guardrails", key, simpleGuardrail).OK().Text("slug")
	for body, fields := range map[string]string{
		`{"checks":[],"actions":{}}`:   "checks",
		`{"checks":null,"actions":{}}`: "checks",
		`{"checks":[{"id":"default.contains"},{"id":"nope"},{"id":"default.regexMatch","parameters":{"rule":"(","not":"x"}}],"actions":{"deny":"x"},"name":5}`: "checks[0].parameters.words checks[1].id checks[2].parameters.rule checks[2].parameters.not actions.deny name",
		`{"checks":[{"id":"default.webhook","parameters":{"webhookURL":"http://169.254.169.254/x"}}],"actions":{}}`:                                            "checks[0].parameters.webhookURL",
		`{"checks":[{"id":"default.jsonSchema","parameters":{"schema":{"type":"thing"}}}],"actions":{}}`:                                                       "checks[0].parameters.schema",
		`{"checks":[{"id":"aporia.validateProject","parameters":{"projectID":"p","credentials":{"apiKey":"sk****en"}}}],"actions":{}}`:                         "checks[0].parameters.credentials.apiKey",
		`{"checks":[{"id":"default.contains","parameters":{"words":["a"]}}],"actions":{"on_fail":{"feedback":{"value":99}}}}`:                                  "actions.on_fail.feedback.value",
	} {
		for _, call := range [][2]string{{"POST", "/guardrails"}, {"PUT", at}} {
			got := h.Do(call[0], call[1], key, body)
			for _, field := range strings.Fields(fields) {
				got.RequireFault(400, "AB01", field)
			}
		}
	}
	if got := h.Do("GET", at+"/versions", key, nil).OK().At("total"); got != 1.0 {
		t.Errorf("a refused update made a version: %v", got)
	}
}

func TestSecretsOfGuardrailsAreNotShown(t *testing.T) {
	t.Parallel()
	h := newGuardInstallation(t)
	const secret = "sk-of-a-vendor-1234567"
	id := h.Do("POST", "/guardrails", key, `{"name":"V","checks":[{"id":"aporia.validateProject","parameters":{"projectID":"p","credentials":{"apiKey":"`+secret+`"}}}],"actions":{}}`).OK().Text("id")
	for _, path := range []string{"/guardrails/" + id, "/guardrails/" + id + "/versions", "/guardrails"} {
		if got := h.Do("GET", path, key, nil).OK(); strings.Contains(string(got.Body), secret) {
			t.Errorf("%s: %s", path, got.Body)
		}
	}
	for _, e := range h.Audit() {
		if strings.Contains(e.RequestBody+e.Details["changes"], secret) {
			t.Errorf("the audit log has the secret: %+v", e)
		}
	}
	got := h.Do("PUT", "/guardrails/"+id, key, `{"name":"W"}`).OK()
	if got.Text("version_id") == "" || got.Text("id") != id {
		t.Errorf("%s", got.Body)
	}
}

func TestGuardrailsOfTheOrganisation(t *testing.T) {
	t.Parallel()
	h := newGuardInstallation(t)
	org := h.Do("POST", "/guardrails", admintest.AdminKey, simpleGuardrail).OK()
	own := h.Do("POST", "/guardrails", key, simpleGuardrail).OK()
	if got := h.Do("GET", "/guardrails/"+org.Text("id"), admintest.AdminKey, nil).OK(); got.At("workspace_id") != nil {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", "/guardrails/"+org.Text("id"), key, `{"name":"x"}`).RequireFault(404, "AB08", "guardrailId")
	if n := h.Do("GET", "/guardrails?ids="+org.Text("id")+","+own.Text("id"), admintest.AdminKey, nil).OK().At("total"); n != 2.0 {
		t.Errorf("%v", n)
	}
	for _, slug := range []string{org.Text("slug"), own.Text("slug"), own.Text("id")} {
		h.Do("POST", "/configs", key, `{"name":"C `+slug+`","config":{"retry":{"attempts":1},"input_guardrails":["`+slug+`"]}}`).OK()
		h.Do("POST", "/configs", admintest.WorkspaceB, `{"name":"C","config":{"retry":{"attempts":1},"input_guardrails":["`+own.Text("slug")+`"]}}`).RequireFault(400, "AB01", "config.input_guardrails[0]")
	}
	inUse := func(id, by string) {
		t.Helper()
		if got := h.Do("DELETE", "/guardrails/"+id, admintest.AdminKey, nil).RequireFault(409, "AB07", ""); !strings.Contains(got.Failure().Message, by) {
			t.Errorf("%s", got.Body)
		}
	}
	inUse(org.Text("id"), "config")
	inUse(own.Text("id"), `config "C `+own.Text("slug")+`"`)
	configs := h.Do("GET", "/configs", key, nil).OK()
	for i := range 3 {
		h.Do("PUT", "/configs/"+configs.Text("data", string(rune('0'+i)), "slug"), key, `{"config":{"retry":{"attempts":2}}}`).OK()
	}
	h.Do("PUT", "/admin/workspaces/"+h.One, admintest.AdminKey, `{"defaults":{"input_guardrails":["`+org.Text("slug")+`"],"output_guardrails":["`+own.Text("id")+`"]}}`).OK()
	inUse(org.Text("id"), `workspace "One"`)
	inUse(own.Text("id"), `workspace "One"`)
	h.Do("PUT", "/admin/workspaces/"+h.One, admintest.AdminKey, `{"defaults":{"input_guardrails":[],"output_guardrails":[]}}`).OK()
	h.Do("DELETE", "/guardrails/"+org.Text("id"), admintest.AdminKey, nil).OK()
	h.Do("DELETE", "/guardrails/"+own.Text("id"), key, nil).OK()
	h.Do("GET", "/guardrails/"+own.Text("id"), key, nil).RequireFault(404, "AB08", "guardrailId")
}

// Contents prevent the deletion of a workspace, unless it is forced.
func TestAWorkspaceGoesWithItsRecords(t *testing.T) {
	t.Parallel()
	check := egress.Policy{}.CheckURL
	h := admintest.New(t, prompts.New(), partials.New(), collections.New(), guardrails.New(guardrails.Deps{CheckURL: check}), workspaces.New(workspaces.Deps{}))
	h.Do("POST", "/guardrails", key, simpleGuardrail).OK()
	h.Do("POST", "/prompts/partials", key, `{"name":"P","string":"x"}`).OK()
	h.Do("POST", "/labels", key, `{"name":"own"}`).OK()
	for _, kind := range []string{"guardrail", "partial"} {
		if got := h.Do("DELETE", "/admin/workspaces/"+h.One, admintest.AdminKey, `{"name":"One"}`).RequireFault(409, "AB07", ""); !strings.Contains(got.Failure().Message, "kind "+kind) {
			t.Errorf("%s", got.Body)
		}
	}
	h.Do("DELETE", "/admin/workspaces/"+h.One, admintest.AdminKey, `{"name":"One","force_delete":true}`).OK()
	if n := h.Do("GET", "/guardrails", admintest.AdminKey, nil).OK().At("total"); n != 0.0 {
		t.Errorf("%v guardrails are left", n)
	}
}

// TestSecretsOfGuardrailsStay: a reference cannot be deleted while a check takes its
// credentials from it, and a check may only name a reference that the workspace may use.
func TestSecretsOfGuardrailsStay(t *testing.T) {
	t.Parallel()
	rt := egress.New(egress.Policy{}, egress.Options{})
	t.Cleanup(func() { egress.CloseIdle(rt) })
	check := egress.Policy{}.CheckURL
	h := admintest.Build(t, func(admin.Deps) []admin.Family {
		return []admin.Family{guardrails.New(guardrails.Deps{CheckURL: check}), secretreferences.New(secretreferences.Deps{CheckURL: check, Transport: rt})}
	})
	at := references + "/" + h.Do("POST", references, admintest.AdminKey, reference).OK().Text("id")
	body := func(mapping string) string {
		return `{"name":"V","actions":{},"checks":[` + strings.TrimSuffix(strings.TrimPrefix(simpleGuardrail, `{"name":"Words","checks":[`), `],"actions":{"deny":true}}`) +
			`,{"id":"f5-guardrails.scan","parameters":{"projectId":"p","credentials":{},"secret_mappings":[` + mapping + `]}}]}`
	}
	mapped := `{"target_field":"credentials.apiKey","secret_reference_id":"openai-key"}`
	for mapping, field := range map[string]string{
		`{"target_field":"credentials.apiKey","secret_reference_id":"nothing"}`:        "checks[1].parameters.secret_mappings[0].secret_reference_id",
		`{"target_field":"credentials.calypsoUrl","secret_reference_id":"openai-key"}`: "checks[1].parameters.secret_mappings[0].target_field checks[1].parameters.credentials.apiKey",
		mapped + "," + mapped: "checks[1].parameters.secret_mappings[1].target_field",
		`{"target_field":"credentials.apiKey","secret_reference_id":"openai-key","value_format":"xml"}`: "checks[1].parameters.secret_mappings[0].value_format",
	} {
		got := h.Do("POST", "/guardrails", key, body(mapping))
		for _, f := range strings.Fields(field) {
			got.RequireFault(400, "AB01", f)
		}
	}
	of := "/guardrails/" + h.Do("POST", "/guardrails", key, body(mapped)).OK().Text("slug")
	if in := h.Do("DELETE", at, admintest.AdminKey, nil).RequireFault(409, "AB07", "").Failure(); !strings.Contains(in.Message, `"V"`) {
		t.Error(in.Message)
	}
	h.Do("PUT", of, key, simpleGuardrail).OK()
	h.Do("DELETE", of, key, nil).OK()
	again := "/guardrails/" + h.Do("POST", "/guardrails", key, body(mapped)).OK().Text("slug")
	h.Do("DELETE", at, admintest.AdminKey, nil).RequireFault(409, "AB07", "")
	h.Do("DELETE", again, key, nil).OK()
	h.Do("DELETE", at, admintest.AdminKey, nil).OK()
}
