package migrate

import (
	"fmt"
	"math"
	"strings"

	"gateway/local/document"
)

// settings are what a LiteLLM proxy sets for all models.
type settings struct {
	retries      int
	hasRetry     bool
	retryCodes   []any
	timeout      int
	first        int
	threshold    int
	cooldown     int
	fallbacks    map[string][]*document.Node
	special      map[string][]*document.Node // on errors of the request itself
	always       []*document.Node            // default_fallbacks
	aliases      []document.Field
	cache        map[string]any
	tagFiltering bool
	measure      string // strategy that compares the deployments of a model; "" for weights
}

// Notes of settings that many sections have.
const (
	ownStore   = "the gateway has a store of its own"
	ownLogs    = "the gateway writes its own logs"
	telemetry  = "create a telemetry destination; see the guide Observe"
	metricsAt  = "GET /metrics serves Prometheus"
	keysByHand = "see --database-url-env and --api-url for keys, budgets, users and teams"
)

// notes are settings without a specific rule, by section. A name that ends with * is a prefix.
var notes = map[string]map[string]mark{
	"litellm_settings": {
		"set_verbose": {NotMapped, ownLogs}, "json_logs": {Mapped, "logs are JSON"}, "suppress_debug_info": {NotMapped, ownLogs}, "log_raw_request_response": {NotMapped, "request_logging decides what is stored"},
		"drop_params":   {Changed, "translation is lax unless a request has x-gateway-translation: strict; losses are reported"},
		"modify_params": {Changed, "the gateway translates requests itself"}, "add_function_to_prompt": {NotMapped, "tools are translated, not written into prompts"},
		"turn_off_message_logging": {Changed, "set request_logging.mode to metrics for the workspace"}, "redact_user_api_key_info": {NotMapped, "logs have the id of a key, never the key"}, "redact_messages_in_exceptions": {Mapped, "errors contain no prompt"},
		"callbacks":  {Changed, telemetry},
		"force_ipv4": {NotMapped, "the gateway dials what resolves first"},
		"cache":      {Mapped, "cache of the config"},

		"num_retries_per_request": {Changed, "as num_retries"}, "ssl_verify": {NotMapped, "certificates are always verified; see GATEWAY_CA_BUNDLE"}, "ssl_certificate": {NotMapped, "see GATEWAY_CA_BUNDLE"},
		"upperbound_key_generate_params*": {Changed, "user_api_key_settings bound the keys of users"}, "default_key_generate_params*": {NotMapped, "keys are created with what they need"}, "default_internal_user_params*": {NotMapped, "invitations and groups give roles"}, "default_team_settings*": {Changed, "create a telemetry destination in the workspace of the team"}, "default_team_params*": {NotMapped, "workspaces are created with what they need"},
		"s3_callback_params*": {Changed, "create a log export; see the guide Observe"}, "gcs_callback_params*": {Changed, "create a log export; see the guide Observe"}, "langfuse*": {Changed, telemetry}, "datadog*": {Changed, telemetry}, "prometheus*": {Changed, metricsAt}, "otel*": {Changed, telemetry}, "custom_prometheus*": {Changed, "see GATEWAY_METRICS_LABELS"}, "require_auth_for_metrics_endpoint": {Mapped, "metrics need a key, except on the same machine"},
		"service_callback*": {Changed, telemetry}, "audit_log_callbacks": {NotMapped, "the audit log is part of the gateway"}, "store_audit_logs": {Mapped, "the audit log is always written"}, "enable_json_schema_validation": {Changed, "add the guardrail default.jsonSchema"},
		"public_routes": {NotMapped, "no route is open without a key"}, "blocked_user_list": {NotMapped, "use a usage limit policy or a guardrail on metadata"}, "banned_keywords_list": {Changed, "add the guardrail default.contains"}, "mcp_aliases*": {Mapped, "further names of MCP servers"},
		"extra_spend_tag_headers": {NotMapped, "send x-gateway-metadata; logs and analytics filter by it"}, "timezone": {NotMapped, "budgets are reset at 00:00 UTC"}, "default_end_user_params*": {NotMapped, "write a usage limit policy by metadata._user"}, "post_call_rules": {NotMapped, "write a guardrail with default.webhook"}, "pre_call_rules": {NotMapped, "write a guardrail with default.webhook"}, "custom_provider_map": {NotMapped, "code of the source; call the provider by api_base"}, "priority_reservation*": {NotMapped, "there are no priorities; use rate limits"}, "enable_preview_features": {NotMapped, "is of the source"}, "tag_budget_config*": {Changed, "create usage limit policies on metadata.tag"}, "model_group_settings*": {NotMapped, "forward headers with forward_headers of a target"}, "cost_discount_config*": {Changed, "set pricing_adjustments of the integration"}, "enable_loadbalancing_on_batch_endpoints": {NotMapped, "a batch stays where it was created"}, "enable_caching_on_provider_specific_optional_params": {Mapped, "every parameter is part of the cache key"}, "disable_copilot_system_to_assistant": {NotMapped, "is of the source"}, "use_chat_completions_url_for_anthropic_messages": {NotMapped, "routes are translated as needed"}, "request_headers*": {NotMapped, "use custom_headers of the integration"}, "provider_url_destination_allowed_hosts": {NotMapped, "see GATEWAY_EGRESS_ALLOW"}, "user_header_mappings*": {NotMapped, "send x-gateway-metadata with _user"}, "user_header_name": {NotMapped, "send x-gateway-metadata with _user"}, "key_generation_settings*": {Changed, "scopes of roles decide who creates keys"}, "disable_end_user_cost_tracking*": {NotMapped, "costs are always recorded"}, "include_cost_in_streaming_usage": {NotMapped, "costs are in the log and the response headers"}, "return_response_headers": {NotMapped, "responses have the gateway's headers"}, "forward_traceparent_to_llm_provider": {NotMapped, "use forward_headers of a target"}, "max_ui_session_budget": {NotMapped, "the console spends nothing"}, "network_mock": {NotMapped, "is for tests of the source"}, "disable_hf_tokenizer_download": {NotMapped, "no tokenizer is downloaded"}, "default_internal_user_params": {NotMapped, "invitations and groups give roles"}, "disable_add_transform_inline_image_block": {NotMapped, "is of the source"}, "drop_unknown_params": {Changed, "losses are reported"}, "turn_on_debug": {NotMapped, ownLogs}, "telemetry": {Mapped, "the gateway sends no telemetry"}, "api_key": {NotMapped, "name keys in model_list"}, "disable_aiohttp_transport": {NotMapped, "is of the source"}, "aiohttp_trust_env": {NotMapped, "is of the source"}, "success_handler": {Changed, telemetry},
	},
	"router_settings": {
		"redis_*": {NotMapped, ownStore}, "cache_responses": {Changed, "cache of the config; set litellm_settings.cache"}, "cache_kwargs*": {NotMapped, ownStore}, "caching_groups": {NotMapped, "the cache keeps models apart"},
		"enable_pre_call_checks": {Changed, "the gateway checks a model's limits when a request fails, by fallbacks"}, "set_verbose": {NotMapped, ownLogs}, "debug_level": {NotMapped, ownLogs}, "client_ttl": {NotMapped, "connections are pooled"},
		"allowed_fails_policy*": {Changed, "circuit breakers count failures of all kinds"}, "disable_cooldowns": {Mapped, "no circuit breaker"}, "max_fallbacks": {Mapped, "fallbacks are as many as are listed"}, "retry_after": {Mapped, "retries wait as the provider says, or 1, 2, 4, ... seconds"}, "routing_strategy_args*": {Changed, "the gateway measures continuously; see explore and min_observations of a strategy"}, "default_max_parallel_requests": {NotMapped, "there is no limit of parallel requests; use rate limits"}, "polling_interval": {NotMapped, "is of the source"}, "optional_pre_call_checks": {Changed, "strategy.sticky keeps users at one target"}, "default_litellm_params*": {NotMapped, "set them in model_list"}, "provider_budget_config*": {Changed, "set usage_limits of the providers"}, "alerting_config*": {Changed, "create a webhook for budget events"}, "ignore_invalid_deployments": {NotMapped, "a config is checked when it is saved"}, "assistants_config*": {NotMapped, "assistants are not served"}, "search_tools*": {NotMapped, "add an MCP server"}, "deployment_affinity_ttl_seconds": {Changed, "strategy.sticky keeps users at one target"}, "fallback_access_control": {NotMapped, "a fallback is checked like any model"},
	},
	"general_settings": {
		"master_key":   {Changed, "never imported: create a new admin key, which is shown once"},
		"database_url": {Changed, keysByHand}, "database_*": {NotMapped, ownStore}, "store_model_in_db": {Changed, "models of the database: use --api-url"}, "use_redis_transaction_buffer": {NotMapped, ownStore},
		"alerting": {Changed, "create a webhook for budget events"}, "alerting_threshold": {NotMapped, "metrics have the times of requests"}, "alerting_args*": {NotMapped, "create a webhook for budget events"}, "alert_types": {Changed, "webhooks name their events"}, "alert_to_webhook_url*": {Changed, "create a webhook for budget events"}, "alert_type_config*": {Changed, "webhooks name their events"}, "spend_report_frequency": {NotMapped, "analytics show the costs at any time"},
		"background_health_checks": {NotMapped, "circuit breakers watch real requests"}, "health_check*": {NotMapped, "circuit breakers watch real requests"}, "enable_health_check_routing": {Changed, "circuit breakers watch real requests"}, "allowed_routes": {Changed, "scopes of keys decide"}, "admin_only_routes": {Changed, "scopes of keys decide"}, "public_routes": {NotMapped, "no route is open without a key"},
		"max_parallel_requests": {NotMapped, "there is no limit of parallel requests; use rate limits"}, "global_max_parallel_requests": {NotMapped, "there is no limit of parallel requests; use rate limits"}, "max_request_size_mb": {NotMapped, "sizes of bodies are bounded by the gateway"}, "max_response_size_mb": {NotMapped, "sizes of bodies are bounded by the gateway"}, "infer_model_from_keys": {Changed, "name the provider of each model"},
		"enable_jwt_auth": {Changed, "set auth_settings.jwks_url; see the guide Manage"}, "jwt_settings*": {Changed, "set auth_settings.jwks_url; tokens carry organisation_id, workspace_slug and scope"}, "litellm_jwtauth*": {Changed, "set auth_settings.jwks_url; tokens carry organisation_id, workspace_slug and scope"}, "enable_oauth2*": {Changed, "set auth_settings.jwks_url"}, "oauth2_config_mappings*": {Changed, "set auth_settings.jwks_url"}, "custom_auth*": {NotMapped, "code of the source; use JSON Web Tokens of an issuer"}, "custom_sso": {NotMapped, "use sign-in by OpenID Connect or SAML"}, "custom_key_generate": {NotMapped, "code of the source"}, "ui_access_mode*": {Changed, "roles decide what users see"}, "enforce_user_param": {Changed, "add the guardrail default.requiredMetadataKeys with _user"}, "enforced_params": {Changed, "add the guardrail default.requiredMetadataKeys"}, "user_header_name": {NotMapped, "send x-gateway-metadata with _user"}, "user_header_mappings*": {NotMapped, "send x-gateway-metadata with _user"}, "reject_clientside_metadata_tags": {NotMapped, "metadata of a key counts over that of a request"}, "litellm_key_header_name": {NotMapped, "see GATEWAY_HEADER_ALIASES"},
		"maximum_spend_logs_retention_period": {Changed, "set request_logging.retention_days"}, "maximum_spend_logs_retention_interval": {Mapped, "old logs are deleted within hours"}, "disable_spend_logs": {Changed, "set request_logging.mode to metrics"}, "disable_error_logs": {Changed, "set request_logging.mode to metrics"}, "store_prompts_in_spend_logs": {Mapped, "bodies are stored unless request_logging.mode is metrics"}, "disable_adding_master_key_hash_to_db": {NotMapped, ownStore}, "disable_master_key_return": {Mapped, "keys are never shown again"}, "disable_reset_budget": {NotMapped, "budgets are reset by their own rule"}, "disable_responses_id_security": {NotMapped, "responses belong to their workspace"}, "allow_requests_on_db_unavailable": {NotMapped, "a gateway without its store answers 503"}, "proxy_budget_rescheduler*": {NotMapped, "budgets are reset at 00:00 UTC"}, "proxy_batch_write_at": {NotMapped, ownStore}, "proxy_batch_polling_interval": {NotMapped, ownStore}, "key_management_*": {Changed, "create secret references; see the guide Manage"}, "use_google_kms": {NotMapped, "secrets are sealed by the gateway"}, "use_aws_kms": {NotMapped, "secrets are sealed by the gateway"}, "use_azure_key_vault": {Changed, "create secret references; see the guide Manage"}, "pass_through_endpoints": {Changed, "other paths of a provider are reached below /v1/proxy/"}, "forward_client_headers_to_llm_api": {Changed, "set forward_headers of the targets"}, "forward_openai_org_id": {Changed, "set forward_headers of the targets"}, "completion_model": {Changed, "set override_params of a config"}, "embedding_model": {Changed, "set override_params of a config"}, "always_include_stream_usage": {Mapped, "usage of streams is always read"}, "service_account_settings*": {NotMapped, "metadata schemas say what keys must have"}, "image_generation_model": {Changed, "set override_params of a config"}, "block_robots": {NotMapped, "is of the web server"}, "cors_*": {NotMapped, "see MCP_ALLOWED_ORIGINS for MCP"}, "token_rate_limit_type": {NotMapped, "token limits count input and output"}, "supported_db_objects": {NotMapped, ownStore}, "mcp_*": {Changed, "access to MCP servers is set per server"}, "control_plane_url": {NotMapped, "is of the source"}, "role_permissions*": {Changed, "roles and scopes decide"}, "user_mcp_management_mode": {Changed, "roles and scopes decide"}, "use_client_credentials_pass_through_routes": {NotMapped, "a client's credential is used where a request brings one"}, "use_x_forwarded_for": {NotMapped, "addresses are those of connections"}, "embedding_router": {NotMapped, "is of the source"}, "allow_user_auth": {NotMapped, "roles and scopes decide"}, "ui_username": {NotMapped, "users sign in with an identity provider"}, "ui_password": {NotMapped, "users sign in with an identity provider"}, "disable_ui": {NotMapped, "the console has no data without a key"}, "otel": {Changed, telemetry}, "store_model_in_database": {Changed, "models of the database: use --api-url"}, "telemetry": {Mapped, "the gateway sends no telemetry"}, "team_id_default": {NotMapped, "keys belong to a workspace"}, "proxy_config_reload*": {NotMapped, "changes count within seconds"}, "dynamic_rate_limiting": {NotMapped, "use rate limits"}, "coordination_redis*": {NotMapped, ownStore},
	},
}

// noteSetting marks a setting that needs no rule; it reports whether there is a note.
func noteSetting(l *importer, section string, f document.Field) bool {
	if m, ok := notes[section][f.Name]; ok {
		if on, isSwitch := f.Value.Value().(bool); f.Name == "set_verbose" && isSwitch && !on {
			m = mark{Mapped, "off, as here"}
		}
		l.set(f.Value, m.status, m.note)
		return true
	}
	for name, m := range notes[section] {
		if begin, star := strings.CutSuffix(name, "*"); star && strings.HasPrefix(f.Name, begin) {
			l.set(f.Value, m.status, m.note)
			return true
		}
	}
	return false
}

func readSettings(l *importer) error {
	l.shared.fallbacks, l.shared.special = map[string][]*document.Node{}, map[string][]*document.Node{}
	for _, section := range []string{"litellm_settings", "router_settings", "general_settings"} {
		n := l.root.Get(section)
		if err := n.Expect(section, document.Map); err != nil {
			return err
		}
		for _, f := range n.Fields() {
			switch f.Value.Kind() {
			case document.Null:
				l.mapped(f.Value, "empty")
				continue
			case document.List, document.Map:
				if len(f.Value.Items())+len(f.Value.Fields()) == 0 && (f.Name == "model_group_alias" || strings.HasSuffix(f.Name, "fallbacks")) {
					l.mapped(f.Value, "empty")
					continue
				}
			}
			done, err := readBudget(l, n, section, f)
			if err == nil && !done {
				done, err = readSetting(l, section, f)
			}
			if err != nil {
				return err
			}
			if !done && !noteSetting(l, section, f) {
				l.not(f.Value, noRule)
			}
		}
	}
	return nil
}

// readSetting maps the settings that have an effect on the config.
func readSetting(l *importer, section string, f document.Field) (bool, error) {
	s, v, at := &l.shared, f.Value, section+"."+f.Name
	number := func() (float64, error) {
		n, ok := v.Float()
		if !ok || n < 0 {
			return 0, document.Errorf(v.At, at, "must be a number of at least 0")
		}
		return n, nil
	}
	if section == "general_settings" {
		return false, nil
	}
	switch f.Name {
	case "num_retries":
		n, err := number()
		if err != nil {
			return true, err
		}
		s.retries, s.hasRetry = min(int(n), maxRetries), true
		l.mapped(v, "retry of the config")
		if int(n) > maxRetries {
			l.changed(v, fmt.Sprint("at most ", maxRetries, " retries"))
		}
	case "request_timeout", "timeout":
		n, err := number()
		if err != nil {
			return true, err
		}
		s.timeout = milliseconds(n)
		l.mapped(v, "request_timeout of the config")
	case "stream_timeout":
		n, err := number()
		if err != nil {
			return true, err
		}
		s.first = min(milliseconds(n), 600_000)
		l.changed(v, "first_token_timeout of the config: the time to the first token of a stream")
	case "allowed_fails":
		n, err := number()
		if err != nil {
			return true, err
		}
		s.threshold = int(n) + 1
		l.mapped(v, "failure_threshold of the circuit breaker")
	case "cooldown_time":
		n, err := number()
		if err != nil {
			return true, err
		}
		s.cooldown = max(milliseconds(n), minCooldown)
		l.mapped(v, "cooldown_interval of the circuit breaker")
		if milliseconds(n) < minCooldown {
			l.changed(v, "a circuit breaker stays open for at least 30 seconds")
		}
	case "retry_policy":
		return true, retryPolicy(l, v, at)
	case "fallbacks":
		return true, readFallbacks(l, v, at, s.fallbacks, Mapped, "fallback strategy of the model")
	case "context_window_fallbacks", "content_policy_fallbacks":
		return true, readFallbacks(l, v, at, s.special, Changed, "fallback on 400, 413 and 422: statuses do not show why a request is rejected")
	case "default_fallbacks":
		if err := v.Expect(at, document.List); err != nil {
			return true, err
		}
		s.always = v.Items()
		l.mapped(v, "fallback of every model")
	case "model_group_alias":
		if err := v.Expect(at, document.Map); err != nil {
			return true, err
		}
		s.aliases = append(s.aliases, v.Fields()...)
	case "routing_strategy":
		return true, readStrategy(l, v)
	case "cache_params":
		return true, cacheParams(l, v, at)
	case "cache":
		if v.True() && s.cache == nil {
			s.cache = map[string]any{"mode": "simple"}
		}
		l.mapped(v, "cache of the config")
	case "enable_tag_filtering":
		s.tagFiltering = v.True()
		l.changed(v, `conditions on the metadata field "tag" of a request`)
	case "tag_filtering_match_any":
		l.mapped(v, "one tag of a request is enough")
	case "success_callback", "failure_callback", "callbacks":
		return true, readCallbacks(l, v, at)
	default:
		return false, nil
	}
	return true, nil
}

const minCooldown = 30_000

func readStrategy(l *importer, v *document.Node) error {
	switch v.Scalar() {
	case "simple-shuffle":
		l.mapped(v, "targets are chosen by their weights")
	case "latency-based-routing", "cost-based-routing", "least-busy":
		l.shared.measure = map[string]string{"latency-based-routing": "latency", "cost-based-routing": "cost", "least-busy": "least_busy"}[v.Scalar()]
		l.mapped(v, "strategy "+l.shared.measure+" of models with several deployments")
	case "usage-based-routing", "usage-based-routing-v2":
		l.shared.measure = "least_busy"
		l.changed(v, "strategy least_busy: the deployment with the fewest requests in progress, not with the lowest use of its limits")
	default:
		l.not(v, "is not known; targets are chosen by their weights")
	}
	return nil
}

func readCallbacks(l *importer, v *document.Node, at string) error {
	if err := v.Expect(at, document.List, document.Text); err != nil {
		return err
	}
	items := v.Items()
	if v.Kind() == document.Text {
		items = []*document.Node{v}
	}
	for _, c := range items {
		switch name := c.Scalar(); {
		case strings.HasPrefix(name, "prometheus"):
			l.mapped(c, metricsAt)
		case strings.HasPrefix(name, "s3") || strings.HasPrefix(name, "gcs") || strings.HasPrefix(name, "azure_storage"):
			l.changed(c, "create a log export; see the guide Observe")
		case strings.Contains(name, ".") || strings.HasPrefix(name, "custom"):
			l.not(c, "code of the source; use guardrails, webhooks or telemetry")
		case name == "detect_prompt_injection":
			l.changed(c, "add the guardrail gateway.promptInjection")
		case name == "presidio":
			l.changed(c, "add the guardrail gateway.pii")
		case name == "dynamic_rate_limiter" || name == "parallel_request_limiter" || strings.HasPrefix(name, "dynamic_rate_limiter"):
			l.not(c, "use rate limits of keys, providers and policies")
		default:
			l.changed(c, telemetry)
		}
	}
	return nil
}

// retryKinds are the classes of errors of retry_policy, with their statuses.
var retryKinds = map[string][]int{
	"BadRequestErrorRetries": {400}, "AuthenticationErrorRetries": {401, 403}, "TimeoutErrorRetries": {408}, "RateLimitErrorRetries": {429}, "ContentPolicyViolationErrorRetries": {400}, "InternalServerErrorRetries": {500, 502, 503, 504, 529},
}

func retryPolicy(l *importer, v *document.Node, at string) error {
	if err := v.Expect(at, document.Map); err != nil {
		return err
	}
	most, least := 0, math.MaxInt32
	codes := map[int]bool{}
	for _, f := range v.Fields() {
		n, ok := f.Value.Float()
		statuses, known := retryKinds[f.Name]
		switch {
		case !known:
			l.not(f.Value, "is not a known class of errors")
			continue
		case !ok || n < 0:
			return document.Errorf(f.Value.At, at+"."+f.Name, "must be a number of at least 0")
		}
		l.mapped(f.Value, "retry of the config on these statuses")
		if n > 0 {
			most, least = max(most, int(n)), min(least, int(n))
			for _, s := range statuses {
				codes[s] = true
			}
		}
	}
	if most == 0 {
		return nil
	}
	if most != least || most > maxRetries {
		l.changed(v, fmt.Sprintf("all statuses are retried %d times", min(most, maxRetries)))
		for _, f := range v.Fields() {
			if l.marks[f.Value].status == Mapped {
				l.changed(f.Value, fmt.Sprintf("all statuses of the policy are retried %d times", min(most, maxRetries)))
			}
		}
	}
	l.shared.retries, l.shared.hasRetry = min(most, maxRetries), true
	l.shared.retryCodes = nil
	for s := 400; s < 600; s++ {
		if codes[s] {
			l.shared.retryCodes = append(l.shared.retryCodes, s)
		}
	}
	return nil
}

func readFallbacks(l *importer, v *document.Node, at string, into map[string][]*document.Node, status Status, note string) error {
	if err := requireMaps(v, at); err != nil {
		return err
	}
	for _, item := range v.Items() {
		for _, f := range item.Fields() {
			if err := f.Value.Expect(at+"."+f.Name, document.List); err != nil {
				return err
			}
			into[f.Name] = append(into[f.Name], f.Value.Items()...)
			l.set(f.Value, status, note)
		}
	}
	return nil
}

// cacheParams maps the cache. Where it is stored is the gateway's own matter.
func cacheParams(l *importer, v *document.Node, at string) error {
	if err := v.Expect(at, document.Map); err != nil {
		return err
	}
	cache := map[string]any{"mode": "simple"}
	semantic := strings.Contains(v.Get("type").Scalar(), "semantic")
	for _, f := range v.Fields() {
		switch f.Name {
		case "type":
			l.changed(f.Value, "responses are cached in "+strings.TrimPrefix(ownStore, "the gateway has "))
		case "ttl", "default_in_redis_ttl", "default_in_memory_ttl":
			n, ok := f.Value.Float()
			if !ok || n < 0 {
				return document.Errorf(f.Value.At, at+"."+f.Name, "must be a number of seconds")
			}
			age := int(min(max(n, 60), 7_776_000))
			if cache["max_age"] == nil || f.Name == "ttl" {
				cache["max_age"] = age
			}
			l.mapped(f.Value, "max_age of the cache")
			if float64(age) != n {
				l.changed(f.Value, fmt.Sprint("max_age of the cache is ", age, " seconds"))
			}
		case "mode":
			l.mapped(f.Value, "the config has a cache")
			if f.Value.Scalar() == "default_off" {
				l.changed(f.Value, "the config has no cache; a request that wants one names a config with it")
				semantic, cache = false, nil
			}
		case "namespace":
			l.changed(f.Value, "workspaces have caches of their own; a request may send x-gateway-cache-namespace")
		case "similarity_threshold", "redis_semantic_cache_embedding_model", "qdrant_semantic_cache_embedding_model":
			l.mapped(f.Value, "semantic cache")
		case "supported_call_types":
			l.changed(f.Value, "every route that can be cached is")
		default:
			l.not(f.Value, ownStore)
		}
		if cache == nil {
			break
		}
	}
	for _, f := range v.Fields() {
		if _, done := l.marks[f.Value]; !done {
			l.not(f.Value, "the cache is off")
		}
	}
	l.shared.cache = cache
	if semantic {
		setSemantic(l, v, cache)
	}
	return nil
}

// setSemantic completes a semantic cache, which needs an embedding model of the list.
func setSemantic(l *importer, v *document.Node, cache map[string]any) {
	model := v.Get("redis_semantic_cache_embedding_model")
	if model == nil {
		model = v.Get("qdrant_semantic_cache_embedding_model")
	}
	cache["embedding group"] = model.Scalar()
	cache["mode"] = "semantic"
	if t, ok := v.Get("similarity_threshold").Float(); ok {
		cache["threshold"] = min(max(t, 0.5), 1)
	}
}
