package vendors

import "slices"

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
		values: map[string]func(*ask) any{"documents": documents}, judge: azurePII},
	{id: "azure.shieldPrompt", name: "Azure", nest: "contentSafety", ready: azureReady, sign: signAzure, url: "{base}/contentsafety/text:shieldPrompt?api-version={apiVersion|2024-09-01}", header: azureKey,
		body: `{"userPrompt":"$prompt","documents":[]}`, values: map[string]func(*ask) any{"prompt": systemOrText}, judge: shieldPrompt},
	{id: "azure.protectedMaterial", name: "Azure", nest: "contentSafety", most: 10_000, ready: azureReady, sign: signAzure, url: "{base}/contentsafety/text:detectProtectedMaterial?api-version={apiVersion|2024-09-01}", header: azureKey,
		body: `{"text":"$text"}`, judge: flags("protectedMaterialAnalysis.detected", "protected_material")},
	{id: "bedrock.guard", name: "Bedrock", ready: awsReady, sign: signAWS, url: "{base}/guardrail/{guardrailId}/version/{guardrailVersion}/apply", each: true,
		body: `{"source":"$?INPUT|OUTPUT","content":[{"text":{"text":"$text"}}]}`, judge: bedrock},
	{id: "f5-guardrails.scan", name: "F5", url: "{calypsoUrl|https://us1.calypsoai.app}/backend/v1/scans", header: bearer, each: true,
		body: `{"input":"$text","project":"$.projectId"}`, judge: f5},
	{id: "mistral.moderateContent", name: "Mistral", url: "https://api.mistral.ai/v1/{%path}", header: bearer,
		body: `{"model":"$.model|mistral-moderation-latest","input":"$input"}`, values: map[string]func(*ask) any{"path": mistralPath, "input": mistralInput}, judge: mistral},
}

const azureKey = "Ocp-Apim-Subscription-Key: {apiKey?}"
