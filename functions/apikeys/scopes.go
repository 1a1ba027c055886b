package apikeys

import (
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/identity"
)

// scope describes a scope that keys may hold.
type scope struct {
	Name        string   `json:"scope" doc:"As it is listed in the scopes of a key."`
	Description string   `json:"description"`
	KeyTypes    []string `json:"key_types" doc:"Types of keys that may hold it; jwt are JSON Web Tokens of trusted issuers."`
}

// scopeRoute lists all scopes.
func scopeRoute() admin.Route {
	return admin.Route{Method: "GET", Path: "/scopes", Name: "listScopes", Scopes: []string{admin.AnyScope}, Level: admin.Shared,
		Doc:   "List the scopes that keys may hold, with the types of keys that may hold each.",
		Query: []admin.Field{{Name: "key_type", Type: admin.String, Enum: typeNames(), Doc: "Only those that keys of this type may hold."}},
		ResponseOf: func() admin.Schema {
			return admin.ListSchema(admin.SchemaOf[scope]())
		},
		Do: func(c *admin.Call) (any, error) {
			all := listScopes(c.Query.Text("key_type"))
			return admin.Members{"object": "list", "total": len(all), "data": all}, nil
		}}
}

func typeNames() []string {
	var out []string
	for _, t := range identity.KeyTypes {
		out = append(out, string(t))
	}
	return out
}

// listScopes returns the scopes that keys of a type may hold, all for "", sorted by name.
func listScopes(keyType string) []scope {
	held := map[string][]string{}
	for _, t := range identity.KeyTypes {
		for _, s := range identity.ScopesFor(t) {
			held[s] = append(held[s], string(t))
		}
	}
	out := []scope{}
	for name, types := range held {
		if keyType == "" || slices.Contains(types, keyType) {
			out = append(out, scope{name, describeScope(name), types})
		}
	}
	slices.SortFunc(out, func(a, b scope) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// describeScope returns what a scope permits; "" for an unknown scope.
func describeScope(name string) string {
	if text := specialScopes[name]; text != "" {
		return text
	}
	family, action, _ := strings.Cut(name, ".")
	of, verb := scopeObjects[family], scopeVerbs[action]
	if of == "" || verb == "" {
		return ""
	}
	return verb + " " + of + "."
}

var scopeVerbs = map[string]string{
	"create": "Create", "read": "Read single", "update": "Change", "delete": "Delete", "list": "List",
	"rotate": "Rotate and collect", "publish": "Publish versions of", "duplicate": "Duplicate", "copy": "Copy",
	"invoke": "Call", "view": "View", "export": "Export",
}

var scopeObjects = map[string]string{
	"organisation_users":              "users of the organization and invitations",
	"organisation_service_api_keys":   "API keys of the organization",
	"organisation_settings":           "settings of the organization",
	"organisation_guardrails":         "guardrails of the organization",
	"organisation_exclusions":         "exclusions from guardrails of the organization",
	"audit_logs":                      "records of the audit log",
	"plugins":                         "credentials of guardrail services",
	"deployments":                     "registered deployments",
	"secret_references":               "secret references",
	"organisation_webhooks":           "webhooks of the organization",
	"organisation_telemetry":          "telemetry targets of the organization",
	"workspaces":                      "workspaces",
	"workspace_service_api_keys":      "service keys of a workspace",
	"workspace_user_api_keys":         "user keys of a workspace",
	"workspace_users":                 "members of a workspace",
	"prompts":                         "prompts, partials, collections and labels",
	"configs":                         "configs",
	"guardrails":                      "guardrails of a workspace",
	"virtual_keys":                    "virtual keys",
	"providers":                       "saved providers",
	"policies":                        "usage and rate limit policies",
	"organisation_integrations":       "integrations of the organization",
	"organisation_mcp_integrations":   "MCP integrations of the organization",
	"organisation_agent_integrations": "agent integrations of the organization",
	"workspace_integrations":          "integrations of a workspace",
	"workspace_mcp_integrations":      "MCP integrations of a workspace",
	"workspace_agent_integrations":    "agent integrations of a workspace",
	"workspace_webhooks":              "webhooks of a workspace",
	"workspace_telemetry":             "telemetry targets of a workspace",
	"mcp_servers":                     "MCP servers",
	"mcp":                             "MCP servers through the gateway",
	"agent_servers":                   "agent servers",
	"agent_integration_skills":        "skills of agent integrations",
	"agent_server_skills":             "skills of agent servers",
	"agent_server_user_access":        "access of users to agent servers",
	"agents":                          "agents through the gateway",
	"analytics":                       "analytics",
	"logs":                            "logs",
}

// specialScopes are the scopes with actions that do not follow the rule.
var specialScopes = map[string]string{
	"secret_references.use": "Use secret references in secret mappings; secret_references.read includes it.",
	"prompts.render":        "Render prompts and run them.",
	"guardrails.invoke":     "Run guardrails on given content.",
	"completions.write":     "Call models, and use files, batches and fine-tuning.",
	"completions.read":      "Read results of model calls, for tokens that may not call models.",
	"models.list":           "List the models that the key may call.",
	"feedbacks.read":        "Read feedback.",
	"feedbacks.write":       "Send feedback on requests.",
	"logs.list":             "List logs.",
	"logs.view":             "Read single logs with their bodies.",
	"logs.export":           "Export logs.",
	"logs.read":             "Read logs of requests made outside the gateway.",
	"logs.write":            "Record requests made outside the gateway.",
}
