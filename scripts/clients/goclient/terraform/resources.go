package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Limits of keys, workspaces and providers.
var (
	usageLimits = fields{{name: "type"}, {name: "credit_limit", kind: number}, {name: "alert_threshold", kind: number}, {name: "periodic_reset"}, {name: "next_usage_reset_at"}}
	rateLimits  = attribute{name: "rate_limits", kind: objects, cleared: true, fields: fields{{name: "type", required: true}, {name: "unit", required: true}, {name: "value", kind: number, required: true}}}
	conditions  = attribute{name: "conditions", kind: objects, required: true, first: true, fields: fields{{name: "key", required: true}, {name: "value", required: true}}}
	groupBy     = attribute{name: "group_by", kind: objects, required: true, first: true, fields: fields{{name: "key", required: true}}}
	id          = attribute{name: "id", computed: true}
	slug        = attribute{name: "slug", computed: true, first: true}
	name        = attribute{name: "name", required: true}
	description = attribute{name: "description", cleared: true}
	workspace   = attribute{name: "workspace_id", first: true}
)

// apiKey are the attributes of all keys; more are those of one type.
func apiKey(more ...attribute) fields {
	return append(fields{
		id, name, description, {name: "key", computed: true}, {name: "scopes", kind: texts, required: true}, rateLimits,
		{name: "usage_limits", kind: object, fields: usageLimits, cleared: true},
		{name: "defaults", kind: object, fields: fields{{name: "metadata", kind: labels}, {name: "config_id"}, {name: "allow_config_override", kind: flag}}},
		{name: "alert_emails", kind: texts}, {name: "expires_at", kind: moment, cleared: true},
		{name: "rotation_policy", kind: object, cleared: true, fields: fields{{name: "rotation_period"}, {name: "next_rotation_at"}, {name: "key_transition_period_ms", kind: number}}},
	}, more...)
}

// kinds are the resources of the provider. A list of a reference's responses that has another name
// than in bodies, and the path of an element, are as its provider reads them.
var kinds = []kindOfResource{
	{name: "workspace", create: "/admin/workspaces", item: "/admin/workspaces/{id}", removal: []string{"name"}, imported: []string{"id"}, fields: fields{
		id, slug, name, description, {name: "defaults", kind: object, fields: fields{{name: "metadata", kind: labels}}},
		{name: "usage_limits", kind: objects, fields: usageLimits, cleared: true}, rateLimits,
	}},
	{name: "workspace_member", create: "/admin/workspaces/{workspace_id}/users", item: "/admin/workspaces/{workspace_id}/users/{user_id}", creation: member, fields: fields{
		{name: "workspace_id", required: true, first: true}, {name: "user_id", required: true, first: true}, {name: "role", required: true},
	}},
	{name: "user_invite", create: "/admin/users/invites", item: "/admin/users/invites/{id}", imported: []string{"id"}, fields: fields{
		id, {name: "email", required: true, first: true}, {name: "role", required: true, first: true}, {name: "status", computed: true}, {name: "created_at", computed: true}, {name: "expires_at", computed: true},
		{name: "workspaces", kind: objects, first: true, fields: fields{{name: "id", required: true}, {name: "role", required: true}}},
		{name: "workspace_api_key_details", kind: object, secret: true, fields: fields{{name: "scopes", kind: texts}}},
	}},
	{name: "integration", create: "/integrations", item: "/integrations/{slug}", imported: []string{"slug"}, fields: fields{
		id, slug, name, description, {name: "ai_provider_id", required: true, first: true}, {name: "key", secret: true}, {name: "status", computed: true}, workspace,
		{name: "configurations", kind: document}, {name: "type", computed: true, first: true},
		{name: "secret_mappings", kind: objects, fields: fields{{name: "target_field", required: true}, {name: "secret_reference_id", required: true}, {name: "secret_key"}}},
	}},
	{name: "integration_workspace_access", item: "/integrations/{integration_id}/workspaces", element: "workspaces", key: "workspace_id", imported: []string{"integration_id", "workspace_id"}, fields: fields{
		{name: "integration_id", required: true, first: true}, {name: "workspace_id", required: true, first: true},
		{name: "usage_limits", kind: objects, fields: usageLimits}, {name: "rate_limits", kind: objects, fields: rateLimits.fields},
	}},
	{name: "integration_model_access", item: "/integrations/{integration_id}/models", element: "models", key: "slug", imported: []string{"integration_id", "slug"}, fields: fields{
		{name: "integration_id", required: true, first: true}, {name: "slug", required: true, first: true}, {name: "is_custom", kind: flag, computed: true}, {name: "is_finetune", kind: flag, computed: true}, {name: "base_model_slug"},
		{name: "pricing_config", kind: document},
	}},
	{name: "organisation_key", create: "/api-keys/organisation/service", item: "/api-keys/{id}", imported: []string{"id"}, fields: apiKey()},
	{name: "workspace_key", create: "/api-keys/workspace/service", item: "/api-keys/{id}", imported: []string{"id"}, fields: apiKey(workspace)},
	{name: "user_key", create: "/api-keys/workspace/user", item: "/api-keys/{id}", imported: []string{"id"}, fields: apiKey(workspace, attribute{name: "user_id", required: true, first: true})},
	{name: "provider", create: "/providers", item: "/providers/{id}", query: "?workspace_id={workspace_id}", imported: []string{"workspace_id", "id"}, fields: fields{
		id, slug, name, {name: "workspace_id", required: true}, {name: "integration_id", required: true, first: true}, {name: "note"}, {name: "status", computed: true}, rateLimits,
		{name: "usage_limits", kind: object, fields: usageLimits, cleared: true},
	}},
	{name: "config", create: "/configs", item: "/configs/{slug}", imported: []string{"slug"}, fields: fields{
		id, slug, name, workspace, {name: "config", kind: document, required: true}, {name: "version_id", computed: true, changing: true}, {name: "status", computed: true},
	}},
	{name: "guardrail", create: "/guardrails", item: "/guardrails/{slug}", imported: []string{"slug"}, fields: fields{
		id, slug, name, workspace, {name: "checks", kind: document, required: true}, {name: "actions", kind: document, required: true}, {name: "version_id", computed: true, changing: true}, {name: "status", computed: true},
	}},
	{name: "usage_limits_policy", create: "/policies/usage-limits", item: "/policies/usage-limits/{id}", imported: []string{"id"}, fields: fields{
		id, {name: "name"}, workspace, conditions, groupBy, {name: "type", required: true, first: true}, {name: "credit_limit", kind: number, required: true}, {name: "alert_threshold", kind: number}, {name: "periodic_reset", first: true}, {name: "status", computed: true},
	}},
	{name: "rate_limits_policy", create: "/policies/rate-limits", item: "/policies/rate-limits/{id}", imported: []string{"id"}, fields: fields{
		id, {name: "name"}, workspace, conditions, groupBy, {name: "type", required: true, first: true}, {name: "unit", required: true}, {name: "value", kind: number, required: true}, {name: "status", computed: true},
	}},
	{name: "prompt_collection", create: "/collections", item: "/collections/{id}", imported: []string{"id"}, fields: fields{
		id, slug, name, {name: "workspace_id", required: true, first: true}, {name: "parent_collection_id", first: true}, {name: "status", computed: true},
	}},
	{name: "prompt", create: "/prompts", item: "/prompts/{slug}", imported: []string{"slug"}, fields: fields{
		id, slug, name, {name: "collection_id", required: true}, {name: "string", required: true}, {name: "parameters", kind: document, required: true}, {name: "model"}, {name: "virtual_key", required: true},
	}},
	{name: "prompt_partial", create: "/prompts/partials", item: "/prompts/partials/{slug}", imported: []string{"slug"}, fields: fields{
		id, slug, name, {name: "string", required: true}, {name: "workspace_id", first: true, secret: true}, {name: "version_description", secret: true},
	}},
	{name: "mcp_integration", create: "/mcp-integrations", item: "/mcp-integrations/{id}", imported: []string{"id"}, fields: fields{
		id, slug, name, description, {name: "url", required: true}, {name: "auth_type", required: true}, {name: "transport", required: true}, {name: "configurations", kind: document, secret: true}, workspace, {name: "status", computed: true},
	}},
	{name: "mcp_integration_workspace_access", item: "/mcp-integrations/{mcp_integration_id}/workspaces", element: "workspaces", key: "workspace_id", imported: []string{"mcp_integration_id", "workspace_id"}, fields: fields{
		{name: "mcp_integration_id", required: true, first: true}, {name: "workspace_id", required: true, first: true},
	}},
	{name: "scim_workspace_mapping", create: "/scim/workspaces", found: "/scim/workspaces", item: "/scim/workspaces/{id}", listed: "mappings", imported: []string{"id"}, fields: fields{
		id, {name: "workspace_id", required: true, first: true}, {name: "scim_group_name", first: true, secret: true}, {name: "scim_group", computed: true}, {name: "scim_group_id", computed: true}, {name: "role", required: true, first: true},
	}},
	{name: "secret_reference", create: "/secret-references", item: "/secret-references/{slug}", imported: []string{"slug"}, fields: fields{
		id, slug, name, description, {name: "manager_type", required: true, first: true}, {name: "auth_config", kind: document, required: true, secret: true}, {name: "secret_path", required: true}, {name: "secret_key", cleared: true},
		{name: "allow_all_workspaces", kind: flag}, {name: "allowed_workspaces", kind: texts}, {name: "tags", kind: labels}, {name: "created_by", computed: true},
	}},
}

// member is the body that adds a user to a workspace.
func member(planned m) any {
	return m{"users": list(m{"id": planned["user_id"], "role": planned["role"]})}
}

type m = map[string]any

func list(all ...any) []any { return all }

func n(s string) json.Number { return json.Number(s) }

// prepare creates what the examples refer to, and names the examples.
func prepare(ctx context.Context, a api) ([]example, error) {
	var failed error
	create := func(path string, body m) m {
		answer, err := a.call(ctx, "POST", path, body)
		if err != nil && failed == nil {
			failed = err
		}
		return answer
	}
	ws := create("/admin/workspaces", m{"name": "For Terraform"})
	other := create("/admin/workspaces", m{"name": "Another for Terraform"})
	integration := create("/integrations", m{"name": "For Terraform", "ai_provider_id": "openai", "key": "sk-terraform"})
	for _, w := range []m{ws} {
		if _, err := a.call(ctx, "PUT", fmt.Sprintf("/integrations/%v/workspaces", integration["slug"]), m{"workspaces": list(m{"id": w["id"], "enabled": true})}); err != nil {
			return nil, err
		}
	}
	provider := create("/providers", m{"name": "For Terraform", "workspace_id": ws["id"], "integration_id": integration["id"]})
	collection := create("/collections", m{"name": "For Terraform", "workspace_id": ws["id"]})
	config := create("/configs", m{"name": "For Terraform", "workspace_id": ws["id"], "config": m{"retry": m{"attempts": 1}}})
	mcp := create("/mcp-integrations", m{"name": "For Terraform", "url": "https://mcp.example.com/mcp", "auth_type": "none", "transport": "http"})
	reference := create("/secret-references", m{"name": "For Terraform", "manager_type": "aws_sm", "secret_path": "a/b", "auth_config": m{"aws_auth_type": "accessKey", "aws_access_key_id": "AKIA", "aws_secret_access_key": "secret", "aws_region": "us-east-1"}})
	invited := create("/admin/users/invites", m{"email": "terraform@example.com", "role": "member"})
	if failed != nil {
		return nil, failed
	}
	_, token, _ := strings.Cut(fmt.Sprint(invited["invite_link"]), "token=")
	accepted, err := (api{url: a.url}).call(ctx, "POST", "/invites/accept?token="+token, m{"first_name": "Terra", "last_name": "Form"})
	if err != nil {
		return nil, err
	}
	user := accepted["user_id"]
	create(fmt.Sprintf("/admin/workspaces/%v/users", ws["id"]), m{"users": list(m{"id": user, "role": "member"})})
	if failed != nil {
		return nil, failed
	}
	w := ws["id"]
	scopes := list("logs.view", "logs.list", "completions.write")
	checks := `[{"id": "default.wordCount", "parameters": {"minWords": 1, "maxWords": 9}}]`
	return []example{
		{kind: "workspace", about: "limits", configs: []m{
			{"name": "Managed", "description": "One", "defaults": m{"metadata": m{"team": "a"}}, "usage_limits": list(m{"credit_limit": n("100"), "periodic_reset": "monthly"}), "rate_limits": list(m{"type": "requests", "unit": "rpm", "value": n("100")})},
			{"name": "Managed", "description": "Two", "defaults": m{"metadata": m{"team": "b"}}, "usage_limits": list(m{"type": "cost", "credit_limit": n("50"), "alert_threshold": n("40")})},
			{"name": "Managed again", "defaults": m{"metadata": m{"team": "c"}}},
		}},
		{kind: "workspace_member", about: "role", configs: []m{{"workspace_id": other["id"], "user_id": user, "role": "member"}, {"workspace_id": other["id"], "user_id": user, "role": "manager"}}},
		{kind: "user_invite", about: "workspaces by id", stays: true, configs: []m{{"email": "one@example.com", "role": "member", "workspaces": list(m{"id": w, "role": "admin"}), "workspace_api_key_details": m{"scopes": scopes}}}},
		{kind: "user_invite", about: "workspaces by slug", stays: true, configs: []m{{"email": "two@example.com", "role": "member", "workspaces": list(m{"id": ws["slug"], "role": "member"})}}},
		{kind: "user_invite", about: "no workspace", stays: true, configs: []m{{"email": "three@example.com", "role": "admin"}}},
		{kind: "integration", about: "key", configs: []m{
			{"name": "OpenAI", "ai_provider_id": "openai", "key": "sk-1"},
			{"name": "OpenAI two", "ai_provider_id": "openai", "key": "sk-2", "description": "Two"},
		}},
		{kind: "integration", about: "slug, configurations", configs: []m{
			{"name": "Bedrock", "slug": "terraform-bedrock", "ai_provider_id": "bedrock", "configurations": `{"aws_auth_type": "assumedRole", "aws_region": "us-east-1", "aws_role_arn": "arn:aws:iam::123456789012:role/a"}`},
			{"name": "Bedrock", "slug": "terraform-bedrock", "ai_provider_id": "bedrock", "configurations": `{"aws_auth_type": "assumedRole", "aws_region": "us-east-2", "aws_role_arn": "arn:aws:iam::123456789012:role/a"}`},
		}},
		{kind: "integration", about: "Vertex AI with a flag", configs: []m{
			{"name": "Vertex", "ai_provider_id": "vertex-ai", "configurations": `{"vertex_auth_type": "workload", "vertex_project_id": "p", "vertex_region": "us-central1", "vertex_map_metadata": false}`},
		}},
		{kind: "integration", about: "of a workspace, with a secret reference", configs: []m{
			{"name": "Mapped", "ai_provider_id": "openai", "workspace_id": w, "secret_mappings": list(m{"target_field": "key", "secret_reference_id": reference["slug"]})},
			{"name": "Mapped", "ai_provider_id": "openai", "workspace_id": w, "secret_mappings": list(m{"target_field": "key", "secret_reference_id": reference["slug"], "secret_key": "other"})},
		}},
		{kind: "integration_workspace_access", about: "limits", configs: []m{
			{"integration_id": integration["slug"], "workspace_id": other["slug"], "usage_limits": list(m{"type": "cost", "credit_limit": n("50"), "alert_threshold": n("75")}), "rate_limits": list(m{"type": "requests", "unit": "rpd", "value": n("1000")})},
			{"integration_id": integration["slug"], "workspace_id": other["slug"], "usage_limits": list(m{"type": "cost", "credit_limit": n("80"), "periodic_reset": "weekly"}), "rate_limits": list(m{"type": "requests", "unit": "rpd", "value": n("10")})},
		}},
		{kind: "integration_model_access", about: "a listed model", configs: []m{{"integration_id": integration["slug"], "slug": "gpt-4o"}}},
		{kind: "integration_model_access", about: "a custom model with a price", configs: []m{
			{"integration_id": integration["slug"], "slug": "ft-mine", "is_custom": true, "base_model_slug": "gpt-4o", "pricing_config": `{"type": "static", "pay_as_you_go": {"request_token": {"price": 0.001}, "response_token": {"price": 0.002}}}`},
			{"integration_id": integration["slug"], "slug": "ft-mine", "is_custom": true, "base_model_slug": "gpt-4o", "pricing_config": `{"type": "static", "pay_as_you_go": {"request_token": {"price": 0.003}, "response_token": {"price": 0.002}}}`},
		}},
		{kind: "organisation_key", about: "nothing but what it needs", configs: []m{
			{"name": "Org", "scopes": list("workspaces.read", "logs.view", "logs.list")},
			{"name": "Org two", "scopes": list("workspaces.read", "logs.list"), "defaults": m{"config_id": config["slug"]}},
		}},
		{kind: "workspace_key", about: "limits and dates", configs: []m{
			{"name": "Service", "workspace_id": w, "scopes": scopes, "usage_limits": m{"credit_limit": n("10"), "periodic_reset": "monthly"}, "rate_limits": list(m{"type": "requests", "unit": "rpm", "value": n("5")}),
				"defaults": m{"metadata": m{"env": "test"}, "config_id": config["slug"], "allow_config_override": false}, "alert_emails": list("a@example.com"), "expires_at": "2036-06-01T00:00:00Z",
				"rotation_policy": m{"rotation_period": "monthly", "next_rotation_at": "2036-05-01T00:00:00Z"}},
			{"name": "Service", "workspace_id": w, "scopes": scopes, "usage_limits": m{"credit_limit": n("10"), "periodic_reset": "weekly", "next_usage_reset_at": "2036-06-01T00:00:00Z"},
				"defaults": m{"metadata": m{}, "config_id": config["slug"], "allow_config_override": true}, "alert_emails": list(), "expires_at": "2036-06-01T00:00:00Z",
				"rotation_policy": m{"next_rotation_at": "2036-06-01T00:00:00Z", "key_transition_period_ms": n("3600000")}},
			{"name": "Service", "workspace_id": w, "scopes": scopes, "defaults": m{"metadata": m{"env": "test"}, "config_id": config["slug"], "allow_config_override": true}, "alert_emails": list("b@example.com")},
		}},
		{kind: "user_key", about: "tokens", configs: []m{
			{"name": "User", "workspace_id": w, "user_id": user, "scopes": scopes, "usage_limits": m{"type": "tokens", "credit_limit": n("1000")}, "defaults": m{"metadata": m{"a": "b"}}},
			{"name": "User two", "workspace_id": w, "user_id": user, "scopes": scopes, "defaults": m{"metadata": m{"a": "b"}}},
		}},
		{kind: "provider", about: "limits", configs: []m{
			{"name": "Provider", "workspace_id": w, "integration_id": integration["slug"], "note": "One", "usage_limits": m{"credit_limit": n("5")}, "rate_limits": list(m{"type": "tokens", "unit": "rph", "value": n("1000")})},
			{"name": "Provider two", "workspace_id": w, "integration_id": integration["slug"], "note": "Two"},
		}},
		{kind: "config", about: "a strategy", configs: []m{
			{"name": "Config", "workspace_id": w, "config": fmt.Sprintf(`{"strategy": {"mode": "fallback"}, "targets": [{"provider": "@%[1]v"}, {"provider": "@%[1]v", "retry": {"attempts": 2}}]}`, provider["slug"])},
			{"name": "Config two", "workspace_id": w, "config": `{"cache": {"mode": "simple", "max_age": 60}}`},
		}},
		{kind: "guardrail", about: "as written", configs: []m{
			{"name": "Guardrail", "workspace_id": w, "checks": checks, "actions": `{"onFail": "log", "message": "Too long"}`},
			{"name": "Guardrail two", "workspace_id": w, "checks": `[{"id": "default.contains", "is_enabled": false, "parameters": {"operator": "none", "words": ["a"]}}]`, "actions": `{"deny": true, "async": false, "on_fail": {"feedback": {"value": -1}}}`},
		}},
		{kind: "usage_limits_policy", about: "of a workspace", configs: []m{
			{"name": "Policy", "workspace_id": w, "conditions": list(m{"key": "workspace_id", "value": w}), "group_by": list(m{"key": "api_key"}), "type": "cost", "credit_limit": n("100"), "alert_threshold": n("80"), "periodic_reset": "monthly"},
			{"name": "Policy two", "workspace_id": w, "conditions": list(m{"key": "workspace_id", "value": w}), "group_by": list(m{"key": "api_key"}), "type": "cost", "credit_limit": n("120.5"), "alert_threshold": n("90"), "periodic_reset": "monthly"},
		}},
		{kind: "rate_limits_policy", about: "by metadata", configs: []m{
			{"name": "Policy", "workspace_id": w, "conditions": list(m{"key": "metadata.team", "value": "a"}), "group_by": list(m{"key": "metadata.user_id"}), "type": "requests", "unit": "rpm", "value": n("10")},
			{"name": "Policy", "workspace_id": w, "conditions": list(m{"key": "metadata.team", "value": "a"}), "group_by": list(m{"key": "metadata.user_id"}), "type": "requests", "unit": "rph", "value": n("20")},
		}},
		{kind: "prompt_collection", about: "below another", configs: []m{
			{"name": "Collection", "workspace_id": w, "parent_collection_id": collection["id"]},
			{"name": "Collection two", "workspace_id": w, "parent_collection_id": collection["id"]},
		}},
		{kind: "prompt", about: "its name", configs: []m{
			{"name": "Prompt", "collection_id": collection["id"], "string": "Hello {{name}}", "parameters": `{"temperature": 0.5}`, "model": "gpt-4o", "virtual_key": provider["slug"]},
			{"name": "Prompt two", "collection_id": collection["id"], "string": "Hello {{name}}", "parameters": `{"temperature": 0.5}`, "model": "gpt-4o", "virtual_key": provider["slug"]},
		}},
		{kind: "prompt_partial", about: "its name", configs: []m{
			{"name": "Partial", "string": "Be {{tone}}.", "workspace_id": w, "version_description": "one"}, {"name": "Partial two", "string": "Be {{tone}}.", "workspace_id": w, "version_description": "one"},
		}},
		{kind: "mcp_integration", about: "headers", configs: []m{
			{"name": "MCP", "url": "https://mcp.example.com/mcp", "auth_type": "headers", "transport": "http", "workspace_id": w},
			{"name": "MCP two", "description": "Two", "url": "https://mcp.example.com/mcp", "auth_type": "none", "transport": "sse", "workspace_id": w},
		}},
		{kind: "mcp_integration_workspace_access", about: "one workspace", configs: []m{{"mcp_integration_id": mcp["id"], "workspace_id": other["id"]}}},
		{kind: "scim_workspace_mapping", about: "a new group", configs: []m{{"workspace_id": w, "scim_group_name": "Engineers", "role": "member"}}},
		{kind: "secret_reference", about: "AWS", configs: []m{
			{"name": "Reference", "slug": "terraform-reference", "manager_type": "aws_sm", "secret_path": "prod/openai", "secret_key": "api_key", "tags": m{"a": "b"}, "allow_all_workspaces": false, "allowed_workspaces": list(w),
				"auth_config": `{"aws_auth_type": "accessKey", "aws_access_key_id": "AKIA", "aws_secret_access_key": "secret", "aws_region": "us-east-1"}`},
			{"name": "Reference two", "slug": "terraform-reference", "manager_type": "aws_sm", "secret_path": "prod/openai", "tags": m{"a": "c"}, "allow_all_workspaces": false, "allowed_workspaces": list(w),
				"auth_config": `{"aws_auth_type": "accessKey", "aws_access_key_id": "AKIA", "aws_secret_access_key": "secret2", "aws_region": "us-east-1"}`},
		}},
	}, nil
}
