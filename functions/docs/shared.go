package docs

import "strings"

// sharedSchemas names schemas that operations on several resources have, after one place of each:
// an operation, request or a status of it, and the fields from there on. Other schemas have the
// names of their operations.
var sharedSchemas = []struct{ name, operation, body, fields string }{
	{"JsonRpcMessage", "callMcpServer", "request", ""},
	{"AgentMessage", "sendToAgent", "request", ""},
	{"OAuthError", "getMcpToken", "400", ""},
	{"ScimError", "scimListUsers", "400", ""},
	{"ModelCatalogError", "getModelPrice", "400", ""},
	{"CreatedResource", "createLabel", "200", ""},
	{"ResourceReference", "createCollection", "200", ""},
	{"ResourceVersion", "createGuardrail", "200", ""},
	{"Success", "updateMcpServerCapabilities", "200", ""},
	{"VersionRequest", "publishPrompt", "request", ""},
	{"ModelInputRequest", "createDecision", "request", ""},
	{"GuardrailReferences", "createConfig", "request", "config input_guardrails"},
	{"WorkspaceReference", "createScimWorkspaceMapping", "request", "workspace_id"},
	{"SettingOrigin", "getWorkspaceOrganisationSettings", "200", "origins request_logging.mode"},
	{"LimitAmount", "listLimits", "200", "data available"},
}

// nameSharedSchemas adds sharedSchemas to the components.
func nameSharedSchemas(doc map[string]any) {
	operations := map[string]map[string]any{}
	for _, at := range members(doc["paths"]) {
		for _, op := range members(at) {
			id, _ := members(op)["operationId"].(string)
			operations[id] = members(op)
		}
	}
	schemas := members(members(doc["components"])["schemas"])
	for _, shared := range sharedSchemas {
		op := operations[shared.operation]
		body := op["requestBody"]
		if shared.body != "request" {
			body = members(op["responses"])[shared.body]
		}
		for media, of := range members(members(body)["content"]) {
			if !strings.HasSuffix(media, "json") && !strings.HasSuffix(media, "form-urlencoded") {
				continue
			}
			schema := members(members(of)["schema"])
			for _, field := range strings.Fields(shared.fields) {
				schema = members(members(schema["properties"])[field])
				if items := members(schema["items"]); items["properties"] != nil {
					schema = items
				}
			}
			if len(schema) > 0 {
				schemas[shared.name] = schema
			}
		}
	}
}
