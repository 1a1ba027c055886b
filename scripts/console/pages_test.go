package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// request calls the gateway with a key and returns the status and the body.
func request(t *testing.T, base, key, method, path string, body any) (int, map[string]any) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if body == nil {
		raw = nil
	}
	r, err := http.NewRequest(method, base+"/v1"+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("x-gateway-api-key", key)
	r.Header.Set("content-type", "application/json")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	_ = json.Unmarshal(text, &out)
	return got.StatusCode, out
}

type object = map[string]any

// must is request for calls that succeed.
func must(t *testing.T, base, key, method, path string, body any) object {
	t.Helper()
	status, out := request(t, base, key, method, path, body)
	if status != http.StatusOK {
		t.Fatalf("%s %s: %d %v", method, path, status, out)
	}
	return out
}

// seed makes a resource of each kind that the console shows.
func seed(t *testing.T, base string) {
	t.Helper()
	post := func(path string, body object) object {
		t.Helper()
		if !strings.HasPrefix(path, "/a") || strings.HasPrefix(path, "/agent") || strings.HasPrefix(path, "/api-keys") {
			body["workspace_id"] = "default"
		}
		return must(t, base, adminKey, "POST", path, body)
	}
	post("/api-keys/workspace/service", object{"name": "search", "scopes": []string{"completions.write"}, "usage_limits": object{"type": "cost", "credit_limit": 20}})
	byWorkspace := []object{{"key": "workspace_id", "value": "default"}}
	byKey := []object{{"key": "api_key"}}
	post("/policies/usage-limits", object{"name": "Team budget", "type": "cost", "credit_limit": 50, "conditions": byWorkspace, "group_by": byKey, "periodic_reset": "monthly"})
	post("/policies/rate-limits", object{"name": "Calm", "type": "requests", "unit": "rpm", "value": 600, "conditions": byWorkspace, "group_by": byKey})
	post("/configs", object{"name": "Production routing", "config": object{"strategy": object{"mode": "fallback"}, "targets": []object{{"provider": "@mock"}, {"provider": "@mock", "weight": 1}}}})
	post("/guardrails", object{"name": "No secrets", "checks": []object{{"id": "default.contains", "parameters": object{"operator": "none", "words": []string{"password"}}}}, "actions": object{"deny": true}})
	collection := post("/collections", object{"name": hostileName})
	prompt := post("/prompts", object{"name": "Summarize", "collection_id": collection["id"], "string": hostileName + " {{ticket}}", "parameters": object{"ticket": ""}, "virtual_key": "mock", "model": "gpt-4o-mini"})
	must(t, base, adminKey, "POST", "/admin/users/invites", object{"email": "ann@example.com", "role": "member", "workspaces": []object{{"id": "default", "role": "member"}}})
	must(t, base, adminKey, "PUT", "/prompts/"+prompt["slug"].(string), object{"patch": true, "string": "Short: {{ticket}}", "version_description": "shorter"})
	post("/prompts/"+prompt["slug"].(string)+"/experiments", object{"name": "Short or long", "variants": []object{{"version": 1, "weight": 1}, {"version": 2, "weight": 1}}})
	must(t, base, adminKey, "POST", "/integrations", object{"name": "OpenAI", "ai_provider_id": "openai", "credentials": []object{{"label": "first", "key": "sk-1"}, {"label": "spare", "key": "sk-2", "weight": 0}}})
	post("/labels", object{"name": "live"})
	post("/logs/exports", object{"description": hostileName, "filters": object{"time_of_generation_min": "2026-01-01T00:00:00Z", "time_of_generation_max": "2026-01-02T00:00:00Z"}, "requested_data": []string{"id"}})
	post("/views", object{"name": hostileName, "page": "logs", "query": "range=7d&status_code=446"})
	must(t, base, adminKey, "POST", "/auth/sso-configurations", object{"name": "Corporate", "protocol": "oidc", "issuer": "https://id.example.com", "client_id": "console", "client_secret": "s"})
	must(t, base, adminKey, "POST", "/auth/domains", object{"domain": "example.com"})
	must(t, base, adminKey, "POST", "/scim/tokens", object{"name": "Directory"})
	must(t, base, adminKey, "POST", "/secret-references", object{"name": "Vault", "manager_type": "hashicorp_vault", "secret_path": "secret/data/x", "auth_config": object{"vault_addr": "https://vault.example.com", "vault_token": "t", "vault_auth_type": "token"}})
	must(t, base, adminKey, "POST", "/deployments", object{"name": "Europe", "type": "production", "url": "https://eu.example.com"})
	must(t, base, adminKey, "POST", "/webhooks", object{"name": "Alerts", "url": "https://hooks.example.com/x"})
}

const hostileName = `<img src=x onerror="document.title='owned'">`

// clickOn clicks the first button, link or summary with a text.
func (b *browser) clickOn(text string) {
	b.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('dialog[open] button, main button, main a, aside button, summary')].find((x) => x.innerText.trim()===%q && !x.disabled)", text)
	b.want(find)
	b.eval(find + ".focus()") // as a click of a mouse does
	b.eval(find + ".click()")
}

// texts returns the texts of elements.
func (b *browser) texts(selector string) (out []string) {
	b.t.Helper()
	if err := json.Unmarshal([]byte(b.eval(fmt.Sprintf("JSON.stringify([...document.querySelectorAll(%q)].map((x) => x.innerText))", selector))), &out); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// confirm confirms what the open dialog asks.
func (b *browser) confirm() {
	b.t.Helper()
	b.want("document.querySelector('dialog[open] button.main:enabled')")
	b.eval("document.querySelector('dialog[open] button.main').click()")
}

// fill replaces the text of an input.
func (b *browser) fill(selector, text string) {
	b.t.Helper()
	// A field of a dialog takes the focus once the dialog is open.
	b.want(fmt.Sprintf("(() => { const x = document.querySelector(%q); x?.focus(); x?.select(); return x && document.activeElement===x; })()", selector))
	b.do("Input.insertText", map[string]any{"text": text})
}

// signIn signs in with a key, wherever the browser is.
func (b *browser) signIn(key string) {
	b.t.Helper()
	b.want(heading + "==='Sign in to the AI gateway'")
	b.fill("#key", key)
	b.press("Enter", 13, "\r")
	b.want("document.querySelector('nav')")
}

const settled = "!document.querySelector('.loading') && document.querySelector('main h1')"

// judge runs axe-core on the page and returns what it finds.
func (b *browser) judge() string {
	b.t.Helper()
	var out struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	b.call(b.session, "Runtime.evaluate", map[string]any{
		"expression":   "axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.slice(0, 2).map((n) => n.html.slice(0, 200)).join(' ')).join('\\n'))",
		"awaitPromise": true, "returnByValue": true,
	}, &out)
	if out.ExceptionDetails != nil {
		b.t.Fatal(out.ExceptionDetails)
	}
	return fmt.Sprint(out.Result.Value)
}

// axe is the source of axe-core, which `make deps` installs.
func axe(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "testdeps", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal("run make deps: ", err)
	}
	return string(raw)
}

// page is a page of the console: its address, its heading, and the call of the API without
// which it shows nothing.
type page struct{ at, heading, call string }

const lastDay = "time_of_generation_min=2020-01-01T00:00:00Z&time_of_generation_max=2020-01-02T00:00:00Z"

var allPages = []page{
	{"", "What does the gateway do?", "/analytics/graphs?include=cost&" + lastDay},
	{"logs", "Which requests were made?", "/logs?page_size=1"},
	{"logs/exports", "What was exported?", "/logs/exports?workspace_id=default"},
	{"usage", "Who spends what?", "/analytics/groups/model?" + lastDay},
	{"budgets", "What may be spent?", "/policies/usage-limits?workspace_id=default"},
	{"budgets/rates", "How fast may it go?", "/policies/rate-limits?workspace_id=default"},
	{"keys", "Who may call the gateway?", "/api-keys"},
	{"providers", "Which providers can be called?", "/virtual-keys?workspace_id=default"},
	{"providers/integrations", "Which credentials are stored?", "/integrations"},
	{"providers/catalog", "Which providers are supported?", "/virtual-keys?workspace_id=default"},
	{"configs", "How are requests routed?", "/configs?workspace_id=default"},
	{"prompts", "Which prompts are in use?", "/prompts?workspace_id=default"},
	{"playground", "Try models side by side", "/prompts?workspace_id=default"},
	{"prompts/partials", "Which parts do prompts share?", "/prompts/partials?workspace_id=default"},
	{"prompts/collections", "How are prompts grouped?", "/collections?workspace_id=default"},
	{"prompts/labels", "Which labels do versions have?", "/labels?workspace_id=default"},
	{"guardrails", "What is checked?", "/guardrails?workspace_id=default"},
	{"guardrails/verdicts", "What was denied?", "/analytics/groups/status_code?" + lastDay},
	{"guardrails/mcp", "Which tools can be used?", "/mcp-servers?workspace_id=default"},
	{"guardrails/mcp-integrations", "Which MCP servers are registered?", "/mcp-integrations"},
	{"guardrails/agents", "Which agents can be called?", "/agent-servers?workspace_id=default"},
	{"guardrails/agent-integrations", "Which agents are registered?", "/agent-integrations"},
	{"organization", "How is the organization divided?", "/admin/workspaces"},
	{"organization/members", "Who belongs to the organization?", "/admin/users"},
	{"organization/invitations", "Who is invited?", "/admin/users/invites"},
	{"organization/sso", "How do users sign in?", "/auth/sso-configurations"},
	{"organization/domains", "Which domains may sign in?", "/auth/domains"},
	{"organization/provisioning", "Who is provisioned?", "/scim/tokens"},
	{"organization/settings", "What applies to everybody?", "/admin/organisation/settings"},
	{"organization/audit", "Who changed what?", "/audit-logs?start_time=2020-01-01T00:00:00Z&end_time=2020-01-02T00:00:00Z"},
	{"organization/secrets", "Which secrets are referenced?", "/secret-references"},
	{"organization/deployments", "Where does the gateway run?", "/deployments"},
	{"organization/webhooks", "Who is notified?", "/webhooks"},
}

// check judges the page that is shown.
func (b *browser) check(name, base, source string) {
	b.t.Helper()
	faults, requests := b.take()
	calls := 0
	for _, a := range requests {
		switch {
		case strings.HasPrefix(a, base+"/v1/"):
			calls++
		case !strings.HasPrefix(a, base+"/console/") && !strings.HasPrefix(a, "data:"):
			b.t.Errorf("%s asks %s", name, a)
		}
		if strings.Contains(a, adminKey) {
			b.t.Errorf("%s: the key is in an address", name)
		}
	}
	if calls > 3 || len(faults) > 0 {
		b.t.Errorf("%s: %d calls, at most 3: %q; faults %q", name, calls, requests, faults)
	}
	b.do("Runtime.evaluate", map[string]any{"expression": "window.axe ||\n" + source})
	for _, look := range []struct {
		width  int
		scheme string
	}{{360, "light"}, {390, "dark"}, {768, "light"}, {1440, "light"}, {1440, "dark"}} {
		b.size(look.width, look.scheme)
		b.eval("document.body.offsetWidth")
		if wide := b.eval("document.documentElement.scrollWidth - innerWidth"); wide != "0" && !strings.HasPrefix(wide, "-") {
			b.t.Errorf("%s at %d pixels is %s pixels too wide", name, look.width, wide)
		}
		b.shoot(fmt.Sprintf("%s-%d-%s", strings.ReplaceAll(name, "/", "-"), look.width, look.scheme))
		if look.width == 360 || look.width == 768 {
			continue
		}
		if found := b.judge(); found != "" {
			b.t.Errorf("%s, %d pixels, %s: %s", name, look.width, look.scheme, found)
		}
	}
	b.size(1440, "light")
	b.take()
}

func TestEveryPageInABrowser(t *testing.T) {
	source := axe(t)
	b := startBrowser(t)
	base := startGateway(t)
	seed(t, base)
	registerTools(t, base)
	for range 3 {
		send(t, base, hostile)
	}
	deny(t, base, "my password is "+hostile)
	logged(t, base, 4)
	b.size(1440, "light")
	b.open(base + "/console/")
	b.want(heading + "==='Sign in to the AI gateway'")
	b.check("sign-in", base, source)
	b.signIn(adminKey)
	b.want(settled)
	for _, p := range allPages {
		b.take()
		b.open(base + "/console/" + p.at) // loads anew: the session survives
		b.want(fmt.Sprintf("%s===%q && %s", heading, p.heading, settled))
		if shown := b.eval("document.querySelector('.error')?.innerText ?? ''"); shown != "" {
			t.Errorf("%s: %s", p.at, shown)
		}
		b.check("page-"+p.at, base, source)
		for _, tab := range b.texts("main > p.tabs button[aria-pressed=false]") {
			b.clickOn(tab)
			b.want(settled)
			b.check("page-"+p.at+"-"+strings.ToLower(tab), base, source)
		}
		if b.eval("!!document.querySelector('tbody a')") == "true" && p.at != "" && p.at != "usage" {
			b.eval("document.querySelector('tbody a').click()")
			b.want("location.pathname.split('/').length > 3 && " + settled)
			b.check("item-"+p.at, base, source)
			for _, tab := range b.texts("main p.tabs button[aria-pressed=false]") {
				b.clickOn(tab)
				b.want(settled)
				b.check("item-"+p.at+"-"+strings.ToLower(strings.Fields(tab)[0]), base, source)
			}
		}
		if create := b.eval("[...document.querySelectorAll('main header a')].find((x) => x.innerText.startsWith('Create'))?.getAttribute('href') ?? ''"); create != "" {
			b.open(base + create)
			b.want("document.querySelector('form.form')")
			b.check("new-"+p.at, base, source)
		}
	}
	if title := b.eval("document.title"); title == "owned" || b.eval("document.querySelectorAll('img').length") != "0" {
		t.Error("content of a resource became markup")
	}
	if state := b.eval("JSON.stringify([{...localStorage},{...sessionStorage},document.cookie])"); state != "[{},{},\"\"]" {
		t.Error("the browser keeps", state)
	}
}

// TestRolesSeeThePagesThatTheyMayUse signs in with keys of different permissions. A page is
// in the navigation exactly if the API allows its call, and no page makes a call that is
// rejected.
func TestRolesSeeThePagesThatTheyMayUse(t *testing.T) {
	b := startBrowser(t)
	base := startGateway(t)
	b.size(1440, "light")
	key := func(scopes ...string) string {
		return must(t, base, adminKey, "POST", "/api-keys/workspace/service", object{"name": fmt.Sprint("of ", len(scopes)), "workspace_id": "default", "scopes": scopes})["key"].(string)
	}
	for name, as := range map[string]string{
		"admin":     adminKey,
		"workspace": workspaceKey,
		"logs":      key("logs.list", "logs.view"),
		"configs":   key("configs.list", "configs.read", "analytics.view"),
		"keys":      key("workspace_service_api_keys.list", "workspaces.list", "policies.list"),
	} {
		b.do("Network.clearBrowserCookies", nil)
		b.open(base + "/console/none")
		b.signIn(as)
		seen := map[string]bool{}
		links := "JSON.stringify([...document.querySelectorAll('nav a, .tabs a')].map((x) => new URL(x.href).pathname))"
		var nav []string
		if err := json.Unmarshal([]byte(b.eval(links)), &nav); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(nav); i++ {
			at, ok := strings.CutPrefix(nav[i], "/console/")
			if !ok || seen[at] {
				continue
			}
			seen[at] = true
			b.take()
			b.open(base + nav[i])
			b.want("document.querySelector('nav') && " + settled)
			if faults, _ := b.take(); len(faults) > 0 {
				t.Errorf("%s sees %q, where the browser reports %q", name, at, faults)
			}
			var more []string
			if err := json.Unmarshal([]byte(b.eval(links)), &more); err != nil {
				t.Fatal(err)
			}
			nav = append(nav, more...)
		}
		for _, p := range allPages {
			status, _ := request(t, base, as, "GET", p.call, nil)
			if allowed := status == http.StatusOK; allowed != seen[p.at] {
				t.Errorf("%s: the page %q is shown: %t, the API answers %d", name, p.at, seen[p.at], status)
			}
			if seen[p.at] {
				delete(seen, p.at)
				continue
			}
			b.open(base + "/console/" + p.at)
			b.want(heading + "==='You may not see this page'")
			b.take()
		}
		for at := range seen {
			t.Errorf("the page %q is not in the table of the test", at)
		}
	}
}

func TestJourneysThroughTheConsole(t *testing.T) {
	b := startBrowser(t)
	base := startGateway(t)
	b.size(1440, "light")

	// The first request: the page tells when it arrives.
	b.open(base + "/console/")
	b.signIn(adminKey)
	b.want("document.querySelector('.arrival')?.innerText.includes('Waiting for a request')")
	b.shoot("first-1440-light")
	send(t, base, "Hello")
	b.want("document.querySelector('.arrival')?.innerText.includes('Your request arrived')")
	b.clickOn("See what happened to it")
	b.want(heading + "==='What happened to this request?' && document.querySelector('.facts')?.innerText.includes('Cost')")

	// A key: created, shown once, used, rotated with overlap, revoked.
	b.open(base + "/console/keys/new")
	b.fill("[name=name]", "journey")
	b.clickOn("Create")
	b.want("document.querySelector('.secret code')?.innerText.startsWith('gw-')")
	first := b.eval("document.querySelector('.secret code').innerText")
	models := func(key string) int {
		status, _ := request(t, base, key, "GET", "/models?limit=1", nil)
		return status
	}
	if got := models(first); got != http.StatusOK {
		t.Errorf("the new key: %d", got)
	}
	b.clickOn("I have stored it")
	b.want(heading + "==='Who may call the gateway?'")
	if b.eval("document.body.innerText.includes("+fmt.Sprintf("%q", first)+")") == "true" {
		t.Error("the secret is shown twice")
	}
	b.clickOn("journey")
	b.clickOn("Rotate")
	b.confirm()
	b.want("document.querySelector('.secret code')?.innerText.startsWith('gw-')")
	second := b.eval("document.querySelector('.secret code').innerText")
	if models(first) != http.StatusOK || models(second) != http.StatusOK || first == second {
		t.Error("after a rotation both secrets must be valid")
	}
	b.clickOn("Revoke")
	b.want("document.querySelector('dialog[open]')")
	b.press("Escape", 27, "")
	b.want("!document.querySelector('dialog') && document.activeElement.innerText==='Revoke'")
	b.clickOn("Revoke")
	b.confirm()
	b.want(heading + "==='Who may call the gateway?'")
	until(t, "the key to be rejected", func() bool { return models(second) == http.StatusUnauthorized })

	// A config: created, edited, restored.
	b.open(base + "/console/configs/new")
	b.fill("[name=name]", "Journey")
	b.fill("[name=config]", `{"provider":"@mock"}`)
	b.clickOn("Create")
	b.want("document.querySelector('.tree')?.innerText.includes('@mock')")
	b.clickOn("JSON")
	b.fill("#config", `{"provider":`)
	b.want("document.querySelector('#config').getAttribute('aria-invalid')==='true' && document.querySelector('.wrong').innerText")
	b.fill("#config", `{"provider":"@mock","retry":{"attempts":3}}`)
	b.clickOn("Save as a new version")
	b.want("document.querySelector('.tree')?.innerText.includes('attempts')")
	b.clickOn("Dry run")
	b.fill("#model-key", workspaceKey)
	b.eval("[...document.querySelectorAll('button.main')].find((x) => x.innerText==='Dry run').click()")
	b.want("document.querySelector('[aria-label=Targets]')?.innerText.includes('gpt-4o-mini')")
	b.clickOn("Versions")
	b.clickOn("Restore")
	b.confirm()
	b.want("document.querySelector('.tree') && !document.querySelector('.tree').innerText.includes('attempts')")

	// The playground calls models with the key of the user.
	b.open(base + "/console/playground")
	b.fill("#model-key", workspaceKey)
	b.fill("#models", "gpt-4o-mini, gpt-4o")
	b.clickOn("Run")
	b.want("document.querySelectorAll('.runs pre').length===2")

	// A budget that is spent rejects requests; raised, it lets them pass.
	limited := must(t, base, adminKey, "POST", "/api-keys/workspace/service", object{"name": "limited", "workspace_id": "default", "scopes": []string{"completions.write"}})["key"].(string)
	policy := must(t, base, adminKey, "POST", "/policies/usage-limits", object{"name": "Small", "workspace_id": "default", "type": "requests", "credit_limit": 1, "conditions": []object{{"key": "api_key", "value": "*"}}, "group_by": []object{{"key": "api_key"}}})
	count := func() int {
		status, _ := request(t, base, limited, "POST", "/chat/completions", object{"model": "@mock/gpt-4o-mini", "messages": []object{{"role": "user", "content": "hi"}}})
		return status
	}
	until(t, "the budget to be spent", func() bool { return count() == http.StatusPreconditionFailed })
	b.open(base + "/console/budgets/" + policy["id"].(string))
	b.clickOn("Edit")
	b.fill("[name=credit_limit]", "1000")
	b.clickOn("Save")
	b.want("!document.querySelector('form.form') && " + settled)
	until(t, "the raised budget", func() bool { return count() == http.StatusOK })

	// A member is invited, and opens a session with the invitation.
	b.open(base + "/console/organization/invitations/new")
	b.fill("[name=email]", "new@example.com")
	b.fill("[name='workspace_api_key_details.scopes']", "logs.list")
	b.clickOn("Create")
	b.want("document.querySelector('.secret code')?.innerText.includes('token=')")
	link := b.eval("document.querySelector('.secret code').innerText")
	b.clickOn("I have stored it")
	b.want(heading + "==='Who is invited?'")
	b.clickOn("Sign out")
	b.want(heading + "==='Sign in to the AI gateway'")
	b.clickOn("Invitation")
	b.fill("#invitation", link)
	b.press("Enter", 13, "\r")
	b.want("document.querySelector('.secret code')?.innerText.startsWith('gw-')")
	b.clickOn("I have stored it")
	b.want("document.querySelector('nav') && !document.querySelector('nav').innerText.includes('Configs')")
}
