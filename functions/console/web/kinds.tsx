// The kinds of resources that the console lists, shows and edits.
import { call, now, ofOrganisation, room } from "./api";
import { count, date, dollars, millis, since, title } from "./format";
import type { Field } from "./form";
import { Badge, Column, Fact, lazy, Link } from "./ui";

const details = () => import("./details"), routing = () => import("./routing"), prompts = () => import("./prompts"), providers = () => import("./providers"), tools = () => import("./tools"), organization = () => import("./organization");

export type Kind = {
  at: string;          // address below /console/
  path: string;        // of the API
  question: string;    // heading of the list
  one: string;
  tab: string;
  id: (row: any) => string;
  scopes: string; role?: string; // family of the scopes, and least role to see them
  families?: string[]; // more families of scopes
  writeRole?: string;
  scopeOf?: (action: string) => string; // instead of a family of scopes
  where: "workspace" | "organisation" | "either";
  columns: Column<any>[];
  fields: Field[];
  without?: string[];  // of create, update, delete
  unwrap?: (body: any) => any;
  create?: (body: any) => [string, any]; // path and body of a creation
  change?: (body: any) => any; // body of a change, from the changed fields
  made?: (answer: any) => { secret?: string; name?: string } | undefined;
  remove?: (row: any) => any; // body of a deletion
  detail?: (p: { row: any; again: () => void }) => any;
  empty: string;
  beside?: (signal: AbortSignal) => Promise<(row: any) => void>; // a call beside the list, which adds to its rows
};

const name = (k: string): Column<any> => ["Name", (r) => <Link to={"/console/" + k + "/" + encodeURIComponent(kinds.find((x) => x.at === k)!.id(r))}>{r.name || r.email || r.id}</Link>];
const state: Column<any> = ["Status", (r) => <Badge text={r.status ?? "active"} />];
const changed: Column<any> = ["Changed", (r) => <span title={r.last_updated_at}>{since(r.last_updated_at)}</span>];
const text = (n: string, label: string, more: Partial<Field> = {}): Field => ({ name: n, label, ...more });
const named = text("name", "Name", { required: true });
const described = text("description", "Description");
const slug: Column<any> = ["Slug", (r) => <code>{r.slug}</code>];

export const limitText = (l: any): string => !l ? "–" : l.type === "cost" ? dollars(l.credit_limit) : count(l.credit_limit) + " " + (l.type ?? "");
const keyTypes: [string, string][] = [["workspace/service", "Service key of a workspace"], ["workspace/user", "Key of a user"], ["organisation/service", "Admin key of the organization"]];
const conditions = text("conditions", "Conditions", { type: "json", required: true, start: [{ key: "workspace_id", value: "" }], help: "Requests that the limit is for, such as [{\"key\": \"api_key\", \"value\": \"…\"}]." });
const grouping = text("group_by", "Counted separately for each", { type: "json", start: [{ key: "api_key" }], help: "Such as [{\"key\": \"api_key\"}] or [{\"key\": \"metadata.team\"}]." });

const severalKeys = text("credentials", "Several credentials", { type: "json", help: "Instead of one key: [{\"label\": \"first\", \"key\": \"…\", \"weight\": 1}]. Requests are shared by weight; a stored key stays when it is left out." });
const exported = ["id", "created_at", "ai_model", "ai_org", "virtual_key", "api_key_id", "response_status_code", "response_time", "req_units", "res_units", "cost_usd", "cache_status", "trace_id", "metadata"];
const settingsScope = (action: string) => "organisation_settings." + (action === "list" || action === "read" ? "read" : "update");
const lastDay = () => { const to = new Date(now()); return { time_of_generation_min: new Date(to.getTime() - 86400_000).toISOString(), time_of_generation_max: to.toISOString() }; };

export const kinds: Kind[] = [
  {
    at: "logs/exports", path: "/logs/exports", question: "What was exported?", one: "export", tab: "Exports", id: (r) => r.id, scopes: "logs", scopeOf: () => "logs.export", where: "workspace", without: ["delete"],
    columns: [["Description", (r) => <Link to={"/console/logs/exports/" + r.id}>{r.description || r.id}</Link>], ["Status", (r) => <Badge text={r.status} tone={r.status === "success" || r.status === "completed" ? "good" : r.status === "failed" ? "bad" : "wait"} />], ["Format", (r) => r.format], ["Rows", (r) => count(r.rows ?? r.total), "n"], ["Created", (r) => date(r.created_at)]],
    fields: [text("description", "Description"), text("format", "Format", { type: "select", options: [["jsonl", "JSON lines"], ["csv", "CSV"], ["parquet", "Parquet"]], start: "jsonl" }), text("filters", "Filters", { type: "json", required: true, startOf: () => ({ ...lastDay(), ...JSON.parse(new URLSearchParams(location.search).get("filters") ?? "{}") }), help: "Those of GET /v1/logs." }), text("requested_data", "Fields", { type: "lines", required: true, start: exported, help: "One on each line. request and response are the bodies." })],
    detail: lazy(organization, "ExportDetail"), empty: "Nothing was exported yet. An export writes logs into a file.",
  },
  {
    at: "keys", path: "/api-keys", question: "Who may call the gateway?", one: "API key", tab: "Keys", id: (r) => r.id, scopes: "workspace_service_api_keys", families: ["workspace_user_api_keys", "organisation_service_api_keys"], writeRole: "manager", where: "either",
    columns: [name("keys"), ["Type", (r) => r.type], state, ["Secret", (r) => <code>{r.key}</code>], ["Limit", (r) => limitText(r.usage_limits), "n"], ["Last used", (r) => r.last_used_at ? <span title={r.last_used_at}>{since(r.last_used_at)}</span> : "–"], ["Expires", (r) => r.expires_at ? since(r.expires_at) : "never"]],
    fields: [
      named, text("kind", "Type", { type: "select", options: keyTypes, required: true, fixed: true, start: "workspace/service" }), described,
      text("user_id", "Id of the user", { fixed: true, required: true, when: (v) => v.kind === "workspace/user", help: "The user collects the secret." }),
      text("scopes", "Scopes", { type: "lines", required: true, start: ["completions.write", "models.list"], help: "One on each line. A key never gets more than its creator has." }),
      text("usage_limits.credit_limit", "Budget in dollars", { type: "number", help: "Requests are rejected when it is spent." }),
      text("expires_at", "Expires (UTC)", { type: "date" }),
    ],
    create: ({ kind, ...b }) => { if (b.usage_limits) b.usage_limits.type = "cost"; return ["/api-keys/" + kind, kind === "organisation/service" ? b : { workspace_id: room(), ...b }]; },
    made: (a) => a.key ? { secret: a.key, name: "The new API key" } : { name: "The user collects the secret of this key." }, detail: lazy(details, "KeyDetail"),
    empty: "There is no API key yet. Create one, and send a request with it.",
  },
  {
    at: "budgets", path: "/policies/usage-limits", question: "What may be spent?", one: "usage limit", tab: "Usage limits", id: (r) => r.id, scopes: "policies", writeRole: "manager", where: "workspace",
    columns: [name("budgets"), ["Limit", (r) => limitText(r), "n"], ["Counts", (r) => r.type], ["When reached", (r) => r.on_exceeded], ["Next reset", (r) => (r.next_reset_at ?? r.next_usage_reset_at) ? <span title={(r.next_reset_at ?? r.next_usage_reset_at)}>{since((r.next_reset_at ?? r.next_usage_reset_at))}</span> : "never"], state],
    fields: [
      text("name", "Name"), text("type", "Counts", { type: "select", required: true, options: [["cost", "Cost in dollars"], ["tokens", "Tokens"], ["requests", "Requests"]], start: "cost" }),
      text("credit_limit", "Limit", { type: "number", required: true }), text("on_exceeded", "When reached", { type: "select", options: [["deny", "Reject requests"], ["audit", "Only record it"], ["fallback", "Use a cheaper model"]] }),
      text("fallback_model", "Fallback model", { when: (v) => v.on_exceeded === "fallback" }), text("periodic_reset", "Reset", { type: "select", options: [["weekly", "Every Monday"], ["monthly", "On the 1st of a month"]] }),
      conditions, grouping, text("temporary_raise", "Temporary raise", { type: "json", help: "Such as {\"amount\": 20, \"until\": \"2027-01-01T00:00:00Z\"}." }), described,
    ],
    detail: lazy(details, "BudgetDetail"), empty: "There is no usage limit yet. Without one, only limits of keys and workspaces bound what is spent.",
  },
  {
    at: "budgets/rates", path: "/policies/rate-limits", question: "How fast may it go?", one: "rate limit", tab: "Rate limits", id: (r) => r.id, scopes: "policies", writeRole: "manager", where: "workspace",
    columns: [name("budgets/rates"), ["Limit", (r) => count(r.value) + " " + r.type, "n"], ["Per", (r) => ({ rpm: "minute", rph: "hour", rpd: "day", rpw: "week" } as any)[r.unit]], ["For", (r) => r.target], state, changed],
    fields: [
      text("name", "Name"), text("type", "Counts", { type: "select", required: true, options: [["requests", "Requests"], ["tokens", "Tokens"]], start: "requests" }), text("value", "Limit", { type: "number", required: true }),
      text("unit", "Per", { type: "select", required: true, options: [["rpm", "Minute"], ["rph", "Hour"], ["rpd", "Day"], ["rpw", "Week"]], start: "rpm" }),
      text("target", "For", { type: "select", options: [["llm", "Models"], ["mcp_tools", "Tools"]] }), conditions, grouping,
    ],
    detail: lazy(details, "RateDetail"), empty: "There is no rate limit yet. A limit keeps one caller from using up what all share.",
  },
  {
    at: "providers", path: "/virtual-keys", question: "Which providers can be called?", one: "provider", tab: "Providers", id: (r) => r.slug, scopes: "virtual_keys", families: ["providers"], writeRole: "manager", where: "workspace",
    columns: [name("providers"), ["Call it as", (r) => <code>@{r.slug}</code>], ["Type", (r) => r.ai_provider_name], ["Health", (r) => <span title={r.health?.cause ?? ""}><Badge text={r.health?.status ?? "unknown"} /></span>], ["Failures", (r) => r.health?.calls ? count(r.health.failures) + " of " + count(r.health.calls) : "–", "n"], ["Latency", (r) => millis(r.health?.latency_ms), "n"], ["Limit", (r) => limitText(r.usage_limits), "n"], state, changed],
    beside: async (signal) => {
      const got = await call("/providers/health", { workspace_id: room() }, { signal });
      const known = new Map<string, any>(got.data.map((h: any) => [h.slug, h]));
      return (row) => { row.health = known.get(row.slug); };
    },
    detail: lazy(providers, "ProviderDetail"),
    fields: [
      named, text("ai_provider_id", "Type", { required: true, fixed: true, placeholder: "openai", help: "Such as openai, anthropic, google, bedrock or azure-openai." }), text("key", "API key of the provider", { type: "secret" }), severalKeys,
      text("slug", "Slug", { fixed: true, help: "Requests name it as @slug." }), text("note", "Note"), text("usage_limits.credit_limit", "Budget in dollars", { type: "number" }), text("expires_at", "Expires (UTC)", { type: "date" }),
    ],
    create: ({ ai_provider_id, ...b }) => { if (b.usage_limits) b.usage_limits.type = "cost"; return ["/virtual-keys", { workspace_id: room(), provider: ai_provider_id, ...b }]; },
    empty: "There is no provider yet. Save the credentials of one, then name it in requests.",
  },
  {
    at: "providers/integrations", path: "/integrations", question: "Which credentials are stored?", one: "integration", tab: "Integrations and models", id: (r) => r.slug, scopes: "organisation_integrations", families: ["workspace_integrations"], writeRole: "manager", where: "either",
    columns: [name("providers/integrations"), ["Type", (r) => r.ai_provider_id], slug, ["Reach", (r) => r.type], state, changed],
    fields: [named, text("ai_provider_id", "Type", { required: true, fixed: true, placeholder: "openai" }), text("key", "API key of the provider", { type: "secret" }), severalKeys, text("slug", "Slug", { fixed: true }), described, text("configurations", "Configuration", { type: "json" })],
    detail: lazy(providers, "IntegrationDetail"), empty: "There is no integration yet. It holds the credentials that several workspaces share.",
  },
  {
    at: "configs", path: "/configs", question: "How are requests routed?", one: "config", tab: "Configs", id: (r) => r.slug, scopes: "configs", writeRole: "manager", where: "workspace", unwrap: (b) => b.data,
    columns: [name("configs"), slug, ["Default", (r) => r.is_default ? "yes" : "no"], state, changed],
    fields: [named, text("config", "Config", { type: "json", required: true, start: { strategy: { mode: "fallback" }, targets: [{ provider: "@mock" }, { provider: "@mock", override_params: { model: "gpt-4o" } }], retry: { attempts: 2 } } })],
    detail: lazy(routing, "ConfigDetail"), empty: "There is no config yet. A config sets targets, fallbacks, retries, caching and guardrails of requests.",
  },
  {
    at: "prompts", path: "/prompts", question: "Which prompts are in use?", one: "prompt", tab: "Prompts", id: (r) => r.slug, scopes: "prompts", writeRole: "manager", where: "workspace",
    columns: [name("prompts"), slug, ["Model", (r) => r.model ?? "–"], state, changed],
    fields: [
      named, text("collection_id", "Collection", { required: true, fixed: true, help: "Id or slug of a collection." }), text("string", "Template", { type: "area", required: true, help: "Variables stand in {{double braces}}." }),
      text("parameters", "Variables", { type: "json", required: true, start: {} }), text("virtual_key", "Provider", { required: true, placeholder: "mock" }), text("model", "Model", { placeholder: "gpt-4o-mini" }), text("version_description", "What changed"),
    ],
    change: (b) => ({ patch: true, ...b }), detail: lazy(prompts, "PromptDetail"), empty: "There is no prompt yet. Create a collection first, then a prompt in it.",
  },
  {
    at: "prompts/partials", path: "/prompts/partials", question: "Which parts do prompts share?", one: "partial", tab: "Partials", id: (r) => r.slug, scopes: "prompts", writeRole: "manager", where: "workspace",
    columns: [name("prompts/partials"), slug, state, changed], fields: [named, text("string", "Text", { type: "area", required: true }), text("version_description", "What changed")], empty: "There is no partial yet. Prompts include partials by name.",
  },
  {
    at: "prompts/collections", path: "/collections", question: "How are prompts grouped?", one: "collection", tab: "Collections", id: (r) => r.slug, scopes: "prompts", writeRole: "manager", where: "workspace",
    columns: [name("prompts/collections"), slug, ["Prompts", (r) => count(r.collection_details?.prompts_count), "n"], state, changed], fields: [named], empty: "There is no collection yet.",
  },
  {
    at: "prompts/labels", path: "/labels", question: "Which labels do versions have?", one: "label", tab: "Labels", id: (r) => r.id, scopes: "prompts", writeRole: "manager", where: "workspace",
    columns: [["Name", (r) => <Link to={"/console/prompts/labels/" + r.id}>{r.name}</Link>], ["Description", (r) => r.description || "–"], ["For all workspaces", (r) => r.is_universal ? "yes" : "no"], state, changed], fields: [named, described], empty: "There is no label yet. Requests name the version with a label, such as production, and the label moves to another version.",
  },
  {
    at: "guardrails", path: "/guardrails", question: "What is checked?", one: "guardrail", tab: "Guardrails", id: (r) => r.slug, scopes: "guardrails", families: ["organisation_guardrails"], writeRole: "manager", where: "workspace",
    columns: [name("guardrails"), slug, state, changed],
    fields: [named, text("checks", "Checks", { type: "json", required: true, start: [{ id: "default.contains", parameters: { operator: "none", words: ["password"] } }] }), text("actions", "Actions", { type: "json", required: true, start: { deny: true } })],
    detail: lazy(details, "GuardrailDetail"), empty: "There is no guardrail yet. A guardrail checks requests and responses, and can reject them.",
  },
  {
    at: "guardrails/mcp", path: "/mcp-servers", question: "Which tools can be used?", one: "MCP server", tab: "MCP servers", id: (r) => r.slug ?? r.id, scopes: "mcp_servers", writeRole: "manager", where: "workspace",
    columns: [name("guardrails/mcp"), slug, state, changed],
    fields: [named, text("mcp_integration_id", "MCP integration", { fixed: true, help: "Id or slug of an MCP integration." }), text("slug", "Slug", { fixed: true }), described],
    detail: lazy(tools, "MCPDetail"), empty: "There is no MCP server yet. Register one as an MCP integration, then offer it here.",
  },
  {
    at: "guardrails/mcp-integrations", path: "/mcp-integrations", question: "Which MCP servers are registered?", one: "MCP integration", tab: "MCP integrations", id: (r) => r.slug ?? r.id, scopes: "organisation_mcp_integrations", families: ["workspace_mcp_integrations"], writeRole: "manager", where: "either",
    columns: [name("guardrails/mcp-integrations"), ["Address", (r) => r.url], ["Sync", (r) => <Badge text={r.sync_status ?? "pending"} />], state, changed],
    fields: [named, text("url", "Address", { required: true, placeholder: "https://example.com/mcp" }), text("transport", "Transport", { type: "select", required: true, options: [["http", "Streamable HTTP"], ["sse", "SSE"]], start: "http" }), text("auth_type", "Sign-in", { type: "select", required: true, options: [["none", "None"], ["headers", "Headers"], ["oauth_auto", "OAuth"], ["oauth_client_credentials", "OAuth client credentials"]], start: "none" }), text("configurations", "Configuration", { type: "json" }), described],
    empty: "No MCP server is registered yet.",
  },
  {
    at: "guardrails/agents", path: "/agent-servers", question: "Which agents can be called?", one: "agent", tab: "Agents", id: (r) => r.slug ?? r.id, scopes: "agent_servers", writeRole: "manager", where: "workspace",
    columns: [name("guardrails/agents"), slug, state, changed], fields: [named, text("agent_integration_id", "Agent integration", { required: true, fixed: true }), text("slug", "Slug", { fixed: true }), described], empty: "There is no agent yet. Register one as an agent integration, then offer it here.",
  },
  {
    at: "guardrails/agent-integrations", path: "/agent-integrations", question: "Which agents are registered?", one: "agent integration", tab: "Agent integrations", id: (r) => r.slug ?? r.id, scopes: "organisation_agent_integrations", families: ["workspace_agent_integrations"], writeRole: "manager", where: "either",
    columns: [name("guardrails/agent-integrations"), ["Address", (r) => r.url], ["Sync", (r) => <Badge text={r.sync_status ?? "pending"} />], ["Reason", (r) => r.sync_error ?? "–"], state], fields: [named, text("url", "Address", { required: true }), text("auth_type", "Sign-in", { type: "select", options: [["none", "None"], ["headers", "Headers"]] }), described], empty: "No agent is registered yet.",
  },
  {
    at: "organization", path: "/admin/workspaces", question: "How is the organization divided?", one: "workspace", tab: "Workspaces", id: (r) => r.slug, scopes: "workspaces", writeRole: "admin", where: "organisation",
    columns: [name("organization"), slug, ["Default", (r) => r.is_default ? "yes" : "no"], ["Limit", (r) => limitText(r.usage_limits?.[0]), "n"], state, changed],
    fields: [named, described], remove: (r) => ({ name: r.name }), detail: lazy(organization, "WorkspaceDetail"), empty: "There is no workspace.",
  },
  {
    at: "organization/members", path: "/admin/users", question: "Who belongs to the organization?", one: "member", tab: "Members", id: (r) => r.id, scopes: "organisation_users", role: "admin", writeRole: "admin", where: "organisation", without: ["create"],
    columns: [["E-mail", (r) => <Link to={"/console/organization/members/" + r.id}>{r.email}</Link>], ["Name", (r) => [r.first_name, r.last_name].filter(Boolean).join(" ") || "–"], ["Role", (r) => r.role], ["Workspaces", (r) => count(r.workspace_ids?.length), "n"], changed],
    fields: [text("role", "Role", { type: "select", required: true, options: [["admin", "Admin"], ["member", "Member"]] })], empty: "There is no member yet. Members join by an invitation or by single sign-on.",
  },
  {
    at: "organization/invitations", path: "/admin/users/invites", question: "Who is invited?", one: "invitation", tab: "Invitations", id: (r) => r.id, scopes: "organisation_users", role: "admin", writeRole: "admin", where: "organisation", without: ["update"],
    columns: [["E-mail", (r) => <Link to={"/console/organization/invitations/" + r.id}>{r.email}</Link>], ["Role", (r) => r.role], state, ["Expires", (r) => since(r.expires_at)]],
    fields: [
      text("email", "E-mail", { required: true }), text("role", "Role", { type: "select", required: true, options: [["member", "Member"], ["admin", "Admin"]], start: "member" }),
      text("in_role", "Role in this workspace", { type: "select", options: [["member", "Member"], ["manager", "Manager"], ["admin", "Admin"]], start: "member", when: (v) => v.role === "member" }),
      text("workspace_api_key_details.scopes", "Scopes of an API key that comes with it", { type: "lines", help: "With a key, the link opens the console." }),
    ],
    create: ({ in_role, ...b }) => ["/admin/users/invites", in_role ? { ...b, workspaces: [{ id: room(), role: in_role }] } : b],
    made: (a) => ({ secret: a.invite_link, name: "The link of the invitation" }), empty: "There is no pending invitation.",
  },
  {
    at: "organization/sso", path: "/auth/sso-configurations", question: "How do users sign in?", one: "single sign-on configuration", tab: "Single sign-on", id: (r) => r.id, scopes: "organisation_settings", role: "admin", writeRole: "owner", where: "organisation", scopeOf: settingsScope,
    columns: [name("organization/sso"), ["Protocol", (r) => String(r.protocol).toUpperCase()], ["Issuer", (r) => r.issuer ?? r.metadata_url ?? "–"], state, changed],
    fields: [named, text("protocol", "Protocol", { type: "select", required: true, options: [["oidc", "OpenID Connect"], ["saml", "SAML"]], start: "oidc", fixed: true }), text("issuer", "Issuer", { when: (v) => v.protocol !== "saml", placeholder: "https://id.example.com" }), text("client_id", "Client id", { when: (v) => v.protocol !== "saml" }), text("client_secret", "Client secret", { type: "secret", when: (v) => v.protocol !== "saml" }), text("metadata_url", "Address of the metadata", { when: (v) => v.protocol !== "oidc" }), text("disable_auto_provision_user", "Only invited users may sign in", { type: "check" })],
    detail: lazy(organization, "SSODetail"), empty: "Single sign-on is not set up. Users sign in with keys and invitations.",
  },
  {
    at: "organization/domains", path: "/auth/domains", question: "Which domains may sign in?", one: "domain", tab: "Domains", id: (r) => r.id, scopes: "organisation_settings", role: "admin", writeRole: "owner", where: "organisation", scopeOf: settingsScope,
    columns: [["Domain", (r) => <Link to={"/console/organization/domains/" + r.id}>{r.domain}</Link>], ["Verified", (r) => r.verified_at ? date(r.verified_at) : "not yet"], state, changed],
    fields: [text("domain", "Domain", { required: true, fixed: true, placeholder: "example.com" }), text("allow_subdomains", "Subdomains too", { type: "check" })],
    detail: lazy(organization, "DomainDetail"), empty: "There is no domain. Single sign-on needs one that is verified.",
  },
  {
    at: "organization/secrets", path: "/secret-references", question: "Which secrets are referenced?", one: "secret reference", tab: "Secret references", id: (r) => r.slug ?? r.id, scopes: "secret_references", role: "admin", writeRole: "admin", where: "organisation",
    columns: [name("organization/secrets"), ["Manager", (r) => r.manager_type], ["Path", (r) => r.secret_path], changed],
    fields: [named, text("manager_type", "Manager", { type: "select", required: true, options: [["aws_sm", "AWS Secrets Manager"], ["azure_kv", "Azure Key Vault"], ["hashicorp_vault", "HashiCorp Vault"]], start: "aws_sm" }), text("secret_path", "Path", { required: true }), text("auth_config", "Sign-in to the manager", { type: "json", required: true, start: {} }), described], detail: lazy(organization, "SecretDetail"), empty: "There is no secret reference. With one, credentials stay in your secret manager.",
  },
  {
    at: "organization/deployments", path: "/deployments", question: "Where does the gateway run?", one: "deployment", tab: "Deployments", id: (r) => r.slug ?? r.id, scopes: "deployments", role: "admin", writeRole: "admin", where: "organisation",
    columns: [name("organization/deployments"), ["Type", (r) => r.type], ["Address", (r) => r.url ?? "–"], state, changed], fields: [named, text("type", "Type", { type: "select", required: true, options: [["production", "Production"], ["non-production", "Non-production"]], start: "production" }), text("url", "Address")], detail: lazy(organization, "DeploymentDetail"), empty: "There is no other deployment.",
  },
  {
    at: "organization/webhooks", path: "/webhooks", question: "Who is notified?", one: "webhook", tab: "Webhooks", id: (r) => r.id, scopes: "organisation_webhooks", families: ["workspace_webhooks"], role: "manager", writeRole: "manager", where: "either",
    columns: [name("organization/webhooks"), ["Address", (r) => r.url], state, changed], fields: [named, text("url", "Address", { required: true }), text("events", "Events", { type: "lines", help: "One on each line; empty: all." }), described], made: (a) => a.secret ? { secret: a.secret, name: "The secret that signs deliveries" } : undefined, empty: "There is no webhook yet.",
  },
];

// scopesOf are the scopes of an action on a kind, of which a caller needs one.
export const scopesOf = (k: Kind, action: string) => k.scopeOf ? [k.scopeOf(action)] : [k.scopes, ...(k.families ?? [])].map((f) => f + "." + action);

// place are the query parameters that say where calls about a kind act.
export function place(k: Kind): Record<string, string> {
  if (k.where === "workspace") return { workspace_id: room() };
  if (k.where === "either" && !ofOrganisation()) return room() ? { workspace_id: room() } : {};
  if (k.where === "either" && new URLSearchParams(location.search).get("workspace")) return { workspace_id: room() };
  return {};
}

export function factsOf(row: any): Fact[] {
  const hidden = new Set(["object", "name", "organisation_id", "success", "status", "last_updated_at", "string"]);
  return Object.entries(row).filter(([k, v]) => !hidden.has(k) && (v === null || typeof v !== "object")).map(([k, v]) => [title(k), /_at$/.test(k) && typeof v === "string" ? <span title={v}>{date(v)}</span> : k === "status" ? <Badge text={String(v)} /> : typeof v === "boolean" ? (v ? "yes" : "no") : v as any]);
}
