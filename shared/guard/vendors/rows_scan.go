package vendors

// values of rows, by name.
type values = map[string]func(*ask) any

// scanWires are vendors that scan for attacks and for what must not be revealed.
var scanWires = []row{
	{id: "acuvity.scan", name: "Acuvity", ready: acuvityReady, url: "{base}/_acuvity/scan", header: bearer,
		body:   `{"anonymization":"FixedSize","messages":"$parts","redactions":"$redactions","type":"$?Input|Output"}`,
		values: values{"redactions": acuvityRedactions}, judge: acuvity},
	{id: "akto.scan", name: "Akto", url: "https://{apiDomain}/api/validate/request", header: bearer, body: `{"payload":"$payload"}`, values: values{"payload": aktoPayload}, judge: akto},
	{id: "alibaba-cloud-ai.guard", name: "Alibaba Cloud", url: "https://green-cip.{regionId|cn-shanghai}.aliyuncs.com/", most: 2000, body: `{}`, form: alibabaForm, judge: alibaba},
	{id: "cato.scan", name: "Cato", url: "{apiBase|https://api.aisec.catonetworks.com}/fw/v1/analyze",
		header: bearer + "\nx-cato-call-id: {%trace}\nx-cato-user-email: {userEmail?}\nx-cato-gateway-key-alias: {keyAlias?}",
		body:   `{"messages":"$said"}`, values: values{"said": catoMessages, "trace": func(a *ask) any { return a.run.s.TraceID }}, judge: cato},
	{id: "crowdstrike-aidr.guardChatCompletions", name: "CrowdStrike", url: "{baseUrl}/v1/guard_chat_completions", header: bearer,
		body:   `{"guard_input":"$body","event_type":"$?input|output","app_id":"gateway","user_id":"$user","llm_provider":"$provider","model":"$model","extra_info":{"user_name":"$name"}}`,
		values: values{"name": func(a *ask) any { return some(a.run.s.Metadata["_user_name"]) }}, judge: crowdstrike},
	{id: "javelin.guardrails", name: "Javelin", url: "https://{domain}/v1/guardrails/apply", header: "x-javelin-apikey: {apiKey}\nx-javelin-application: {application}",
		body: `{"input":{"text":"$text"},"config":{},"metadata":{}}`, judge: javelin},
	{id: "lakera.guard", name: "Lakera", url: "{apiBase|https://api.lakera.ai}/v2/guard", header: bearer,
		body: `{"messages":"$list","payload":true,"breakdown":true,"project_id":"$.projectID"}`, values: values{"list": func(a *ask) any { list, _ := a.parted(); return list }}, judge: lakera},
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
