package migrate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gateway/local/declare"
	"gateway/local/document"
	"gateway/shared/pricing"
)

// Bifrost reads the config.json of a Bifrost gateway.
func Bifrost(path string, getenv func(string) string) (*Result, error) {
	folder, name, err := document.Open(path, maxSource)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	root, err := folder.Read(name, document.Position{})
	if err != nil {
		return nil, err
	}
	if root.Kind() != document.Map {
		return nil, document.Errorf(root.At, "", "must be an object with providers")
	}
	l := newImporter("bifrost", getenv)
	l.root = root
	for _, f := range root.Fields() {
		switch f.Name {
		case "providers":
			err = bifrostProviders(l, f.Value)
		case "mcp":
			err = bifrostServers(l, f.Value)
		case "governance":
			err = bifrostGovernance(l, f.Value)
		case "plugins":
			err = bifrostPlugins(l, f.Value)
		default:
			bifrostNote(l, f)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := writeRouter(l); err != nil {
		return nil, err
	}
	return l.finish(root)
}

// bifrostNotes are sections and settings without a rule of their own.
var bifrostNotes = map[string]mark{
	"$schema": {Mapped, "names the format"}, "encryption_key": {NotMapped, "the gateway seals secrets with keys of its own"}, "config_store": {NotMapped, ownStore}, "logs_store": {NotMapped, ownStore}, "vector_store": {NotMapped, ownStore}, "cluster_config": {NotMapped, "processes share the store"}, "auth_config": {Changed, "users sign in with an identity provider"}, "version": {Mapped, "names the format"},
	"initial_pool_size": {NotMapped, "pools grow by themselves"}, "drop_excess_requests": {Changed, "a gateway without capacity answers 503"}, "prometheus_labels": {Changed, "see GATEWAY_METRICS_LABELS"}, "enable_logging": {Mapped, "requests are logged"}, "disable_content_logging": {Changed, "set request_logging.mode to metrics"}, "log_retention_days": {Changed, "set request_logging.retention_days"}, "enable_governance": {Mapped, "limits always apply"}, "enforce_governance_header": {Mapped, "every request needs a key"}, "enforce_auth_on_inference": {Mapped, "every request needs a key"}, "allow_direct_keys": {Changed, "see data_plane_security_settings"}, "max_request_body_size_mb": {NotMapped, "sizes of bodies are bounded by the gateway"}, "allowed_origins": {NotMapped, "browsers are served the console only"}, "enable_litellm_fallbacks": {NotMapped, "routes of the source"},
}

func bifrostNote(l *importer, f document.Field) {
	m, ok := bifrostNotes[f.Name]
	if !ok {
		m = mark{NotMapped, noRule}
	}
	l.set(f.Value, m.status, m.note)
	if f.Name == "client" {
		for _, c := range f.Value.Fields() {
			bifrostNote(l, c)
		}
	}
}

// bifrostText turns a reference to the environment into the form that builder knows.
func bifrostText(n *document.Node) string {
	if name, ok := strings.CutPrefix(n.Scalar(), "env."); ok {
		return environPrefix + name
	}
	return n.Scalar()
}

func bifrostProviders(l *importer, n *document.Node) error {
	if err := n.Expect("providers", document.Map); err != nil {
		return err
	}
	for _, p := range n.Fields() {
		at := "providers." + p.Name
		if err := p.Value.Expect(at, document.Map); err != nil {
			return err
		}
		if err := requireMaps(p.Value.Get("keys"), at+".keys"); err != nil {
			return err
		}
		if err := bifrostProvider(l, p, at); err != nil {
			return err
		}
	}
	return nil
}

func bifrostProvider(l *importer, p document.Field, at string) error {
	kind := p.Name
	custom := p.Value.Get("custom_provider_config")
	if base := custom.Get("base_provider_type"); base != nil {
		kind = base.Scalar()
		l.mapped(custom, "provider of the integration")
		l.changed(custom.Get("allowed_requests"), "a route that a provider does not serve is rejected by it")
	}
	aliases := map[string]string{"vertex": "vertex_ai", "azure": "azure", "gemini": "gemini", "mistral": "mistral", "cohere": "cohere", "ollama": "ollama", "sgl": "vllm", "parasail": "openai", "perplexity": "perplexity", "huggingface": "huggingface", "fireworks": "fireworks_ai", "together": "together_ai"}
	if to := aliases[kind]; to != "" {
		kind = to
	}
	v, _, _, ok := vendorOf(kind+"/x", "", p.Value.Get("network_config").Get("base_url") != nil)
	if !ok {
		l.not(p.Value, fmt.Sprintf("the provider %q is not known", p.Name))
		return nil
	}
	conf := map[string]any{}
	timeout, retries := 0, -1
	network := p.Value.Get("network_config")
	if err := network.Expect(at+".network_config", document.Map); err != nil {
		return err
	}
	for _, f := range network.Fields() {
		num, isNumber := f.Value.Float()
		switch {
		case f.Value.Kind() == document.Null:
			l.mapped(f.Value, "empty")
		case f.Name == "base_url":
			conf["custom_host"] = l.plain(bifrostText(f.Value))
			if host, _ := conf["custom_host"].(string); !strings.HasPrefix(host, "${") && v.id != "anthropic" && !strings.HasSuffix(strings.TrimRight(host, "/"), "/v1") {
				conf["custom_host"] = strings.TrimRight(host, "/") + "/v1"
			}
			l.mapped(f.Value, "custom_host of the integration")
		case f.Name == "extra_headers":
			headers := map[string]any{}
			for _, h := range f.Value.Fields() {
				headers[h.Name] = l.secretText(bifrostText(h.Value), at+"_header_"+h.Name)
			}
			conf["custom_headers"] = headers
			l.mapped(f.Value, "custom_headers of the integration, stored encrypted")
		case f.Name == "default_request_timeout_in_seconds" && isNumber:
			timeout = milliseconds(num)
			l.mapped(f.Value, "request_timeout of the targets")
		case f.Name == "max_retries" && isNumber && num >= 0:
			retries = min(int(num), maxRetries)
			l.mapped(f.Value, "retry of the targets")
		case strings.HasPrefix(f.Name, "retry_backoff"):
			l.changed(f.Value, "retries wait as the provider says, or 1, 2, 4, ... seconds")
		default:
			l.not(f.Value, "is not a setting of an integration")
		}
	}
	for i, k := range p.Value.Get("keys").Items() {
		d := &deployment{ai: v.id, defaults: map[string]any{}, timeout: timeout, order: 0}
		if retries >= 0 {
			d.retries, d.hasRetry = retries, true
		}
		if err := bifrostKey(l, p.Name, v, k, fmt.Sprintf("%s.keys[%d]", at, i), conf, d); err != nil {
			return err
		}
	}
	for _, f := range p.Value.Fields() {
		switch f.Name {
		case "keys", "network_config", "custom_provider_config":
		case "concurrency_and_buffer_size":
			l.not(f.Value, "there is no limit of parallel requests; use rate limits")
		case "proxy_config":
			l.not(f.Value, "see HTTPS_PROXY")
		case "send_back_raw_response", "send_back_raw_request", "store_raw_request_response":
			l.not(f.Value, "logs have the bodies of both sides")
		default:
			l.not(f.Value, noRule)
		}
	}
	return nil
}

// bifrostKey adds the integration of one key, and its models.
func bifrostKey(l *importer, provider string, v vendor, k *document.Node, at string, shared map[string]any, d *deployment) error {
	conf := map[string]any{}
	for n, c := range shared {
		conf[n] = c
	}
	slug := l.origin + "-" + identifier(provider+"-"+k.Get("name").Scalar())
	fields := map[string]any{"slug": slug, "name": slug, "ai_provider_id": v.id, "allow_all_models": true}
	deployments := map[string]string{} // model to the provider's name
	for _, f := range k.Fields() {
		switch f.Name {
		case "value":
			if f.Value.Scalar() != "" {
				fields["key"] = l.secretText(bifrostText(f.Value), at+"_value")
			}
			l.mapped(f.Value, "key of the integration, stored encrypted")
		case "name", "id":
			l.mapped(f.Value, "name of the integration")
		case "weight":
			n, ok := f.Value.Float()
			if !ok || n < 0 {
				return document.Errorf(f.Value.At, at+".weight", "must be a number of at least 0")
			}
			d.weight = n
			l.mapped(f.Value, "weight of the targets")
		case "models":
			if err := f.Value.Expect(at+".models", document.List); err != nil {
				return err
			}
			l.mapped(f.Value, "bare names of the models")
		case "enabled", "use_for_batch_api":
			l.mapped(f.Value, "the integration is used")
		case "azure_key_config", "vertex_key_config", "bedrock_key_config", "ollama_key_config", "vllm_key_config":
			if err := f.Value.Expect(at+"."+f.Name, document.Map); err != nil {
				return err
			}
			bifrostCloud(l, f, at, conf, deployments)
		default:
			l.not(f.Value, noRule)
		}
	}
	if len(conf) > 0 {
		fields["configurations"] = conf
	}
	d.integrate = slug
	if k.Get("enabled").Kind() == document.Bool && !k.Get("enabled").True() {
		l.not(k, "the key is disabled")
		return nil
	}
	l.add("integrations", fields)
	d.slug = addProvider(l, d)
	var models []string
	for _, m := range k.Get("models").Items() {
		if m.Scalar() != "*" {
			models = append(models, m.Scalar())
		}
	}
	for m := range deployments {
		if !slices.Contains(models, m) {
			models = append(models, m)
		}
	}
	if len(models) == 0 {
		models = pricing.Default().Models(v.id)
		l.remind("models of %s that the price list does not know are called as @%s/<model>", provider, d.slug)
	}
	slices.Sort(models)
	for _, m := range models {
		one := *d
		if one.model = m; deployments[m] != "" {
			one.model = deployments[m]
		}
		for _, name := range []string{m, provider + "/" + m} {
			if len(l.groups) < maxGroups || l.byName[name] != nil {
				g := groupOf(l, name, k)
				g.deployments = append(g.deployments, &one)
			}
		}
	}
	return nil
}

// cloudFields are fields of the configurations of a cloud's key.
var cloudFields = map[string]struct {
	to     string
	secret bool
}{
	"azure_key_config.api_version": {"azure_api_version", false}, "azure_key_config.client_id": {"azure_entra_client_id", false}, "azure_key_config.client_secret": {"azure_entra_client_secret", true}, "azure_key_config.tenant_id": {"azure_entra_tenant_id", false},
	"vertex_key_config.project_id": {"vertex_project_id", false}, "vertex_key_config.region": {"vertex_region", false}, "vertex_key_config.auth_credentials": {"vertex_service_account_json", true},
	"bedrock_key_config.access_key": {"aws_access_key_id", false}, "bedrock_key_config.secret_key": {"aws_secret_access_key", true}, "bedrock_key_config.session_token": {"aws_session_token", true}, "bedrock_key_config.region": {"aws_region", false}, "bedrock_key_config.role_arn": {"aws_role_arn", false}, "bedrock_key_config.external_id": {"aws_external_id", false},
	"ollama_key_config.url": {"custom_host", false}, "vllm_key_config.url": {"custom_host", false},
}

func bifrostCloud(l *importer, f document.Field, at string, conf map[string]any, deployments map[string]string) {
	switch f.Name {
	case "azure_key_config":
		conf["azure_auth_mode"] = "default"
	case "vertex_key_config":
		conf["vertex_auth_type"] = "serviceAccount"
	case "bedrock_key_config":
		conf["aws_auth_type"] = "accessKey"
	}
	version := "2024-10-21"
	for _, c := range f.Value.Fields() {
		rule, known := cloudFields[f.Name+"."+c.Name]
		switch {
		case c.Value.Kind() == document.Null || c.Value.Scalar() == "" && c.Value.Kind() == document.Text:
			l.mapped(c.Value, "empty")
		case c.Name == "endpoint":
			base := l.plain(bifrostText(c.Value))
			name, standard := azureResource(base)
			if name == "" {
				name = "azure"
			}
			if conf["azure_resource_name"] = name; !standard {
				conf["custom_host"] = base
			}
			l.mapped(c.Value, "azure_resource_name of the integration")
		case c.Name == "deployments":
			for _, d := range c.Value.Fields() {
				deployments[d.Name] = d.Value.Scalar()
			}
			l.mapped(c.Value, "models of the provider")
		case c.Name == "arn":
			l.changed(c.Value, "name inference profiles as models")
		case !known:
			l.not(c.Value, "is not a field of an integration")
		case rule.secret:
			conf[rule.to] = l.secretText(bifrostText(c.Value), at+"_"+c.Name)
			l.mapped(c.Value, rule.to+" of the integration, stored encrypted")
		default:
			if conf[rule.to] = l.plain(bifrostText(c.Value)); rule.to == "azure_api_version" {
				version = l.plain(bifrostText(c.Value))
				delete(conf, rule.to)
			}
			l.mapped(c.Value, rule.to+" of the integration")
		}
	}
	if conf["aws_role_arn"] != nil {
		conf["aws_auth_type"] = "assumedRole"
	}
	if conf["azure_entra_client_id"] != nil {
		conf["azure_auth_mode"] = "entra"
	}
	if f.Name == "azure_key_config" {
		var list []any
		for _, m := range sorted(deployments) {
			list = append(list, map[string]any{"azure_deployment_name": deployments[m], "alias": deployments[m], "azure_model_slug": m, "azure_api_version": version, "is_default": len(list) == 0})
		}
		conf["azure_deployment_config"] = list
	}
}

func bifrostServers(l *importer, n *document.Node) error {
	if err := n.Expect("mcp", document.Map); err != nil {
		return err
	}
	clients := n.Get("client_configs")
	if err := requireMaps(clients, "mcp.client_configs"); err != nil {
		return err
	}
	for _, c := range clients.Items() {
		name, address := c.Get("name").Scalar(), c.Get("connection_string")
		if c.Get("connection_type").Scalar() == "stdio" || address.Kind() != document.Text || name == "" {
			l.not(c, "is a process on the source's machine; serve it over HTTP")
			continue
		}
		slug := l.origin + "-" + identifier(name)
		fields := map[string]any{"slug": slug, "name": declare.Escape(name), "url": l.plain(bifrostText(address)), "transport": "http", "auth_type": "none"}
		if c.Get("connection_type").Scalar() == "sse" {
			fields["transport"] = "sse"
		}
		headers := map[string]any{}
		for _, h := range c.Get("headers").Fields() {
			headers[h.Name] = l.secretText(bifrostText(h.Value), "mcp_"+name+"_"+h.Name)
		}
		if len(headers) > 0 {
			fields["auth_type"], fields["configurations"] = "headers", map[string]any{"custom_headers": headers}
		}
		l.mapped(c, "MCP integration "+slug)
		for _, t := range []string{"tools_to_execute", "tools_to_skip", "tools_to_auto_execute"} {
			l.changed(c.Get(t), "set capabilities of the MCP server")
		}
		l.not(c.Get("stdio_config"), "is a process on the source's machine; serve it over HTTP")
		l.add("mcp_integrations", fields)
		l.add("mcp_servers", map[string]any{"slug": identifier(name), "name": declare.Escape(name), "mcp_integration_id": slug})
	}
	l.changed(n.Get("tool_manager_config"), "limits of tools are those of the MCP server")
	return nil
}

func bifrostPlugins(l *importer, n *document.Node) error {
	if err := requireMaps(n, "plugins"); err != nil {
		return err
	}
	for _, p := range n.Items() {
		switch p.Get("name").Scalar() {
		case "semantic_cache", "semanticcache":
			l.changed(p, "set cache of the config; a semantic one names an embedding model")
		case "telemetry", "prometheus":
			l.mapped(p, metricsAt)
		case "otel", "maxim", "datadog":
			l.changed(p, telemetry)
		case "logging", "governance":
			l.mapped(p, "is part of the gateway")
		default:
			l.not(p, "code of the source; use guardrails, webhooks or telemetry")
		}
	}
	return nil
}

// bifrostGovernance maps virtual keys with their budgets and rates.
func bifrostGovernance(l *importer, n *document.Node) error {
	if err := n.Expect("governance", document.Map); err != nil {
		return err
	}
	tables := map[string]map[string]*document.Node{}
	for _, section := range []string{"budgets", "rate_limits", "virtual_keys", "teams", "customers"} {
		if err := requireMaps(n.Get(section), "governance."+section); err != nil {
			return err
		}
		tables[section] = map[string]*document.Node{}
		for _, row := range n.Get(section).Items() {
			tables[section][row.Get("id").Scalar()] = row
		}
	}
	l.changed(n.Get("teams"), "create workspaces with these budgets; their keys are in the workspace of the import")
	l.changed(n.Get("customers"), "create workspaces with these budgets; their keys are in the workspace of the import")
	l.mapped(n.Get("budgets"), "budgets of keys")
	l.mapped(n.Get("rate_limits"), "rate limits of keys")
	l.changed(n.Get("routing_rules"), "write conditions in the config")
	l.changed(n.Get("auth_config"), "users sign in with an identity provider")
	for _, k := range n.Get("virtual_keys").Items() {
		name := k.Get("name").Scalar()
		if active := k.Get("is_active"); active.Kind() == document.Bool && !active.True() || name == "" {
			l.not(k, "is not active")
			continue
		}
		fields := map[string]any{"scopes": importedScopes, "description": "imported"}
		if b := tables["budgets"][k.Get("budget_id").Scalar()]; b != nil {
			amount, ok := b.Get("max_limit").Float()
			if !ok || amount <= 0 {
				return document.Errorf(b.At, "governance.budgets[].max_limit", "must be a number above 0")
			}
			budget := map[string]any{"credit_limit": amount}
			reset, note := duration(strings.ReplaceAll(b.Get("reset_duration").Scalar(), "M", "mo"))
			for n, v := range reset {
				budget[n] = v
			}
			if note != "" {
				l.changed(b.Get("reset_duration"), note)
			}
			fields["usage_limits"] = budget
		}
		if r := tables["rate_limits"][k.Get("rate_limit_id").Scalar()]; r != nil {
			fields["rate_limits"] = bifrostRates(l, r)
		}
		l.changed(k, "a new key: clients get another value; see --keys-file")
		l.not(k.Get("provider_configs"), "a key is not bound to providers: restrict models with model_settings of the workspace")
		l.not(k.Get("mcp_configs"), "access to MCP servers is set per server")
		l.Access.Keys = append(l.Access.Keys, declare.Key{Source: k.Get("id").Scalar(), Workspace: MainWorkspace, Name: name, Fields: fields})
	}
	return nil
}

func bifrostRates(l *importer, r *document.Node) (rates []any) {
	for _, kind := range []struct{ prefix, measure string }{{"request", "requests"}, {"token", "tokens"}} {
		limit, period := r.Get(kind.prefix+"_max_limit"), r.Get(kind.prefix+"_reset_duration")
		n, ok := limit.Float()
		if !ok || n < 1 {
			continue
		}
		unit := map[string]string{"s": "rps", "m": "rpm", "h": "rph", "d": "rpd", "w": "rpw"}
		text := period.Scalar()
		letter := strings.TrimLeft(text, "0123456789")
		count, _ := strconv.Atoi(strings.TrimSuffix(text, letter))
		if unit[letter] == "" || count != 1 {
			l.changed(period, "limits are per second, minute, hour, day or week: per minute")
			letter = "m"
		}
		rates = append(rates, map[string]any{"type": kind.measure, "unit": unit[letter], "value": int(n)})
	}
	return rates
}
