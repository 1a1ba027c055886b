package vendors

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// flags fails if a field is true.
func flags(path, name string) func(*vendorCall, response) {
	return func(a *vendorCall, resp response) {
		if resp.flag(path) {
			a.run.found(name)
		}
	}
}

// acts fails if the action is not the one that passes.
func acts(path, passes string, fails ...string) func(*vendorCall, response) {
	return func(a *vendorCall, resp response) {
		if word := resp.word(path, append(fails, passes)...); word != passes {
			a.run.found(label(word))
		}
	}
}

func contentSafety(a *vendorCall, resp response) {
	for _, c := range resp.list("categoriesAnalysis") {
		name, severity := label(c.text("category")), c.number("severity")
		a.run.score(name, severity)
		if severity >= a.run.number("severity", 2) {
			a.run.found(name)
		}
	}
	for _, m := range resp.listIf("blocklistsMatch") {
		a.run.found(label("blocklist/" + m.text("blocklistName")))
	}
}

// documents returns the parts of the text, named by their numbers.
func documents(a *vendorCall) any {
	language, _ := a.run.params["language"].(string)
	if language == "" {
		language = "en"
	}
	out := []any{}
	for i, t := range a.run.s.Texts {
		if t != "" {
			out = append(out, map[string]any{"id": strconv.Itoa(i), "language": language, "text": t})
		}
	}
	return out
}

// azurePII reads the entities of each document. A document that was not judged makes the
// response an error.
func azurePII(a *vendorCall, resp response) {
	left := len(documents(a).([]any))
	for _, d := range resp.list("results.documents") {
		part, err := strconv.Atoi(d.text("id"))
		if err != nil || part < 0 || part >= len(a.run.s.Texts) {
			*resp.bad = true
			return
		}
		left--
		redacted := d.text("redactedText")
		for _, e := range d.list("entities") {
			a.run.redact(part, redacted, label(e.text("category")))
		}
	}
	*resp.bad = *resp.bad || left > 0
}

// systemOrText returns the system prompt if there is one, otherwise the text.
func systemOrText(a *vendorCall) any {
	system := ""
	for _, m := range a.conversation() {
		if m.Role == "system" || m.Role == "developer" {
			if system != "" {
				system += "\n"
			}
			system += m.Content
		}
	}
	if system == "" {
		return a.text
	}
	return system
}

func shieldPrompt(a *vendorCall, resp response) {
	if resp.flag("userPromptAnalysis.attackDetected") {
		a.run.found("prompt_attack")
	}
	for _, d := range resp.listIf("documentsAnalysis") {
		if d.flag("attackDetected") {
			a.run.found("document_attack")
		}
	}
}

// f5 reads the outcome for one part. Masking does not help against a block.
func f5(a *vendorCall, resp response) {
	outcome := resp.word("result.outcome", "cleared", "flagged", "redacted", "blocked")
	redacted := optional[string](resp, "redactedInput")
	switch {
	case outcome == "cleared":
	case outcome == "blocked" || redacted == "":
		a.run.found(outcome)
	default:
		a.run.redact(a.part, redacted, outcome)
	}
}

// mistralPath returns a separate path for conversations.
func mistralPath(a *vendorCall) any {
	if a.talks() {
		return "chat/moderations"
	}
	return "moderations"
}

// talks reports whether the request is a conversation.
func (a *vendorCall) talks() bool {
	return a.run.s.Kind == "chatComplete" || a.run.s.Kind == "messages"
}

func mistralInput(a *vendorCall) any {
	if a.talks() {
		return []any{a.withResponse()}
	}
	return []string{a.text}
}

func mistral(a *vendorCall, resp response) {
	want := a.run.listed("categories")
	results := resp.list("results")
	*resp.bad = *resp.bad || len(results) == 0
	for _, one := range results {
		names, values := one.members("categories", true)
		for i, name := range names {
			if values[i].flag("") && slices.Contains(want, name) {
				a.run.found(name)
			}
		}
		names, values = one.members("category_scores", false)
		for i, name := range names {
			if slices.Contains(want, name) {
				a.run.score(name, values[i].number(""))
			}
		}
	}
}

// values of rows, by name.
type values = map[string]func(*vendorCall) any

// scanWires are vendors that scan for attacks and for what must not be revealed.
var scanWires = []row{
	{id: "acuvity.scan", name: "Acuvity", ready: acuvityReady, url: "{base}/_acuvity/scan", header: bearer,
		body:   `{"anonymization":"FixedSize","messages":"$parts","redactions":"$redactions","type":"$?Input|Output"}`,
		values: values{"redactions": acuvityRedactions}, judge: acuvity},
	{id: "akto.scan", name: "Akto", url: "https://{apiDomain}/api/validate/request", header: bearer, body: `{"payload":"$payload"}`, values: values{"payload": aktoPayload}, judge: akto},
	{id: "alibaba-cloud-ai.guard", name: "Alibaba Cloud", url: "https://green-cip.{regionId|cn-shanghai}.aliyuncs.com/", most: 2000, body: `{}`, form: alibabaForm, judge: alibaba},
	{id: "cato.scan", name: "Cato", url: "{apiBase|https://api.aisec.catonetworks.com}/fw/v1/analyze",
		header: bearer + "\nx-cato-call-id: {%trace}\nx-cato-user-email: {userEmail?}\nx-cato-gateway-key-alias: {keyAlias?}",
		body:   `{"messages":"$said"}`, values: values{"said": catoMessages, "trace": func(a *vendorCall) any { return a.run.s.TraceID }}, judge: cato},
	{id: "crowdstrike-aidr.guardChatCompletions", name: "CrowdStrike", url: "{baseUrl}/v1/guard_chat_completions", header: bearer,
		body:   `{"guard_input":"$body","event_type":"$?input|output","app_id":"gateway","user_id":"$user","llm_provider":"$provider","model":"$model","extra_info":{"user_name":"$name"}}`,
		values: values{"name": func(a *vendorCall) any { return some(a.run.s.Metadata["_user_name"]) }}, judge: crowdstrike},
	{id: "javelin.guardrails", name: "Javelin", url: "https://{domain}/v1/guardrails/apply", header: "x-javelin-apikey: {apiKey}\nx-javelin-application: {application}",
		body: `{"input":{"text":"$text"},"config":{},"metadata":{}}`, judge: javelin},
	{id: "lakera.guard", name: "Lakera", url: "{apiBase|https://api.lakera.ai}/v2/guard", header: bearer,
		body: `{"messages":"$list","payload":true,"breakdown":true,"project_id":"$.projectID"}`, values: values{"list": func(a *vendorCall) any { list, _ := a.parted(); return list }}, judge: lakera},
	{id: "lasso.classify", name: "Lasso", url: "{apiEndpoint|https://server.lasso.security}/gateway/v3/classify", header: "lasso-api-key: {apiKey}",
		body: `{"messages":"$talk","messageType":"$?PROMPT|COMPLETION","sessionId":"$.conversationId","userId":"$.userId"}`, judge: lasso},
	{id: "pangea.textGuard", name: "Pangea", url: "https://ai-guard.{domain}/v1/text/guard", header: bearer,
		body: `{"text":"$text","recipe":"$.recipe","debug":"$.debug","overrides":"$.overrides"}`, judge: pangea},
	{id: "pangea.pii", name: "Pangea", url: "https://redact.{domain}/v1/redact_structured", header: bearer, body: `{"data":"$parts"}`, judge: pangeaPII},
	{id: "panw-prisma-airs.intercept", name: "Prisma AIRS", url: "https://service.api.aisecurity.paloaltonetworks.com/v1/scan/sync/request", header: "x-pan-token: {AIRS_API_KEY}",
		body:   `{"tr_id":"$trace","ai_profile":"$profile","metadata":{"ai_model":"$.ai_model|unknown-model","app_user":"$.app_user|gateway-gateway","app_name":"$app"},"contents":"$contents"}`,
		values: values{"profile": airsProfile, "app": airsApp, "contents": airsContents}, judge: airs},
	{id: "pillar.scanPrompt", name: "Pillar", url: "https://api.pillarseclabs.com/api/v1/scan/prompt", header: bearer, body: pillarBody, values: values{"scanners": pillarScanners}, judge: pillar},
	{id: "pillar.scanResponse", name: "Pillar", url: "https://api.pillarseclabs.com/api/v1/scan/response", header: bearer, body: pillarBody, values: values{"scanners": pillarScanners}, judge: pillar},
	{id: "promptfoo.guard", name: "Promptfoo", url: "https://api.promptfoo.dev/v1/guard", body: `{"input":"$text"}`, judge: promptfooGuard},
	{id: "promptfoo.pii", name: "Promptfoo", url: "https://api.promptfoo.dev/v1/pii", body: `{"input":"$text"}`, each: true, judge: promptfooPII},
	{id: "promptfoo.harm", name: "Promptfoo", url: "https://api.promptfoo.dev/v1/harm", body: `{"input":"$text"}`, judge: promptfooHarm},
	{id: "promptsecurity.protectPrompt", name: "Prompt Security", arg: "prompt", url: "https://{apiDomain}/api/protect", header: "APP-ID: {apiKey}", each: true,
		body: `{"prompt":"$text","user":"$.user","user_groups":"$.userGroups","policy":"$.policy"}`, judge: promptSecurity},
	{id: "promptsecurity.protectResponse", name: "Prompt Security", arg: "response", url: "https://{apiDomain}/api/protect", header: "APP-ID: {apiKey}", each: true,
		body: `{"response":"$text","user":"$.user","user_groups":"$.userGroups","policy":"$.policy"}`, judge: promptSecurity},
	{id: "zscaler.scan", name: "Zscaler", url: "{baseUrl|https://api.zseclipse.net}/v1/detection/execute-policy", header: "Authorization: Bearer {apiKey/zscalerApiKey}",
		body: `{"policyId":"$policy","direction":"$?IN|OUT","content":"$text"}`, values: values{"policy": zscalerPolicy}, judge: zscaler},
}

const pillarBody = `{"message":"$text","scanners":"$scanners"}`

const bearer = "Authorization: Bearer {apiKey}"

// wires are the checks. Their formats come from the vendors' documentation, SDKs and public
// gateway plugins. Rows note what these leave open.
var wires = slices.Concat(firstWires, scanWires, judgeWires, searchWires)

var firstWires = []row{
	{id: "aporia.validateProject", name: "Aporia", url: "{apiEndpoint|https://gr-prd.aporia.com}/{projectID}/validate", header: "X-APORIA-API-KEY: {apiKey}",
		body:  `{"messages":"$messages","explain":true,"validation_target":"$?prompt|response","response":"$answered"}`,
		judge: acts("action", "passthrough", "modify", "rephrase", "block")},
	{id: "azure.contentSafety", name: "Azure", nest: "contentSafety", most: 10_000, ready: azureReady, sign: signAzure, url: "{base}/contentsafety/text:analyze?api-version={apiVersion|2024-11-01}", header: azureKey,
		body: `{"text":"$text","categories":"$.categories","blocklistNames":"$.blocklistNames"}`, judge: contentSafety},
	{id: "azure.pii", name: "Azure", nest: "pii", ready: azureReady, sign: signAzure, url: "{base}/language/:analyze-text?api-version={apiVersion|2024-11-01}", header: azureKey,
		body:   `{"kind":"PiiEntityRecognition","parameters":{"domain":"$.domain","modelVersion":"$.modelVersion|latest","piiCategories":"$.piiCategories"},"analysisInput":{"documents":"$documents"}}`,
		values: map[string]func(*vendorCall) any{"documents": documents}, judge: azurePII},
	{id: "azure.shieldPrompt", name: "Azure", nest: "contentSafety", ready: azureReady, sign: signAzure, url: "{base}/contentsafety/text:shieldPrompt?api-version={apiVersion|2024-09-01}", header: azureKey,
		body: `{"userPrompt":"$prompt","documents":[]}`, values: map[string]func(*vendorCall) any{"prompt": systemOrText}, judge: shieldPrompt},
	{id: "azure.protectedMaterial", name: "Azure", nest: "contentSafety", most: 10_000, ready: azureReady, sign: signAzure, url: "{base}/contentsafety/text:detectProtectedMaterial?api-version={apiVersion|2024-09-01}", header: azureKey,
		body: `{"text":"$text"}`, judge: flags("protectedMaterialAnalysis.detected", "protected_material")},
	{id: "bedrock.guard", name: "Bedrock", ready: awsReady, sign: signAWS, url: "{base}/guardrail/{guardrailId}/version/{guardrailVersion}/apply", each: true,
		body: `{"source":"$?INPUT|OUTPUT","content":[{"text":{"text":"$text"}}]}`, judge: bedrock},
	{id: "f5-guardrails.scan", name: "F5", url: "{calypsoUrl|https://us1.calypsoai.app}/backend/v1/scans", header: bearer, each: true,
		body: `{"input":"$text","project":"$.projectId"}`, judge: f5},
	{id: "mistral.moderateContent", name: "Mistral", url: "https://api.mistral.ai/v1/{%path}", header: bearer,
		body: `{"model":"$.model|mistral-moderation-latest","input":"$input"}`, values: map[string]func(*vendorCall) any{"path": mistralPath, "input": mistralInput}, judge: mistral},
}

const azureKey = "Ocp-Apim-Subscription-Key: {apiKey?}"

// response is a part of a vendor's response. A value of an unexpected type invalidates the entire
// response: all parts share bad.
type response struct {
	v   any
	bad *bool
}

// get returns the field at a path such as a.b.c, or the entire value for "". If it does not
// exist, the result has no value.
func (a response) get(path string) response {
	if path == "" {
		return a
	}
	for name := range strings.SplitSeq(path, ".") {
		object, _ := a.v.(map[string]any)
		a.v = object[name]
	}
	return a
}

func (a response) has(path string) bool { return a.get(path).v != nil }

// value returns a field that must have a type.
func value[T any](a response, path string) T {
	v, ok := a.get(path).v.(T)
	if !ok {
		*a.bad = true
	}
	return v
}

// optional returns a field that may be absent or null.
func optional[T any](a response, path string) (v T) {
	if a.has(path) {
		return value[T](a, path)
	}
	return v
}

func (a response) flag(path string) bool      { return value[bool](a, path) }
func (a response) text(path string) string    { return value[string](a, path) }
func (a response) number(path string) float64 { return value[float64](a, path) }

// list returns the entries of a list.
func (a response) list(path string) []response { return a.entries(value[[]any](a, path)) }

// listIf returns the entries of a list that may be absent.
func (a response) listIf(path string) []response { return a.entries(optional[[]any](a, path)) }

func (a response) entries(list []any) []response {
	out := make([]response, len(list))
	for i, v := range list {
		out[i] = response{v, a.bad}
	}
	return out
}

// members returns the fields of an object in the order of their names. If the object is
// optional, an absent one has none.
func (a response) members(path string, needed bool) (names []string, values []response) {
	var object map[string]any
	if needed {
		object = value[map[string]any](a, path)
	} else {
		object = optional[map[string]any](a, path)
	}
	names = slices.Sorted(maps.Keys(object))
	for _, name := range names {
		values = append(values, response{object[name], a.bad})
	}
	return names, values
}

// word returns a string that must be one of a few.
func (a response) word(path string, allowed ...string) string {
	s := a.text(path)
	if !slices.Contains(allowed, s) {
		*a.bad = true
	}
	return s
}

// label returns a string of the vendor if it is short enough to be shown.
func label(s string) string {
	if len(s) > 100 {
		s = strings.ToValidUTF8(s[:100], "")
	}
	return s
}
