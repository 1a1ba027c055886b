package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// mainClick clicks the main button with a text, where a tab has the same text.
func (b *browser) mainClick(text string) {
	b.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('main button.main')].find((x) => x.innerText.trim()===%q && !x.disabled)", text)
	b.want(find)
	b.eval(find + ".click()")
}

// TestActionsOfThePages does what the pages offer, with the real API.
func TestActionsOfThePages(t *testing.T) {
	b := startBrowser(t)
	base := startGateway(t)
	seed(t, base)
	tools := registerTools(t, base)
	for range 2 {
		send(t, base, "Hello")
	}
	deny(t, base, "my password")
	logged(t, base, 3)
	b.size(1440, "light")
	b.open(base + "/console/logs")
	b.signIn(adminKey)
	b.want(rows + "===3")
	get := func(path string) object { t.Helper(); return must(t, base, adminKey, "GET", path, nil) }

	// A view is saved, used and deleted.
	b.fill("[name=status_code]", "446")
	b.press("Tab", 9, "")
	b.want("location.search.includes('status_code=446') && " + rows + "===1")
	b.clickOn("Save view")
	b.fill("#view", "Denied requests")
	b.shoot("dialog-view-1440-light")
	b.confirm()
	const selected = "document.querySelector('.views select')?.selectedOptions[0].innerText"
	b.want("!document.querySelector('dialog') && " + selected + "==='Denied requests'")
	b.open(base + "/console/logs")
	b.want("document.querySelectorAll('.views option').length===3 && " + rows + "===3")
	b.eval("(() => { const x = document.querySelector('.views select'); x.value = [...x.options].find((o) => o.innerText==='Denied requests').value; x.dispatchEvent(new Event('change')); })()")
	b.want("location.search.includes('status_code=446') && " + rows + "===1")
	b.clickOn("Delete view")
	b.confirm()
	b.want("location.search==='' && document.querySelectorAll('.views option').length===2 && " + rows + "===3")

	// A denied request tells which check denied it, and goes to the playground. Its prompt is in
	// no address.
	b.eval("document.querySelector('tbody a').click()")
	b.want("/denied[^]*default.contains: failed/.test(document.querySelector('[aria-label=Guardrails]')?.innerText)")
	b.shoot("denied-1440-light")
	b.clickOn("Open in the playground")
	b.want("document.querySelector('#message')?.value==='my password' && location.search===''")
	trace := get("/logs?page_size=1")["data"].([]any)[0].(object)["trace_id"].(string)
	b.fill("#find", trace)
	b.press("Enter", 13, "\r")
	b.want("location.search.includes('trace_id=') && " + rows + "===1")
	b.clickOn("More filters")
	b.want("document.querySelector('[name=metadata]')")
	b.clickOn("Remove the filters")
	b.want(rows + "===3")

	// An export of what the page shows.
	b.clickOn("Export")
	b.want("document.querySelector('[name=filters]')?.value.includes('time_of_generation_min')")
	b.fill("[name=description]", "Of the page")
	b.clickOn("Create")
	b.want(heading + "==='Of the page'")
	b.clickOn("Start")
	until(t, "the export", func() bool {
		b.eval("[...document.querySelectorAll('main button')].find((x) => x.innerText==='Refresh')?.click()")
		return b.eval("[...document.querySelectorAll('main button')].some((x) => x.innerText==='Download')") == "true"
	})
	b.want("document.querySelector('.facts').innerText.match(/Rows\\s+3/)")

	// A key is paused and resumed. What a revoked key was used for stands in the dialog.
	paused := must(t, base, adminKey, "POST", "/api-keys/workspace/service", object{"name": "to pause", "workspace_id": "default", "scopes": []string{"completions.write", "models.list"}})
	models := func() int {
		status, _ := request(t, base, paused["key"].(string), "GET", "/models?limit=1", nil)
		return status
	}
	if status, _ := request(t, base, paused["key"].(string), "POST", "/chat/completions", object{"model": "@mock/gpt-4o-mini", "messages": []object{{"role": "user", "content": "hi"}}}); status != http.StatusOK {
		t.Fatal(status)
	}
	logged(t, base, 4)
	b.open(base + "/console/keys/" + paused["id"].(string))
	b.clickOn("Pause")
	b.want("document.querySelector('dialog[open]')?.innerText.includes('gpt-4o-mini')")
	b.confirm()
	b.want("document.querySelector('.slug .badge').innerText.includes('paused')")
	until(t, "the paused key to be rejected", func() bool { return models() == http.StatusUnauthorized })
	b.clickOn("Resume")
	b.want("document.querySelector('.slug .badge').innerText.includes('active')")
	until(t, "the resumed key", func() bool { return models() == http.StatusOK })
	b.want("/Last used\\s+(moments|\\d)/.test(document.querySelector('.facts').innerText)")
	b.clickOn("Revoke")
	b.want("document.querySelector('dialog[open]')?.innerText.includes('gpt-4o-mini') && document.querySelector('dialog[open] .effect')?.innerText.includes('Nothing else uses it')")
	b.shoot("dialog-revoke-1440-light")
	b.press("Escape", 27, "")

	// A deletion that is not possible says why, and cannot be confirmed.
	guardrail := get("/guardrails?workspace_id=default")["data"].([]any)[0].(object)
	must(t, base, adminKey, "POST", "/configs", object{"name": "Guarded", "workspace_id": "default", "config": object{"provider": "@mock", "input_guardrails": []any{guardrail["slug"]}}})
	b.open(base + "/console/guardrails/" + guardrail["slug"].(string))
	b.clickOn("Delete")
	b.want("document.querySelector('dialog[open] .effect')?.innerText.includes('Guarded')")
	b.shoot("dialog-delete-1440-dark")
	if plan := must(t, base, adminKey, "DELETE", "/guardrails/"+guardrail["slug"].(string)+"?dry_run=true&workspace_id=default", nil)["dry_run"].(object); (plan["blocked"] != nil) != (b.eval("document.querySelector('dialog[open] button.main').disabled") == "true") {
		t.Error("the dialog and the API differ about ", plan)
	}
	b.press("Escape", 27, "")

	// Recorded traffic: what a guardrail, a limit and a config would have changed.
	b.clickOn("Simulate")
	b.want("document.querySelector('.simulation .tiles')?.innerText.includes('Denied')")
	config := get("/configs?workspace_id=default")["data"].([]any)
	b.open(base + "/console/configs/" + config[len(config)-1].(object)["slug"].(string))
	b.clickOn("JSON")
	b.fill("#config", `{"provider":"@mock","override_params":{"model":"gpt-4o"}}`)
	b.clickOn("Simulation")
	b.clickOn("Simulate")
	b.want("document.querySelector('[aria-label=\"Simulated targets\"]')?.innerText.includes('gpt-4o') && document.querySelector('[aria-label=Differences]').innerText.includes('Another target')")
	b.shoot("simulation-1440-light")
	b.clickOn("Versions")

	// A provider is tested; its health stands beside it.
	b.open(base + "/console/providers/mock")
	b.clickOn("Test the provider")
	b.want("document.querySelector('.panel')?.innerText.includes('It works') && document.querySelectorAll('.facts')[1].innerText.includes('healthy')")
	b.shoot("provider-1440-light")
	integration := get("/integrations")["data"].([]any)[0].(object)["slug"].(string)
	b.open(base + "/console/providers/integrations/" + integration)
	b.want("document.querySelector('[aria-label=Credentials]')?.innerText.includes('spare')")
	b.shoot("credentials-1440-light")
	b.clickOn("Models")
	b.clickOn("Add a model")
	b.fill("#model-slug", "in-house")
	b.fill("#model-input", "2.5")
	b.fill("#model-output", "10")
	b.confirm()
	b.want("!document.querySelector('dialog')")
	b.fill("main .filters input", "in-house")
	b.want("document.querySelector('[aria-label=Models]').innerText.includes('custom')")
	if stored := fmt.Sprint(get("/integrations/" + integration + "/models")); !strings.Contains(stored, "request_token:map[price:0.00025]") {
		t.Error("the price of the new model is not 2.5 dollars for one million tokens")
	}
	b.eval("document.querySelector('[aria-label=\"Disable in-house\"]').click()")
	b.want("document.querySelector('[aria-label=Models]').innerText.includes('inactive')")
	b.eval("document.querySelector('[aria-label=Models] button.danger').click()")
	b.want("document.querySelector('dialog[open]')?.innerText.includes('in-house')")
	b.confirm()
	b.want("document.querySelector('[aria-label=Models]') && !document.querySelector('[aria-label=Models] tbody tr')")

	// A prompt: an experiment is started and stopped, tests run.
	prompt := get("/prompts?workspace_id=default")["data"].([]any)[0].(object)["slug"].(string)
	b.open(base + "/console/prompts/" + prompt)
	b.clickOn("Versions")
	b.want("document.querySelectorAll('[aria-label=\"Label of version 2\"] option').length>=2")
	b.eval("(() => { const x = document.querySelector('[aria-label=\"Label of version 2\"]'); x.value = [...x.options].find((o) => o.innerText==='live').value; x.dispatchEvent(new Event('change')); })()")
	until(t, "the label of version 2", func() bool {
		versions := get("/prompts/" + prompt + "/versions?workspace_id=default")["data"].([]any)
		return len(versions[0].(object)["prompt_version_label_ids"].([]any)) == 1
	})
	b.clickOn("Experiments")
	b.clickOn("Start")
	b.want("document.querySelector('[aria-label=Experiments]').innerText.includes('running')")
	b.clickOn("Results")
	b.want("document.querySelectorAll('[aria-label=Results] tbody tr').length===2")
	b.shoot("experiment-1440-light")
	b.clickOn("Stop")
	b.want("document.querySelector('[aria-label=Experiments]').innerText.includes('stopped')")
	b.clickOn("Tests")
	b.fill("#model-key", workspaceKey)
	b.fill("#tests", `[{"name":"responds","variables":{"ticket":"x"},"assertions":[{"type":"contains","value":"Mock"}]},{"name":"fails","variables":{"ticket":"x"},"assertions":[{"type":"contains","value":"no such text"}]}]`)
	b.clickOn("Run the tests")
	b.want("/responds\\s+.*passed[^]*fails\\s+.*failed/.test(document.querySelector('[aria-label=\"Test results\"]')?.innerText)")
	b.shoot("tests-1440-light")

	// A tool is called; what it returns stays text.
	b.open(base + "/console/guardrails/mcp/" + tools)
	b.clickOn("Try a tool")
	b.fill("#model-key", workspaceKey)
	b.fill("#arguments", `{"city":"Bergen"}`)
	b.clickOn("Call the tool")
	b.want("document.querySelector('[aria-label=\"Response of the tool\"]')?.innerText.includes('of Bergen') && document.querySelector('section.panel').innerText.includes('The tool responded')")
	b.shoot("tool-1440-light")
	b.clickOn("Tools, prompts and resources")
	b.clickOn("Disable")
	b.want("document.querySelector('[aria-label=Capabilities]').innerText.includes('inactive')")

	// A SCIM token is shown once and revoked; a workspace changes a setting.
	b.open(base + "/console/organization/provisioning")
	b.clickOn("Create a token")
	b.fill("#scim", "Second")
	b.confirm()
	b.want("document.querySelector('.secret code')?.innerText && document.querySelector('[aria-label=Tokens]').innerText.includes('Second')")
	b.clickOn("I have stored it")
	must(t, base, adminKey, "PUT", "/admin/organisation/settings", object{"workspace_overrides": object{"model_settings": true}})
	b.open(base + "/console/organization/default")
	b.want("document.querySelector('section[aria-label=\"Model settings\"]')?.innerText.includes('standard')")
	b.eval("document.querySelector('section[aria-label=\"Model settings\"] button').click()")
	b.fill("#s-model_settings", `{"allowed_models":["gpt-4o-mini"]}`)
	b.mainClick("Save")
	b.want("document.querySelector('section[aria-label=\"Model settings\"]')?.innerText.includes('set here')")

	if faults, _ := b.take(); len(faults) > 0 {
		t.Errorf("the browser reports %q", faults)
	}
}

// TestLargeAndDeepContentStaysText shows contents that are large, deep, or markup.
func TestLargeAndDeepContentStaysText(t *testing.T) {
	b := startBrowser(t)
	base := startGateway(t)
	b.size(1440, "light")
	long := strings.Repeat("<b>long</b>", 20_000)
	send(t, base, long)
	logged(t, base, 1)
	id := must(t, base, adminKey, "GET", "/logs?page_size=1", nil)["data"].([]any)[0].(object)["id"].(string)
	b.open(base + "/console/logs/" + id)
	b.signIn(adminKey)

	// Only the beginning of a long text is shown, until all of it is asked for.
	const shown = "document.querySelector('pre[aria-label=Request]')?.textContent.length"
	b.want(shown + "===65536")
	b.eval("[...document.querySelectorAll('main button')].find((x) => x.innerText.startsWith('Load all')).click()")
	b.want(shown + fmt.Sprintf(">%d", len(long)))

	// JSON of 10,000 levels: the editor takes it, the gateway rejects it in words.
	b.open(base + "/console/configs/new")
	b.fill("[name=name]", strings.Repeat("W", 90))
	deep := strings.Repeat(`{"targets":[`, 5_000) + strings.Repeat(`]}`, 5_000)
	b.fill("[name=config]", deep)
	b.want("document.querySelector('[name=config]').getAttribute('aria-invalid')==='false'")
	b.clickOn("Create")
	b.want("document.querySelector('[role=alert]')?.innerText.includes('Code')")
	b.fill("[name=config]", `{"provider":"@mock"}`)
	b.clickOn("Create")
	b.want("document.querySelector('.tree')")
	b.clickOn("JSON")
	b.fill("#config", deep)
	b.want("document.querySelector('pre.diff')")
	b.clickOn("Save as a new version")
	b.want("document.querySelector('[role=alert]')")
	for _, width := range []int{360, 1440} {
		b.size(width, "light")
		if wide := b.eval("document.documentElement.scrollWidth - innerWidth"); wide != "0" && !strings.HasPrefix(wide, "-") {
			t.Errorf("the page is %s pixels too wide at %d", wide, width)
		}
	}
	if b.eval("document.querySelectorAll('main b').length") != "0" {
		t.Error("content became markup")
	}
}

// The overview shows the limits closest to their end and the alerts about them, to those who may
// see them; usage is shown by session and by the agents in it, and the catalog shows which models
// end.
func TestLimitsAlertsAndAgents(t *testing.T) {
	b := startBrowser(t)
	base := startGateway(t)
	made := must(t, base, adminKey, "POST", "/api-keys/workspace/service", object{"name": "search", "workspace_id": "default", "scopes": []string{"completions.write"},
		"usage_limits": object{"type": "tokens", "credit_limit": 1_000_000}})
	search := made["key"].(string)
	must(t, base, adminKey, "POST", "/policies/usage-limits", object{"name": "Team budget", "workspace_id": "default", "type": "requests", "credit_limit": 4, "alert_threshold": 3, "conditions": []object{{"key": "metadata.team", "value": "*"}}, "group_by": []object{{"key": "metadata.team"}}})
	agent := func(id, parent string) []string {
		return []string{"x-gateway-api-key", search, "x-claude-code-session-id", "session-1", "x-claude-code-agent-id", id, "x-claude-code-parent-agent-id", parent, "x-gateway-metadata", `{"team":"blue"}`}
	}
	send(t, base, "Hello", agent("main-agent", "")...)
	send(t, base, "Hello", agent("reader-agent", "main-agent")...)
	send(t, base, "Hello", agent("writer-agent", "main-agent")...)
	logged(t, base, 3)
	until(t, "the alert", func() bool {
		first := must(t, base, adminKey, "GET", "/policies/limits", nil)["data"].([]any)[0].(object)
		return first["is_threshold_alerts_sent"] == true
	})
	b.size(1440, "light")
	b.open(base + "/console/")
	b.signIn(adminKey)
	text := func(label string) string {
		return "document.querySelector('[aria-label=\"" + label + "\"]')?.innerText"
	}
	b.want(text("Alerts") + "?.includes('threshold reached') && " + text("Alerts") + ".includes('3 requests') && " + text("Alerts") + ".includes('Team budget')")
	b.want(text("Limits closest to their end") + "?.includes('search') && " + text("Limits closest to their end") + ".includes('75%') && " + text("Limits closest to their end") + ".includes('metadata.team:blue')")
	b.shoot("overview-limits-1440-light")
	b.eval("[...document.querySelectorAll('[aria-label=\"Limits closest to their end\"] a')].find((x) => x.innerText==='search').click()")
	b.want(heading + "==='search' && document.querySelector('main').innerText.includes('1M tokens')")

	b.open(base + "/console/usage?by=session")
	b.want(text("Usage") + "?.includes('session-1')")
	b.eval("document.querySelector('[aria-label=Usage] tbody a').click()")
	b.want("location.search.includes('session=session-1') && document.querySelectorAll('[aria-label=Usage] tbody tr').length===3")
	b.eval("[...document.querySelectorAll('[aria-label=Usage] tbody tr')].find((x) => x.innerText.includes('main-agent')).querySelector('a').click()")
	b.want("location.search.includes('above=main-agent') && document.querySelectorAll('[aria-label=Usage] tbody tr').length===2 && !" + text("Usage") + ".includes('main-agent')")
	b.open(base + "/console/usage?by=config")
	b.want("document.querySelector('.empty')?.innerText.startsWith('No request of this time has a value')")

	b.open(base + "/console/providers/catalog?find=openai")
	b.eval("1")
	b.want("[...document.querySelectorAll('main button')].some((x) => x.ariaLabel==='Details of OpenAI')")
	b.eval("[...document.querySelectorAll('main button')].find((x) => x.ariaLabel==='Details of OpenAI').click()")
	b.want(text("Models that end") + "?.includes('gpt-4o-mini') && " + text("Models that end") + ".includes('2027-01-14')")

	// A key without the scopes of policies and of the audit log sees neither.
	b.do("Network.clearBrowserCookies", nil)
	b.open(base + "/console/none")
	b.signIn(must(t, base, adminKey, "POST", "/api-keys/workspace/service", object{"name": "analyst", "workspace_id": "default", "scopes": []string{"analytics.view"}})["key"].(string))
	b.take()
	b.open(base + "/console/")
	b.want(heading + "==='What does the gateway do?' && document.querySelectorAll('canvas').length===4")
	_, requests := b.take()
	for _, a := range requests {
		if strings.Contains(a, "/policies/") {
			t.Error("asks ", a)
		}
	}
	if b.eval("!!("+text("Alerts")+" || "+text("Limits closest to their end")+")") != "false" {
		t.Error("limits or alerts are shown")
	}
}
