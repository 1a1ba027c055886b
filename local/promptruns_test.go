package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// prompt saves a prompt on the mock provider and gives its slug.
func (r *running) prompt(text string, more string) string {
	r.t.Helper()
	return r.admin("POST", "/prompts", r.promptBody(text, more))["slug"].(string)
}

func (r *running) promptBody(text, more string) string {
	members := map[string]json.RawMessage{}
	raw, _ := json.Marshal(text)
	for name, value := range map[string]string{
		"name": `"A prompt"`, "workspace_id": fmt.Sprintf("%q", r.workspace()), "collection_id": fmt.Sprintf("%q", r.collection()),
		"string": string(raw), "parameters": `{"max_tokens":20}`, "virtual_key": `"mock"`, "model": `"gpt-4o-mini"`,
	} {
		members[name] = json.RawMessage(value)
	}
	if more != "" {
		if err := json.Unmarshal([]byte("{"+more+"}"), &members); err != nil {
			r.t.Fatal(err)
		}
	}
	raw, _ = json.Marshal(members)
	return string(raw)
}

// collection is the default collection of the default workspace.
func (r *running) collection() string {
	r.t.Helper()
	return member(r.admin("GET", "/collections?workspace_id="+r.workspace(), ""), "data/0/id").(string)
}

// partial saves a partial and gives its slug.
func (r *running) partial(text string) string {
	r.t.Helper()
	raw, _ := json.Marshal(map[string]string{"name": "A partial", "workspace_id": r.workspace(), "string": text})
	return r.admin("POST", "/prompts/partials", string(raw))["slug"].(string)
}

// rendered is what a prompt makes of variables.
func (r *running) rendered(ref, body string) map[string]any {
	r.t.Helper()
	got := r.call("POST", "/prompts/"+ref+"/render", body)
	if got.status != 200 || member(got.json(r.t), "success") != true {
		r.t.Fatalf("render %s: %d %s", ref, got.status, got.body)
	}
	return got.json(r.t)["data"].(map[string]any)
}

func TestPromptsAreFilledInAndSent(t *testing.T) {
	t.Parallel()
	r := start(t)
	part := r.partial("Be {{how}}.")
	slug := r.prompt(`[{"role":"system","content":"{{>`+part+`}}"},{"role":"user","content":"mock: echo\nHello {{name}}"}]`, `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"auto","parameters":{"max_tokens":20,"temperature":0.5,"stop":null,"stream":true}`)

	got := r.rendered(slug, `{"variables":{"name":"\"A\" <b>","how":"brief"},"temperature":0.1,"hyperparameters":{"top_p":1}}`)
	for path, want := range map[string]any{
		"model": "gpt-4o-mini", "messages/0/content": "Be brief.", "messages/1/content": "mock: echo\nHello \"A\" <b>", "max_tokens": 20.0, "temperature": 0.1,
		"tools/0/function/name": "f", "tool_choice": "auto", "stop": nil, "stream": nil, "variables": nil, "hyperparameters": nil, "top_p": nil, "virtual_key": nil,
	} {
		if member(got, path) != want {
			t.Errorf("%s is %v, want %v", path, member(got, path), want)
		}
	}
	answer := r.call("POST", "/prompts/"+slug+"/completions", `{"variables":{"name":"World","how":"brief"},"tool_choice":"none"}`)
	if answer.status != 200 || !strings.Contains(fmt.Sprint(member(answer.json(t), "choices/0/message/content")), "Hello World") {
		t.Fatalf("%d %s", answer.status, answer.body)
	}
	sent := r.mock.Requests(1)[0]
	if strings.Contains(string(sent.Body), "variables") || !strings.Contains(string(sent.Body), `"temperature":0.5`) {
		t.Errorf("sent %s", sent.Body)
	}
	stream := r.call("POST", "/prompts/"+slug+"/completions", `{"variables":{"name":"World"},"stream":true,"tools":null,"tool_choice":null}`)
	if list := events(stream.body); stream.status != 200 || len(list) < 2 || list[len(list)-1] != "[DONE]" {
		t.Errorf("%d %s", stream.status, stream.body)
	}
	for _, rec := range r.records(3)[1:] {
		if id, n := rec.PromptVersion(); rec.PromptSlug != slug || id == "" || n != 1 || rec.Endpoint != "chatComplete" || rec.ProviderSlug != "mock" || rec.Cost == 0 {
			t.Errorf("%+v", rec)
		}
	}
}

func TestPromptsAreNamedWithTheirVersions(t *testing.T) {
	t.Parallel()
	r := start(t)
	slug := r.prompt("one {{x}}", `"template_metadata":{"template_type":"completion"}`)
	id := r.admin("GET", "/prompts/"+slug+"?workspace_id="+r.workspace(), "")["id"].(string)
	for _, text := range []string{"two", "three"} {
		r.admin("PUT", "/prompts/"+slug, fmt.Sprintf(`{"workspace_id":%q,"patch":true,"string":%q}`, r.workspace(), text))
	}
	label := r.admin("POST", "/labels", fmt.Sprintf(`{"name":"canary","workspace_id":%q}`, r.workspace()))["id"].(string)
	var production string
	for _, l := range r.admin("GET", "/labels?workspace_id="+r.workspace(), "")["data"].([]any) {
		if member(l, "name") == "production" {
			production = member(l, "id").(string)
		}
	}
	versions := r.admin("GET", "/prompts/"+slug+"/versions?workspace_id="+r.workspace(), "")["data"].([]any)
	attach := func(n int, label string) {
		for _, v := range versions {
			if member(v, "prompt_version") == float64(n) {
				r.admin("PUT", "/prompts/"+slug+"/versions/"+member(v, "id").(string), fmt.Sprintf(`{"workspace_id":%q,"label_id":%q}`, r.workspace(), label))
			}
		}
	}
	attach(2, label)
	attach(3, production)
	for ref, want := range map[string]string{
		slug: "one ", id: "one ", slug + "@latest": "three", slug + "@1": "one ", slug + "@2": "two", slug + "%402": "two", id + "@canary": "two", slug + "@production": "three",
	} {
		if got := r.rendered(ref, ""); got["prompt"] != want {
			t.Errorf("%s: %v", ref, got)
		}
	}
	r.tenant("strangers", "admin-of-strangers", "workspace-of-strangers")
	var foreign, missing string
	for ref, key := range map[string]string{slug: "workspace-of-strangers", "pp-nobody-123456": workspaceKey, slug + "@4": workspaceKey, slug + "@staging": workspaceKey, slug + "@0": workspaceKey, slug + "@unknown": workspaceKey} {
		for _, what := range []string{"render", "completions"} {
			got := r.call("POST", "/prompts/"+ref+"/"+what, `{}`, "X-Gateway-Api-Key", key)
			if got.status != 404 || member(got.json(t), "error/type") != "not_found_error" {
				t.Errorf("%s/%s: %d %s", ref, what, got.status, got.body)
			}
			if what == "render" && ref == slug {
				foreign = strings.ReplaceAll(got.body, ref, "")
			} else if what == "render" && key == workspaceKey && ref == "pp-nobody-123456" {
				missing = strings.ReplaceAll(got.body, ref, "")
			}
		}
	}
	if foreign != missing {
		t.Errorf("another's prompt is told from a missing one: %s, %s", foreign, missing)
	}
	r.admin("PUT", "/prompts/"+slug+"/makeDefault", fmt.Sprintf(`{"workspace_id":%q,"version":2}`, r.workspace()))
	if got := r.rendered(slug, `{"variables":null}`); got["prompt"] != "two" {
		t.Errorf("a published version is not in force: %v", got)
	}
	answer := r.call("POST", "/prompts/"+slug+"/completions", `{"model":"gpt-3.5-turbo-instruct","prompt":"mock: echo\nmine"}`)
	if answer.status != 200 || !strings.Contains(answer.body, "text_completion") || !strings.Contains(answer.body, "mine") {
		t.Errorf("%d %s", answer.status, answer.body)
	}
	r.call("DELETE", "/prompts/"+slug, fmt.Sprintf(`{"workspace_id":%q}`, r.workspace()), "X-Gateway-Api-Key", adminKey)
}

func TestBadRequestsOfPromptsAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	slug := r.prompt(`[{"role":"user","content":{{{x}}}}]`, `"is_raw_template":1`)
	for body, field := range map[string]string{
		`{"variables":[]}`: "variables", `{"variables":"x"}`: "variables", `{"variables":{"x":"\""}}`: "variables", `{"variables":{}}`: "variables",
		`{"variables":{"x":"\"hi\""},"variables":{}}`: "variables", `[]`: "", `{"variables":{"x":"1"},"model":7}`: "model", `{"variables":{"x":"7"}}`: "messages[0].content", "{\"variables\":{\"x\":\"\xff\"}}": "variables.x",
		`{"variables":{"x":"\"hi\""},"temperature":9}`: "temperature", `{"variables":{"x":"\"hi\""},"stream":1}`: "stream", `{`: "",
	} {
		got := r.call("POST", "/prompts/"+slug+"/completions", body)
		if param, _ := member(got.json(t), "error/param").(string); got.status != 400 || param != field {
			t.Errorf("%s: %d %q %s", body, got.status, param, got.body)
		}
	}
	if got := r.call("POST", "/prompts/"+slug+"/completions", `{"variables":{"x":"\"hi\""}}`); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	key := r.newKey("")
	if got := r.call("POST", "/prompts/"+slug+"/render", `{}`, "X-Gateway-Api-Key", key); got.status != 403 {
		t.Errorf("without the scope: %d %s", got.status, got.body)
	}
	if got := r.call("POST", "/prompts/"+slug+"/render", `{}`, "X-Gateway-Api-Key", "nobody"); got.status != 401 {
		t.Errorf("without a key: %d %s", got.status, got.body)
	}
	if got := r.call("POST", "/prompts/"+slug+"/completions", `{"variables":{"x":"\"hi\""},"model":"@nobody/x"}`); got.status != 400 || !strings.Contains(got.body, "nobody") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A target's own prompt takes the place of the one in the path, with its model and its
// provider; where each target has one, the path names none that counts.
func TestTargetsWithPromptsOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := start(t)
	messages := func(word string) string { return `[{"role":"user","content":"mock: echo\n` + word + ` {{x}}"}]` }
	first, second := r.prompt(messages("first"), ""), r.prompt(messages("second"), `"model":"gpt-4o"`)
	claude := r.prompt(messages("third"), `"virtual_key":"mock-anthropic","model":"claude-sonnet-4-5"`)
	text := r.prompt("mock: echo\ntext", `"model":"gpt-3.5-turbo-instruct"`)
	for _, c := range []struct {
		path, config, body string
		status             int
		want, model        string
	}{
		{first, ``, `{"variables":{"x":1}}`, 200, "first 1", "gpt-4o-mini"},
		{first, `{"prompt_id":"` + second + `"}`, `{"variables":{"x":2}}`, 200, "second 2", "gpt-4o"},
		{"pp-nobody-123456", `{"prompt_id":"` + second + `@1"}`, `{"variables":{"x":2}}`, 200, "second 2", "gpt-4o"},
		{first, `{"prompt_id":"` + claude + `"}`, `{"variables":{"x":3}}`, 200, "third 3", "claude-sonnet-4-5"},
		{first, `{"provider":"@mock-anthropic","override_params":{"model":"claude-sonnet-4-5"}}`, `{"variables":{"x":4}}`, 200, "first 4", "claude-sonnet-4-5"},
		{first, `{"prompt_id":"` + second + `","override_params":{"model":"gpt-4.1"}}`, `{"variables":{"x":5}}`, 200, "second 5", "gpt-4.1"},
		{first, `{"strategy":{"mode":"fallback"},"targets":[{"provider":"@nobody"},{"prompt_id":"` + claude + `"}]}`, `{"variables":{"x":6}}`, 200, "third 6", "claude-sonnet-4-5"},
		{first, `{"strategy":{"mode":"fallback"},"targets":[{"provider":"@nobody"},{"prompt_id":"` + text + `"}]}`, `{}`, 400, "has the type completion", ""},
		{text, `{"prompt_id":"` + text + `"}`, `{}`, 200, "text", "gpt-3.5-turbo-instruct"},
		{first, `{"prompt_id":"pp-nobody-123456"}`, `{}`, 404, "pp-nobody", ""},
		{"pp-nobody-123456", `{"strategy":{"mode":"fallback"},"targets":[{"provider":"@mock"},{"prompt_id":"` + claude + `"}]}`, `{}`, 404, "pp-nobody", ""},
		{first, `{"strategy":{"mode":"conditional","conditions":[{"query":{"params.max_tokens":{"$eq":20}},"then":"b"}],"default":"a"},"targets":[{"name":"a","provider":"@nobody"},{"name":"b","provider":"@mock"}]}`, `{"variables":{"x":7}}`, 200, "first 7", "gpt-4o-mini"},
		{first, ``, `{"variables":{"x":8},"model":"@mock-anthropic/claude-sonnet-4-5"}`, 200, "first 8", "claude-sonnet-4-5"},
	} {
		headers := []string{}
		if c.config != "" {
			headers = append(headers, "X-Gateway-Config", c.config)
		}
		got := r.call("POST", "/prompts/"+c.path+"/completions", c.body, headers...)
		if got.status != c.status || !strings.Contains(got.body, c.want) || c.model != "" && !strings.HasPrefix(fmt.Sprint(member(got.json(t), "model")), c.model) {
			t.Errorf("%s %s %s: %d %s", c.path, c.config, c.body, got.status, got.body)
		}
	}
}

// A shared prompt runs in the other workspace with that workspace's own partials and
// providers; when the share is withdrawn, there is no such prompt.
func TestSharedPromptsRunWithTheirOwnersPartials(t *testing.T) {
	t.Parallel()
	r := start(t)
	part := r.partial("owner's {{x}}")
	slug := r.prompt(`[{"role":"user","content":"mock: say={{>`+part+`}}"}]`, "")
	other := r.admin("POST", "/workspaces", `{"name":"Guests"}`)["id"].(string)
	key := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write","prompts.render"]}`, other))["key"].(string)
	send := func(what string) reply {
		return r.call("POST", "/prompts/"+slug+"/"+what, `{"variables":{"x":"words"}}`, "X-Gateway-Api-Key", key)
	}
	if got := send("render"); got.status != 404 {
		t.Errorf("before it is shared: %d %s", got.status, got.body)
	}
	r.admin("POST", "/prompts/"+slug+"/share", fmt.Sprintf(`{"workspace_id":%q,"workspaces":[%q]}`, r.workspace(), other))
	if got := send("render"); got.status != 200 || member(got.json(t), "data/messages/0/content") != "mock: say=owner's words" {
		t.Errorf("%d %s", got.status, got.body)
	}
	r.admin("DELETE", "/prompts/"+slug+"/share?workspace_id="+r.workspace(), "")
	if got := send("render"); got.status != 404 {
		t.Errorf("after the share was taken back: %d %s", got.status, got.body)
	}
}
