package together_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gateway/functions/collections"
	"gateway/functions/configs"
	"gateway/functions/partials"
	"gateway/functions/prompts"
	"gateway/functions/providers"
	"gateway/shared/admin"
	"gateway/shared/egress"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

// key is a key of the first workspace.
const key = admintest.WorkspaceA

// promptInstallation serves the families that prompts need.
type promptInstallation struct {
	*admintest.Installation
	collection string
}

func newPromptInstallation(t *testing.T, more ...admin.Family) *promptInstallation {
	t.Helper()
	h := &promptInstallation{Installation: admintest.New(t, append(more, prompts.New(), partials.New(), collections.New(), configs.New(configs.Deps{CheckURL: egress.Policy{}.CheckURL}))...)}
	for _, ws := range []string{h.One, h.Two, h.Three} {
		org := admintest.Org
		if ws == h.Three {
			org = admintest.OtherOrg
		}
		rec := resource.Record{Scope: store.Scope{Org: org, Workspace: ws}, Kind: provider.KindProvider, Slug: "model-1", Name: "model", Status: provider.StatusActive, Body: []byte(`{"integration_id":"x","ai_provider_id":"openai"}`)}
		if err := h.Resources.Change(context.Background(), rec.Scope, func(tx *resource.Tx) error { one := rec; return tx.Create(&one) }); err != nil {
			t.Fatal(err)
		}
	}
	h.collection = h.Do("GET", "/collections", key, nil).OK().Text("data", "0", "id")
	return h
}

const messages = `"[{\"role\":\"user\",\"content\":\"Hello {{name}}\"}]"`

// body is a prompt with some members replaced or added.
func (h *promptInstallation) body(members string) string {
	out := map[string]json.RawMessage{
		"name": []byte(`"Greeting"`), "collection_id": []byte(`"` + h.collection + `"`), "string": []byte(messages),
		"parameters": []byte(`{"max_tokens":5}`), "virtual_key": []byte(`"model-1"`), "model": []byte(`"gpt-4o-mini"`),
	}
	if members != "" {
		var more map[string]json.RawMessage
		if err := json.Unmarshal([]byte("{"+members+"}"), &more); err != nil {
			panic(err)
		}
		for k, v := range more {
			out[k] = v
		}
	}
	raw, _ := json.Marshal(out)
	return string(raw)
}

func (h *promptInstallation) create(members string) admintest.Response {
	return h.Do("POST", "/prompts", key, h.body(members))
}

func TestPromptsPassTheChecksOfEveryFamily(t *testing.T) {
	t.Parallel()
	h := newPromptInstallation(t)
	admintest.CheckFamily(t, h.Installation)
	id := h.create("").OK().Text("id")
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		var body any
		if method == "PUT" {
			body = `{"name":"x"}`
		}
		admintest.ForeignIsMissing(t, h.Installation, method, "/prompts", id, body)
	}
	admintest.BadBodies(t, h.Installation, "POST", "/prompts", key, h.body(""))
	admintest.BadBodies(t, h.Installation, "PUT", "/prompts/"+id, key, `{"name":"x"}`)
	admintest.BadBodies(t, h.Installation, "POST", "/prompts/partials", key, `{"name":"x","string":"s"}`)
	admintest.BadBodies(t, h.Installation, "POST", "/collections", key, `{"name":"x"}`)
	admintest.BadBodies(t, h.Installation, "POST", "/labels", key, `{"name":"x"}`)
	if n := h.Do("GET", "/prompts", key, nil).OK().At("total"); n != 1.0 {
		t.Errorf("%v prompts", n)
	}
}

func TestAnswersOfPromptsArePinned(t *testing.T) {
	t.Parallel()
	h := newPromptInstallation(t)
	at := "/prompts/" + h.create(`"version_description":"first","tools":[{"type":"function"}],"template_metadata":{"template_type":"chat"}`).OK().Text("id")
	h.Do("PUT", at, key, `{"patch":true,"string":"[]"}`).OK()
	h.Do("POST", "/prompts/partials", key, `{"name":"Part","string":"x","version_description":"d"}`).OK()
	var calls []admintest.Call
	for _, path := range []string{at, at + "@latest", "/prompts", at + "/versions", "/prompts/partials", "/collections", "/collections/" + h.collection, "/labels"} {
		calls = append(calls, admintest.As(key, "GET", path, ""))
	}
	h.Golden(*update, "prompts.txt", calls...)
}

func TestWhatMakesAVersion(t *testing.T) {
	t.Parallel()
	h := newPromptInstallation(t)
	made := h.create("").OK()
	if made.Text("object") != "prompt" || made.Text("version_id") == "" || !strings.HasPrefix(made.Text("slug"), "pp-greeti-") {
		t.Errorf("%s", made.Body)
	}
	at := "/prompts/" + made.Text("slug")
	version := func(ref string) string {
		t.Helper()
		a := h.Do("GET", at+ref, key, nil).OK()
		return fmt.Sprint(a.At("prompt_version"), " ", a.Text("model"), " ", a.Text("virtual_key"), " ", a.At("prompt_version_description"), " ", a.Text("name"))
	}
	for _, c := range []struct{ body, answer, published, newest string }{
		{`{"name":"Other"}`, "{}", "1 gpt-4o-mini model-1 <nil> Other", "1 gpt-4o-mini model-1 <nil> Other"},
		{`{"version_description":"one"}`, "{}", "1 gpt-4o-mini model-1 one Other", "1 gpt-4o-mini model-1 one Other"},
		{`{"virtual_key":"@model-1","collection_id":"` + h.collection + `"}`, "{}", "1 gpt-4o-mini model-1 one Other", "1 gpt-4o-mini model-1 one Other"},
		{`{"patch":true,"model":"m2"}`, "version", "1 gpt-4o-mini model-1 one Other", "2 m2 model-1 one Other"},
		{`{"patch":true,"tool_choice":"auto","version_description":"three"}`, "version", "1 gpt-4o-mini model-1 one Other", "3 m2 model-1 three Other"},
		{`{"string":"[]","parameters":{},"model":"m4","virtual_key":"model-1"}`, "version", "1 gpt-4o-mini model-1 one Other", "4 m4 model-1 three Other"},
		{`{"patch":true,"functions":[]}`, "version", "1 gpt-4o-mini model-1 one Other", "5 m4 model-1 three Other"},
		{`{"patch":true,"is_raw_template":true}`, "version", "1 gpt-4o-mini model-1 one Other", "6 m4 model-1 three Other"},
		{`{"patch":true,"prompt_metadata":{"a":1}}`, "version", "1 gpt-4o-mini model-1 one Other", "7 m4 model-1 three Other"},
	} {
		got := h.Do("PUT", at, key, c.body).OK()
		if c.answer == "{}" && string(got.Body) != "{}" || c.answer != "{}" && (got.Text("prompt_version_id") == "" || got.Text("slug") == "") {
			t.Errorf("%s answers %s", c.body, got.Body)
		}
		if a, b := version(""), version("@latest"); a != c.published || b != c.newest {
			t.Errorf("%s: published %s, newest %s", c.body, a, b)
		}
	}
	if got := h.Do("GET", at+"@7", key, nil).OK(); got.At("template_metadata", "a") != 1.0 || got.At("is_raw_template") != 1.0 {
		t.Errorf("%s", got.Body)
	}
	for _, missing := range []string{"string", "parameters", "model", "virtual_key"} {
		whole := map[string]any{"string": "[]", "parameters": map[string]any{}, "model": "m", "virtual_key": "model-1"}
		delete(whole, missing)
		if missing == "string" {
			whole["tools"] = []any{}
		}
		h.Do("PUT", at, key, whole).RequireFault(400, "AB01", missing)
	}
	h.Do("PUT", at+"/makeDefault", key, `{"version":4}`).OK()
	if got := version(""); got != "4 m4 model-1 three Other" {
		t.Error(got)
	}
	list := h.Do("GET", at+"/versions", key, nil).OK()
	if list.At("total") != 7.0 || list.At("data", "0", "prompt_version") != 7.0 || list.Text("data", "6", "prompt_description") != "one" || list.Text("data", "0", "id") == list.Text("data", "0", "prompt_id") {
		t.Errorf("%s", list.Body)
	}
	one := h.Do("GET", at+"/versions/"+list.Text("data", "6", "id"), key, nil).OK()
	if one.At("prompt_version") != 1.0 || one.Text("model") != "gpt-4o-mini" {
		t.Errorf("%s", one.Body)
	}
}

// TestTemplatesAreRefusedBesideWhatElseIsWrong: a template that does not close is reported
// together with members of a wrong type.
func TestTemplatesAreRefusedBesideWhatElseIsWrong(t *testing.T) {
	t.Parallel()
	h := newPromptInstallation(t)
	reports := func(a admintest.Response, fields ...string) {
		t.Helper()
		for _, field := range fields {
			a.RequireFault(400, "AB01", field)
		}
	}
	reports(h.create(`"name":7,"parameters":5,"string":"[{\"role\":\"user\",\"content\":\"{{#a}}\"}]"`), "name", "parameters", "string[0].content")
	reports(h.create(`"name":7,"string":"{{x"`), "name", "string")
	reports(h.Do("POST", "/prompts/partials", key, `{"name":7,"string":"{{#x}}"}`), "name", "string")
}

func TestTemplatesAndReferencesAreChecked(t *testing.T) {
	t.Parallel()
	h := newPromptInstallation(t)
	part := h.Do("POST", "/prompts/partials", key, `{"name":"Part","string":"x {{y}}"}`).OK().Text("slug")
	at := "/prompts/" + h.create("").OK().Text("id")
	for members, field := range map[string]string{
		`"string":"[{\"role\":\"user\",\"content\":\"{{#a}}\"}]"`:          "string[0].content",
		`"string":"[{\"content\":[{\"type\":\"text\",\"text\":\"{{\"}]}]"`: "string[0].content[0].text",
		`"string":"[{\"content\":\"{{/a}}\"}]"`:                            "string[0].content",
		`"string":"[{\"content\":\"{{=<% %>=}}\"}]"`:                       "string[0].content",
		`"string":"[{\"content\":\"{{>x@production}}\"}]"`:                 "string[0].content",
		`"string":"[{\"content\":\"{{>nowhere}}\"}]"`:                      "string",
		`"string":"[{\"content\":\"{{>` + part + `@9}}\"}]"`:               "string",
		`"string":"[1]"`: "string[0]",
		`"string":"{}","template_metadata":{"template_type":"chat"}`:        "string",
		`"string":"[{\"a\":1,\"a\":2}]"`:                                    "string",
		`"string":"[{{x}","is_raw_template":1`:                              "string",
		`"string":"{{x","template_metadata":{"template_type":"completion"}`: "string",
		`"template_metadata":{"template_type":"poem"}`:                      "template_metadata.template_type",
		`"string":""`:                               "string",
		`"string":null`:                             "string",
		`"string":5`:                                "string",
		`"parameters":[]`:                           "parameters",
		`"parameters":null`:                         "parameters",
		`"virtual_key":"nowhere"`:                   "virtual_key",
		`"virtual_key":null`:                        "virtual_key",
		`"collection_id":"nowhere"`:                 "collection_id",
		`"functions":[1]`:                           "functions[0]",
		`"tools":["x"]`:                             "tools[0]",
		`"tool_choice":5`:                           "tool_choice",
		`"is_raw_template":2`:                       "is_raw_template",
		`"is_raw_template":"1"`:                     "is_raw_template",
		`"model":7`:                                 "model",
		`"name":"` + strings.Repeat("n", 256) + `"`: "name",
	} {
		h.create(members).RequireFault(400, "AB01", field)
		h.Do("PUT", at, key, h.body(members)).RequireFault(400, "AB01", field)
	}
	for _, members := range []string{
		`"string":"[{\"content\":\"{{>` + part + `}} {{>` + part + `@1}} {{>` + part + `@latest}} {{>>own}}\"}]"`,
		`"string":"Say {{x}}"`, `"string":"[{{#l}}{{{m}}},{{/l}}{}]","is_raw_template":true`, `"string":"[]","tool_choice":{"type":"auto"}`, `"virtual_key":"@model-1"`,
	} {
		h.create(members).OK()
	}
}

func TestOnesThatAreInUseStay(t *testing.T) {
	t.Parallel()
	h := newPromptInstallation(t)
	part := h.Do("POST", "/prompts/partials", key, `{"name":"Part","string":"x"}`).OK().Text("slug")
	outer := h.Do("POST", "/prompts/partials", key, `{"name":"Outer","string":"{{>`+part+`}}"}`).OK().Text("slug")
	folder := h.Do("POST", "/collections", key, `{"name":"Folder"}`).OK().Text("slug")
	child := h.Do("POST", "/collections", key, `{"name":"Child","parent_collection_id":"`+folder+`"}`).OK().Text("id")
	slug := h.create(`"collection_id":"` + child + `","string":"{{>` + outer + `@1}}"`).OK().Text("slug")
	cfg := h.Do("POST", "/configs", key, `{"name":"C","config":{"prompt_id":"`+slug+`@latest"}}`).OK().Text("data", "slug")
	inUse := func(path, by string) {
		t.Helper()
		got := h.Do("DELETE", path, key, nil).RequireFault(409, "AB07", "")
		if !strings.Contains(got.Failure().Message, by) {
			t.Errorf("%s: %s", path, got.Body)
		}
	}
	inUse("/prompts/partials/"+part, `partial "Outer"`)
	inUse("/prompts/partials/"+outer, `prompt "Greeting"`)
	inUse("/collections/"+folder, `collection "Child"`)
	inUse("/collections/"+child, `prompt "Greeting"`)
	inUse("/prompts/"+slug, `config "C"`)
	h.Do("PUT", "/prompts/partials/"+part, key, `{"status":"archived"}`).RequireFault(409, "AB07", "")
	// A partial does not take itself in, directly or by others.
	for _, text := range []string{"{{>" + part + "}}", "{{>" + outer + "}}", "{{>" + outer + "@1}}", "{{>" + part + "@latest}}"} {
		h.Do("PUT", "/prompts/partials/"+part, key, `{"string":"`+text+`"}`).RequireFault(400, "AB01", "string")
	}
	// An unpublished newest version also prevents the deletion of a partial.
	h.Do("PUT", "/prompts/"+slug, key, h.body(`"string":"plain"`)).OK()
	inUse("/prompts/partials/"+outer, "prompt")
	h.Do("PUT", "/prompts/"+slug+"/makeDefault", key, `{"version":2}`).OK()
	h.Do("DELETE", "/configs/"+cfg, key, nil).OK()
	for _, path := range []string{"/prompts/" + slug, "/prompts/partials/" + outer, "/prompts/partials/" + part, "/collections/" + child, "/collections/" + folder} {
		h.Do("DELETE", path, key, nil).OK()
		h.Do("GET", path, key, nil).RequireFault(404, "AB08", "")
	}
	h.Do("DELETE", "/collections/"+h.collection, key, nil).RequireFault(404, "AB08", "collectionId")
}

func TestProvidersInUseStay(t *testing.T) {
	t.Parallel()
	h := newPromptInstallation(t, providers.New(providers.Deps{CheckURL: egress.Policy{}.CheckURL}))
	inUse := func(by string) {
		t.Helper()
		got := h.Do("DELETE", "/providers/model-1", key, nil).RequireFault(409, "AB07", "")
		if !strings.Contains(got.Failure().Message, by) {
			t.Errorf("refused by %s, want %s", got.Body, by)
		}
	}
	id := func() string {
		rec, _, err := h.Resources.Get(context.Background(), store.Scope{Org: admintest.Org, Workspace: h.One}, provider.KindProvider, "model-1")
		if err != nil {
			t.Fatal(err)
		}
		return rec.ID
	}()
	for i, cfg := range []string{
		`{"provider":"@model-1"}`, `{"virtual_key":"model-1"}`, `{"virtual_key":"` + id + `"}`, `{"override_params":{"model":"@model-1/gpt-4o"}}`,
		`{"strategy":{"mode":"fallback"},"targets":[{"provider":"openai","api_key":"sk-1"},{"provider":"@model-1"}]}`,
	} {
		name := fmt.Sprintf("Config %d", i)
		slug := h.Do("POST", "/configs", key, `{"name":"`+name+`","config":`+cfg+`}`).OK().Text("data", "slug")
		inUse(`config "` + name + `"`)
		h.Do("PUT", "/configs/"+slug, key, `{"config":{"retry":{"attempts":1}}}`).OK()
		other := h.Do("POST", "/prompts", key, h.body(`"name":"P"`)).OK().Text("slug")
		inUse(`prompt "P"`)
		h.Do("DELETE", "/prompts/"+other, key, nil).OK()
		h.Do("DELETE", "/configs/"+slug, key, nil).OK()
	}
	// Of a prompt the published version counts.
	slug := h.create("").OK().Text("slug")
	other := resource.Record{Scope: store.Scope{Org: admintest.Org, Workspace: h.One}, Kind: provider.KindProvider, Slug: "other", Name: "other", Status: provider.StatusActive, Body: []byte(`{"integration_id":"x","ai_provider_id":"openai"}`)}
	if err := h.Resources.Change(context.Background(), other.Scope, func(tx *resource.Tx) error { return tx.Create(&other) }); err != nil {
		t.Fatal(err)
	}
	h.Do("PUT", "/prompts/"+slug, key, h.body(`"virtual_key":"other"`)).OK()
	inUse("prompt")
	h.Do("PUT", "/prompts/"+slug+"/makeDefault", key, `{"version":2}`).OK()
	h.Do("DELETE", "/providers/model-1", key, nil).OK()
	h.Do("DELETE", "/providers/other", key, nil).RequireFault(409, "AB07", "")
}

func TestSharedPromptsAreReadAndForked(t *testing.T) {
	t.Parallel()
	h := newPromptInstallation(t)
	made := h.create("").OK()
	id, slug := made.Text("id"), made.Text("slug")
	at := "/prompts/" + slug
	h.Do("GET", at, admintest.WorkspaceB, nil).RequireFault(404, "AB08", "promptId")
	h.Do("POST", at+"/share", key, `{"workspaces":["`+h.Two+`"]}`).RequireFault(403, "AB03", "")
	h.Do("POST", at+"/share?workspace_id="+h.One, admintest.AdminKey, `{"workspaces":["nowhere"]}`).RequireFault(400, "AB01", "workspaces[0]")
	h.Do("POST", at+"/share?workspace_id="+h.One, admintest.AdminKey, `{"workspaces":["`+h.Three+`"]}`).RequireFault(400, "AB01", "workspaces[0]")
	h.Do("POST", at+"/share?workspace_id="+h.One, admintest.AdminKey, `{"workspaces":["`+admintest.TwoSlug+`"]}`).OK()
	for _, name := range []string{id, slug, slug + "@1", slug + "@latest"} {
		if got := h.Do("GET", "/prompts/"+name, admintest.WorkspaceB, nil).OK(); got.Text("id") != id || got.Text("workspace_id") != h.One {
			t.Errorf("%s", got.Body)
		}
	}
	h.Do("GET", at+"/versions", admintest.WorkspaceB, nil).OK()
	for _, call := range [][3]string{{"PUT", at, `{"name":"x"}`}, {"DELETE", at, ""}, {"PUT", at + "/makeDefault", `{"version":1}`}, {"PUT", at + "/versions/1", `{"label_id":null}`}, {"DELETE", at + "/share", ""}} {
		var body any
		if call[2] != "" {
			body = call[2]
		}
		if got := h.Do(call[0], call[1], admintest.WorkspaceB, body); got.Status != 404 && got.Status != 403 {
			t.Errorf("%v: %d %s", call, got.Status, got.Body)
		}
	}
	list := h.Do("GET", "/prompts?type=shared", admintest.WorkspaceB, nil).OK()
	if list.At("total") != 1.0 || list.Text("data", "0", "id") != id {
		t.Errorf("%s", list.Body)
	}
	if got := h.Do("GET", "/prompts", admintest.WorkspaceB, nil).OK().At("total"); got != 0.0 {
		t.Errorf("own: %v", got)
	}
	if got := h.Do("GET", at+"?show_prompt_share=true", key, nil).OK(); got.Text("prompt_share", "workspaces", "0") != h.Two || got.At("prompt_share", "organisation") != false {
		t.Errorf("%s", got.Body)
	}
	h.Do("POST", "/configs", admintest.WorkspaceB, `{"name":"c","config":{"prompt_id":"`+slug+`"}}`).OK()
	h.Do("DELETE", at, key, nil).RequireFault(409, "AB07", "")

	fork := h.Do("POST", at+"/fork", admintest.WorkspaceB, `{"name":"Mine"}`).OK()
	got := h.Do("GET", "/prompts/"+fork.Text("slug"), admintest.WorkspaceB, nil).OK()
	if got.Text("workspace_id") != h.Two || got.Text("name") != "Mine" || got.At("prompt_version") != 1.0 || got.Text("string") == "" || got.Text("id") == id {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", at, key, `{"patch":true,"model":"later"}`).OK()
	h.Do("PUT", at+"/makeDefault", key, `{"version":2}`).OK()
	if got := h.Do("GET", "/prompts/"+fork.Text("id"), admintest.WorkspaceB, nil).OK(); got.Text("model") != "gpt-4o-mini" {
		t.Errorf("a fork follows its source: %s", got.Body)
	}
	h.Do("POST", at+"/fork", admintest.WorkspaceB, `{"virtual_key":"nowhere"}`).RequireFault(400, "AB01", "virtual_key")
	h.Do("POST", at+"/fork", key, nil).OK() // one's own too

	h.Do("POST", at+"/unshare?workspace_id="+h.One, admintest.AdminKey, nil).OK()
	h.Do("GET", at, admintest.WorkspaceB, nil).RequireFault(404, "AB08", "promptId")
	h.Do("POST", at+"/share?workspace_id="+h.One, admintest.AdminKey, `{"organisation":true}`).OK()
	h.Do("GET", at, admintest.WorkspaceB, nil).OK()
	h.Do("GET", at, admintest.OtherAdmin, nil).RequireFault(404, "AB08", "promptId")
	h.Do("GET", at+"?workspace_id="+h.Three, admintest.OtherAdmin, nil).RequireFault(404, "AB08", "promptId")
}

func TestLabelsNameVersions(t *testing.T) {
	t.Parallel()
	h := newPromptInstallation(t)
	list := h.Do("GET", "/labels", key, nil).OK()
	if list.At("total") != 3.0 || list.At("data", "0", "is_universal") != true {
		t.Errorf("%s", list.Body)
	}
	universal := list.Text("data", "0", "id")
	for _, who := range []string{key, admintest.AdminKey} {
		h.Do("PUT", "/labels/"+universal, who, `{"description":"x"}`).RequireFault(403, "AB03", "")
		h.Do("DELETE", "/labels/"+universal, who, nil).RequireFault(403, "AB03", "")
	}
	for _, name := range []string{"latest", "default", "published", "123", "a b", "a@b", "ä", ""} {
		h.Do("POST", "/labels", key, map[string]any{"name": name}).RequireFault(400, "AB01", "name")
	}
	h.Do("POST", "/labels", key, `{"name":"production"}`).RequireFault(409, "AB07", "name")
	canary := h.Do("POST", "/labels", key, `{"name":"canary","color_code":"#fff"}`).OK().Text("id")
	h.Do("POST", "/labels", key, `{"name":"canary"}`).RequireFault(409, "AB07", "name")
	h.Do("POST", "/labels", admintest.WorkspaceB, `{"name":"canary"}`).OK()
	for name, id := range map[string]string{"canary": canary, list.Text("data", "0", "name"): universal} { // a name is as good as an id
		if got := h.Do("GET", "/labels/"+name, key, nil).OK().Text("id"); got != id {
			t.Errorf("the label %s: %s, want %s", name, got, id)
		}
	}
	h.Do("PUT", "/labels/production", key, `{"description":"x"}`).RequireFault(403, "AB03", "")
	h.Do("PUT", "/labels/canary", key, `{"description":"first"}`).OK()
	if got := h.Do("GET", "/labels/"+canary, key, nil).OK().Text("description"); got != "first" {
		t.Errorf("described %q", got)
	}
	h.Do("GET", "/labels/nothing", key, nil).RequireFault(404, "AB08", "labelId")
	admintest.ForeignIsMissing(t, h.Installation, "GET", "/labels", canary, nil)

	at := "/prompts/" + h.create("").OK().Text("id")
	h.Do("PUT", at, key, `{"patch":true,"model":"m2"}`).OK()
	h.Do("PUT", at+"/versions/2", key, `{"label_id":"`+canary+`"}`).OK()
	h.Do("PUT", at+"/versions/1", key, `{"label_id":"`+universal+`"}`).OK()
	if got := h.Do("GET", at+"@canary", key, nil).OK(); got.Text("model") != "m2" || got.Text("prompt_version_label_id") != canary {
		t.Errorf("%s", got.Body)
	}
	h.Do("DELETE", "/labels/"+canary, key, nil).OK()
	h.Do("GET", at+"@canary", key, nil).RequireFault(404, "AB08", "version")
	if got := h.Do("GET", at+"@2", key, nil).OK(); got.At("prompt_version_label_id") != nil {
		t.Errorf("a label that is gone is shown: %s", got.Body)
	}
}

func TestCollectionsListTheirContents(t *testing.T) {
	t.Parallel()
	h := newPromptInstallation(t)
	if got := h.Do("GET", "/collections/"+h.collection, key, nil).OK(); got.At("is_default") != 1.0 || got.Text("status") != "active" {
		t.Errorf("%s", got.Body)
	}
	parent := h.collection
	for i := range 9 {
		parent = h.Do("POST", "/collections", key, fmt.Sprintf(`{"name":"c%d","parent_collection_id":"%s"}`, i, parent)).OK().Text("id")
	}
	h.Do("POST", "/collections", key, `{"name":"deep","parent_collection_id":"`+parent+`"}`).RequireFault(400, "AB01", "parent_collection_id")
	h.Do("POST", "/collections", key, `{"name":"lost","parent_collection_id":"nowhere"}`).RequireFault(404, "AB08", "parent_collection_id")
	h.create("").OK()
	h.create(`"name":"b"`).OK()
	got := h.Do("GET", "/collections/"+h.collection, key, nil).OK()
	if got.At("collection_details", "child_collections_count") != 1.0 || got.At("collection_details", "prompts_count") != 2.0 || got.Text("child_collections", "0", "name") != "c0" || got.Text("collection_details", "prompts_last_updated_at") == "" {
		t.Errorf("%s", got.Body)
	}
	slug := got.Text("slug")
	for _, query := range []string{h.collection, slug} {
		if n := h.Do("GET", "/prompts?collection_id="+query+"&search=GREET", key, nil).OK().At("total"); n != 1.0 {
			t.Errorf("%v", n)
		}
	}
	if n := h.Do("GET", "/prompts?collection_id=nowhere", key, nil).OK().At("total"); n != 0.0 {
		t.Errorf("%v", n)
	}
	h.Do("PUT", "/collections/"+slug, key, `{"name":"Renamed"}`).OK()
}

// Partials can be nested ten levels deep: a version that cannot be rendered is not saved.
func TestPartialsNestTenDeep(t *testing.T) {
	t.Parallel()
	h := newPromptInstallation(t)
	text := "end"
	for n := range 10 {
		text = "{{>" + h.Do("POST", "/prompts/partials", key, fmt.Sprintf(`{"name":"P%d","string":%q}`, n, text)).OK().Text("slug") + "}}"
	}
	taking := func() string {
		return fmt.Sprintf(`"string":%q,"template_metadata":{"template_type":"completion"}`, text)
	}
	h.create(taking()).OK()
	deepest := h.Do("POST", "/prompts/partials", key, fmt.Sprintf(`{"name":"P10","string":%q}`, text)).OK().Text("slug")
	text = "{{>" + deepest + "}}"
	h.create(taking()).RequireFault(400, "AB01", "string")
	h.Do("POST", "/prompts/partials", key, fmt.Sprintf(`{"name":"P11","string":%q}`, text)).RequireFault(400, "AB01", "string")
}
