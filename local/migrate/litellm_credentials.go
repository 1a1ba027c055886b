package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gateway/local/declare"
	"gateway/local/document"
)

// credential is what litellm_params state about how a provider is called.
type credential struct {
	l      *importer
	params *document.Node
	also   *document.Node // values of credential_list
	alsoAt string
	name   string // model_name
	at     string
	vendor vendor
	prefix string
	model  string

	key     string // form in the document
	literal bool   // the file contains the key
	conf    map[string]any
	source  map[string]string // what the file states about the configurations: it names the integration
}

func newCredential(l *importer, params *document.Node, name, at string) *credential {
	return &credential{l: l, params: params, name: name, at: at, conf: map[string]any{}, source: map[string]string{}}
}

// get returns the first parameter of these names that is set.
func (c *credential) get(names ...string) (*document.Node, string) {
	for _, n := range names {
		for _, from := range []*document.Node{c.params, c.also} {
			if v := from.Get(n); v.Kind() != document.Null && v.Scalar() != "" {
				return v, n
			}
		}
	}
	return nil, ""
}

// take sets a field of the configurations from a parameter.
func (c *credential) take(to string, names ...string) string {
	v, _ := c.get(names...)
	if v == nil {
		return ""
	}
	text := c.l.text(v)
	c.conf[to], c.source[to] = text, v.Scalar()
	c.l.mapped(v, to+" of the integration")
	return text
}

// takeSecret sets a secret field of the configurations.
func (c *credential) takeSecret(to string, variable string, names ...string) {
	if v, n := c.get(names...); v != nil {
		form := c.l.secretText(v.Scalar(), c.at+"_"+n)
		c.conf[to], c.source[to] = form, form
		c.literal = c.literal || !strings.HasPrefix(v.Scalar(), environPrefix)
		c.l.mapped(v, to+" of the integration, stored encrypted")
	} else if variable != "" {
		c.conf[to] = c.l.secretEnv(variable)
	}
}

// resolve finds the provider and its configurations.
func (c *credential) resolve() bool {
	model := c.params.Get("model")
	base, _ := c.get("api_base", "base_url")
	explicit := c.params.Get("custom_llm_provider")
	var ok bool
	if c.vendor, c.prefix, c.model, ok = vendorOf(c.l.text(model), c.l.text(explicit), base != nil); !ok {
		if c.model == "*" || c.prefix == "*" {
			c.l.not(model, "a model of any provider: call it as @slug/<model>")
			return false
		}
		c.l.not(model, fmt.Sprintf("the provider %q is not known, and no api_base is given", c.prefix))
		return false
	}
	c.l.mapped(explicit, "provider of the integration")
	switch c.vendor.id {
	case "azure-openai":
		return c.azure()
	case "azure-ai":
		c.takeKey()
		c.conf["azure_auth_mode"] = "default"
		if c.take("azure_foundry_url", "api_base", "base_url") == "" {
			c.conf["azure_foundry_url"] = c.variable("AZURE_AI_API_BASE")
		}
		c.take("azure_api_version", "api_version")
	case "bedrock", "sagemaker":
		c.aws()
	case "vertex-ai":
		return c.vertex()
	default:
		c.takeKey()
		c.host()
	}
	c.take("openai_organization", "organization", "openai_organization")
	if c.vendor.id == "databricks" || c.vendor.id == "cortex" || c.vendor.id == "workers-ai" || c.vendor.id == "oracle" {
		return c.special(model)
	}
	return true
}

func (c *credential) variable(name string) string {
	if v, ok := c.l.env(name); ok {
		return declare.Escape(v)
	}
	return "${" + name + "}"
}

// takeKey sets the API key.
func (c *credential) takeKey() {
	if v, n := c.get("api_key", "azure_ad_token"); v != nil {
		c.key = c.l.secretText(v.Scalar(), c.at+"_"+n)
		c.literal = !strings.HasPrefix(v.Scalar(), environPrefix)
		c.l.mapped(v, "key of the integration, stored encrypted")
	} else if c.vendor.keys != "" {
		base, _ := c.get("api_base", "base_url")
		if base != nil && c.vendor.id == "openai" && c.vendor.keys == "OPENAI_API_KEY" {
			if _, set := c.l.env(c.vendor.keys); !set {
				return // a custom host that needs no key
			}
		}
		if c.vendor.id != "vllm" {
			c.key = c.l.secretEnv(c.vendor.keys)
		}
	}
}

// host sets the base URL.
func (c *credential) host() {
	base := c.take("custom_host", "api_base", "base_url")
	if base == "" && c.vendor.base != "" {
		if v, ok := c.l.env(c.vendor.base); ok {
			base = declare.Escape(v)
			c.conf["custom_host"] = base
		}
	}
	if base == "" && c.vendor.host != "" {
		base = c.vendor.host
		c.conf["custom_host"] = base
	}
	if base == "" && (c.vendor.id == "vllm" || c.vendor.id == "triton" || c.vendor.base != "" && c.prefix != "openai") {
		c.conf["custom_host"] = "${" + c.vendor.base + "}"
	}
	if c.vendor.id == "ollama" && base != "" && !strings.HasPrefix(base, "${") {
		c.conf["custom_host"] = strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1") + "/v1"
	}
	v, _ := c.get("api_version")
	c.l.not(v, "this provider has no version in its address")
}

func (c *credential) azure() bool {
	base := c.take("custom_host", "api_base", "base_url")
	if base == "" {
		base = c.variable("AZURE_API_BASE")
	}
	delete(c.conf, "custom_host")
	name, standard := azureResource(base)
	if name == "" {
		name = "azure"
	}
	c.conf["azure_resource_name"] = name
	switch {
	case strings.HasPrefix(base, "${"):
		c.conf["custom_host"] = base
	case !standard:
		c.conf["custom_host"] = strings.TrimSuffix(strings.TrimRight(base, "/"), "/openai") + "/openai"
	}
	mode := "default"
	if v, _ := c.get("client_id"); v != nil {
		mode = "entra"
		c.take("azure_entra_client_id", "client_id")
		c.take("azure_entra_tenant_id", "tenant_id")
		c.takeSecret("azure_entra_client_secret", "AZURE_CLIENT_SECRET", "client_secret")
	} else {
		c.takeKey()
	}
	c.conf["azure_auth_mode"] = mode
	version := "2024-10-21"
	if v, _ := c.get("api_version"); v != nil {
		version = c.l.text(v)
		c.l.mapped(v, "azure_api_version of the deployment")
	} else if v, ok := c.l.env("AZURE_API_VERSION"); ok {
		version = declare.Escape(v)
	}
	c.conf["deployment"] = map[string]any{"azure_deployment_name": c.model, "alias": c.model, "azure_model_slug": c.model, "azure_api_version": version}
	return true
}

func (c *credential) aws() {
	for _, route := range bedrockRoutes {
		c.model = strings.TrimPrefix(c.model, route)
	}
	if c.take("aws_region", "aws_region_name", "region_name") == "" {
		for _, n := range []string{"AWS_REGION_NAME", "AWS_REGION"} {
			if v, ok := c.l.env(n); ok && c.conf["aws_region"] == nil {
				c.conf["aws_region"] = declare.Escape(v)
			}
		}
		if c.conf["aws_region"] == nil {
			c.conf["aws_region"] = "us-east-1"
		}
	}
	c.take("aws_external_id", "aws_external_id")
	token, _ := c.get("api_key")
	switch {
	case c.take("aws_role_arn", "aws_role_name") != "":
		c.conf["aws_auth_type"] = "assumedRole"
		c.takeSecret("aws_secret_access_key", "", "aws_secret_access_key")
		c.take("aws_access_key_id", "aws_access_key_id")
	case token != nil:
		c.conf["aws_auth_type"] = "apiKey"
		c.takeKey()
	default:
		c.conf["aws_auth_type"] = "accessKey"
		if c.take("aws_access_key_id", "aws_access_key_id") == "" {
			c.conf["aws_access_key_id"] = c.variable("AWS_ACCESS_KEY_ID")
		}
		c.takeSecret("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "aws_secret_access_key")
		c.takeSecret("aws_session_token", "", "aws_session_token")
	}
	c.take("custom_host", "aws_bedrock_runtime_endpoint", "api_base")
	v, _ := c.get("aws_session_name")
	c.l.changed(v, "the gateway names its sessions itself")
	v, _ = c.get("aws_profile_name", "aws_web_identity_token", "aws_sts_endpoint")
	c.l.not(v, "the gateway's own AWS identity is enabled by its operator; see the reference")
	v, _ = c.get("model_id")
	if v != nil {
		c.model = c.l.text(v)
		c.l.mapped(v, "model of the target")
	}
}

func (c *credential) vertex() bool {
	if c.take("vertex_region", "vertex_location", "vertex_ai_location") == "" {
		c.conf["vertex_region"] = "us-central1"
		if v, ok := c.l.env("VERTEXAI_LOCATION"); ok {
			c.conf["vertex_region"] = declare.Escape(v)
		}
	}
	project := c.take("vertex_project_id", "vertex_project", "vertex_ai_project")
	if project == "" {
		c.conf["vertex_project_id"] = c.variable("VERTEXAI_PROJECT")
	}
	if v, n := c.get("vertex_credentials", "vertex_ai_credentials"); v != nil {
		c.conf["vertex_auth_type"] = "serviceAccount"
		if v.Kind() == document.Map {
			c.conf["vertex_service_account_json"] = c.l.secretText(jsonText(v), c.at+"_"+n)
			c.literal = true
		} else {
			c.conf["vertex_service_account_json"] = c.l.secretText(fileText(c.l, v.Scalar()), c.at+"_"+n)
		}
		c.source["vertex_service_account_json"] = c.conf["vertex_service_account_json"].(string)
		c.l.mapped(v, "service account of the integration, stored encrypted")
	} else {
		c.conf["vertex_auth_type"] = "serviceAccount"
		c.conf["vertex_service_account_json"] = c.l.secretEnv("VERTEXAI_CREDENTIALS")
		c.l.remind("set VERTEXAI_CREDENTIALS to the JSON of a service account, for the models of Vertex AI without vertex_credentials")
	}
	v, _ := c.get("api_base", "base_url")
	c.l.not(v, "Vertex AI is called at its own address")
	return true
}

// special are providers with a field of their own in the address.
func (c *credential) special(model *document.Node) bool {
	switch c.vendor.id {
	case "databricks":
		host, _ := c.conf["custom_host"].(string)
		if host == "" {
			c.conf["custom_host"] = c.variable("DATABRICKS_API_BASE")
		}
		c.conf["databricks_workspace"] = "imported"
	case "workers-ai":
		if c.conf["custom_host"] == nil {
			c.conf["workers_ai_account_id"] = c.variable("CLOUDFLARE_ACCOUNT_ID")
		}
	case "cortex":
		c.conf["snowflake_account"] = c.variable("SNOWFLAKE_ACCOUNT_ID")
	case "oracle":
		c.l.not(model, "Oracle needs a private key: create the integration by hand")
		return false
	}
	return true
}

// integration returns the slug of the integration with this credential, which it adds.
func (c *credential) integration() string {
	for _, n := range []string{"extra_headers", "headers"} {
		if v := c.params.Get(n); v.Kind() == document.Map {
			headers := map[string]any{}
			for _, f := range v.Fields() {
				form := c.l.secretText(f.Value.Scalar(), c.at+"_"+n+"_"+f.Name)
				headers[f.Name], c.source["header "+f.Name] = form, form
			}
			c.conf["custom_headers"] = headers
			c.l.mapped(v, "custom_headers of the integration, stored encrypted")
		}
	}
	deployment := c.conf["deployment"]
	delete(c.conf, "deployment")
	identity := []any{c.vendor.id, c.prefix, c.source, c.key}
	slug := c.l.origin + "-" + c.vendor.id
	standard := c.key == "" || c.key == "${"+c.vendor.keys+"}"
	if len(c.source) > 0 || !standard {
		slug += "-" + digest(identity)
	}
	if c.literal { // several entries with one literal key share an integration
		if same, ok := sameLiteral(c.l, c); ok {
			slug = same
		}
	}
	if !slices.Contains(slices.Collect(maps.Values(c.l.slugs)), slug) {
		c.l.slugs[digestOf(identity)] = slug
		fields := map[string]any{"slug": slug, "name": slug, "ai_provider_id": c.vendor.id, "allow_all_models": true}
		if c.key != "" {
			fields["key"] = c.key
		}
		if len(c.conf) > 0 {
			fields["configurations"] = c.conf
		}
		c.l.add("integrations", fields)
	}
	if deployment != nil {
		addAzure(c.l, slug, deployment.(map[string]any))
	}
	return slug
}

// sameLiteral finds an integration with the same literal secrets.
func sameLiteral(l *importer, c *credential) (string, bool) {
	for _, r := range l.space.Sections["integrations"] {
		if r.Fields["ai_provider_id"] != c.vendor.id {
			continue
		}
		conf, _ := r.Fields["configurations"].(map[string]any)
		key, _ := r.Fields["key"].(string)
		if literalValues(l, key) == literalValues(l, c.key) && digestOf(literalValues(l, without(conf, "azure_deployment_config"))) == digestOf(literalValues(l, c.conf)) {
			return r.Fields["slug"].(string), true
		}
	}
	return "", false
}

func without(m map[string]any, name string) map[string]any {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]any{}
	}
	delete(out, name)
	return out
}

// literalValues replaces the names of literal secrets by their values, to compare them.
func literalValues(l *importer, v any) any {
	switch v := v.(type) {
	case string:
		if s, ok := l.Result.literal[strings.TrimSuffix(strings.TrimPrefix(v, "${"), "}")]; ok && strings.HasPrefix(v, "${") {
			return s
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = literalValues(l, v[k])
		}
		return out
	}
	return v
}

func digestOf(v any) string { return digest(v) }

// addAzure adds a deployment to an integration of Azure.
func addAzure(l *importer, slug string, deployment map[string]any) {
	for _, r := range l.space.Sections["integrations"] {
		if r.Fields["slug"] != slug {
			continue
		}
		conf := r.Fields["configurations"].(map[string]any)
		list, _ := conf["azure_deployment_config"].([]any)
		for _, d := range list {
			if d.(map[string]any)["alias"] == deployment["alias"] {
				return
			}
		}
		if len(list) == 0 {
			deployment["is_default"] = true
		}
		conf["azure_deployment_config"] = append(list, deployment)
	}
}
