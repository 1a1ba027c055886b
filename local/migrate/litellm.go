package migrate

import (
	"encoding/base64"
	"slices"
	"strings"

	"gateway/local/document"
)

// Limits of a source.
const (
	maxSource   = 4 << 20 // bytes of all files
	maxIncluded = 32
)

// importer collects models under bare names, and what goes with them, for one workspace.
type importer struct {
	*builder
	root        *document.Node
	credentials map[string]*document.Node // of credential_list
	groups      []*group
	byName      map[string]*group
	slugs       map[string]string // identity of credentials to the slug of an integration
	shared      settings
	attached    map[string][]any // guardrails of the config
}

func newImporter(origin string, getenv func(string) string) *importer {
	return &importer{builder: newBuilder(origin, getenv), credentials: map[string]*document.Node{}, byName: map[string]*group{}, slugs: map[string]string{}, attached: map[string][]any{}}
}

// LiteLLM reads a configuration file of a LiteLLM proxy and the files that it includes.
func LiteLLM(path string, getenv func(string) string) (*Result, error) {
	roots, err := readLiteLLM(path)
	if err != nil {
		return nil, err
	}
	l := newImporter("litellm", getenv)
	l.root = merge(roots)
	for _, root := range roots {
		l.mapped(root.Get("include"), "read, inside the folder of the file")
		for _, n := range []string{"finetune_settings", "files_settings", "vector_store_registry", "assistant_settings"} {
			l.changed(root.Get(n), "requests of these routes name a saved provider: @slug")
		}
		l.not(root.Get("prompts"), "save prompts with POST /v1/prompts")
		l.not(root.Get("health_check"), "circuit breakers watch real requests")
	}
	for _, step := range []func(*importer) error{readEnvironment, readCredentials, readSettings, readModels, readGuardrails, readServers, writeRouter} {
		if err := step(l); err != nil {
			return nil, err
		}
	}
	return l.finish(roots...)
}

// readLiteLLM reads a file and those that it includes, the file first.
func readLiteLLM(path string) ([]*document.Node, error) {
	folder, name, err := document.Open(path, maxSource)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	root, err := folder.Read(name, document.Position{})
	if err != nil {
		return nil, err
	}
	roots := []*document.Node{root}
	seen := []string{name}
	for i := 0; i < len(roots); i++ {
		if roots[i].Kind() != document.Map {
			return nil, document.Errorf(roots[i].At, "", "must be a mapping with model_list, litellm_settings, router_settings and general_settings")
		}
		include := roots[i].Get("include")
		if err := include.Expect("include", document.List); err != nil {
			return nil, err
		}
		for _, item := range include.Items() {
			if err := item.Expect("include", document.Text); err != nil {
				return nil, err
			}
			if slices.Contains(seen, item.Scalar()) {
				return nil, document.Errorf(item.At, "include", "%q is included twice", item.Scalar())
			}
			if len(roots) >= maxIncluded {
				return nil, document.Errorf(item.At, "include", "includes too many files; %d are allowed", maxIncluded)
			}
			seen = append(seen, item.Scalar())
			more, err := folder.Read(item.Scalar(), item.At)
			if err != nil {
				return nil, err
			}
			roots = append(roots, more)
		}
	}
	return roots, nil
}

// merge returns one mapping of several files: lists are joined, and of other values the
// first one counts.
func merge(roots []*document.Node) *document.Node {
	all := roots[0]
	for _, more := range roots[1:] {
		all = document.Join(all, more)
	}
	return all
}

// readEnvironment reads environment_variables: other values refer to them.
func readEnvironment(l *importer) error {
	n := l.root.Get("environment_variables")
	if err := n.Expect("environment_variables", document.Map); err != nil {
		return err
	}
	for _, f := range n.Fields() {
		if k := f.Value.Kind(); k == document.Map || k == document.List || k == document.Null {
			l.not(f.Value, "is not a string")
			continue
		}
		l.environ[f.Name] = f.Value.Scalar()
		l.mapped(f.Value, "value of os.environ/"+f.Name)
	}
	return nil
}

func readCredentials(l *importer) error {
	n := l.root.Get("credential_list")
	if err := n.Expect("credential_list", document.List); err != nil {
		return err
	}
	for _, item := range n.Items() {
		if err := item.Expect("credential_list[]", document.Map); err != nil {
			return err
		}
		values := item.Get("credential_values")
		if err := values.Expect("credential_list[].credential_values", document.Map); err != nil {
			return err
		}
		l.credentials[item.Get("credential_name").Scalar()] = values
		l.mapped(item.Get("credential_name"), "credentials of the models that name it")
		l.mapped(item.Get("credential_info"), "repeats settings of the models")
		l.not(values, "no model names this credential")
	}
	return nil
}

// requireMaps returns an error unless n is a list of mappings.
func requireMaps(n *document.Node, at string) error {
	if err := n.Expect(at, document.List); err != nil {
		return err
	}
	for _, item := range n.Items() {
		if item.Kind() != document.Map {
			return document.Errorf(item.At, at+"[]", "must be a mapping, not %s", item.Kind())
		}
	}
	return nil
}

// readServers maps MCP servers. Those that are a process of the source's machine are not mapped.
func readServers(l *importer) error {
	servers := l.root.Get("mcp_servers")
	if err := servers.Expect("mcp_servers", document.Map); err != nil {
		return err
	}
	for _, f := range servers.Fields() {
		at := "mcp_servers." + f.Name
		if err := f.Value.Expect(at, document.Map); err != nil {
			return err
		}
		if err := readServer(l, f, at); err != nil {
			return err
		}
	}
	return nil
}

func readServer(l *importer, f document.Field, at string) error {
	n := f.Value
	address, transport := n.Get("url"), n.Get("transport")
	if transport.Scalar() == "stdio" || address.Kind() == document.Null && n.Get("command").Kind() != document.Null {
		l.not(n, "is a process on the source's machine; serve it over HTTP")
		return nil
	}
	if n.Get("spec_path").Kind() != document.Null {
		l.not(n, "an OpenAPI document is not an MCP server; serve it over HTTP")
		return nil
	}
	if address.Kind() != document.Text {
		return document.Errorf(n.At, at+".url", "must be a text")
	}
	slug := l.origin + "-" + identifier(f.Name)
	integration := map[string]any{"slug": slug, "name": f.Name, "url": l.text(address), "transport": "sse", "auth_type": "none"}
	l.mapped(address, "MCP integration "+slug)
	headers := map[string]any{}
	token := ""
	for _, p := range n.Fields() {
		v := p.Value
		switch p.Name {
		case "url":
		case "transport":
			if v.Scalar() == "http" || v.Scalar() == "streamable_http" || v.Scalar() == "streamable-http" {
				integration["transport"] = "http"
			}
			l.mapped(v, "transport of the integration")
		case "description":
			integration["description"] = l.text(v)
			l.mapped(v, "description of the integration")
		case "authentication_token", "auth_value":
			token = l.secretText(v.Scalar(), at+"_"+p.Name)
			l.mapped(v, "header of the integration, stored encrypted")
		case "auth_type":
			l.mapped(v, "authentication of the integration")
		case "static_headers", "headers":
			if err := v.Expect(at+"."+p.Name, document.Map); err != nil {
				return err
			}
			for _, h := range v.Fields() {
				headers[h.Name] = l.secretText(h.Value.Scalar(), at+"_"+p.Name+"_"+h.Name)
			}
			l.mapped(v, "headers of the integration, stored encrypted")
		case "allowed_tools", "disallowed_tools", "allowed_params", "tool_name_to_display_name", "tool_name_to_description":
			l.changed(v, "set capabilities of the MCP server")
		case "extra_headers":
			l.changed(v, "set forward_headers of the integration")
		case "mcp_info", "alias", "server_id", "spec_version":
			l.changed(v, "the server describes itself")
		case "access_groups", "allow_all_keys", "available_on_public_internet", "teams", "users":
			l.changed(v, "set user access of the MCP server")
		case "client_id", "client_secret", "authorization_url", "token_url", "registration_url", "scopes", "oauth2_flow":
			l.changed(v, "set oauth_metadata of the integration; users sign in again")
		default:
			l.not(v, "MCP integrations have no such field")
		}
	}
	switch kind := n.Get("auth_type").Scalar(); kind {
	case "oauth2", "oauth2_m2m":
		integration["auth_type"] = "oauth_auto"
	case "", "none":
	default:
		name, prefix := "Authorization", map[string]string{"bearer_token": "Bearer ", "basic": "Basic ", "token": "token "}[kind]
		if kind == "api_key" {
			name = "X-API-Key"
		}
		if token != "" {
			headers[name] = headerValue(l, prefix, token)
		}
	}
	if len(headers) > 0 {
		integration["configurations"] = map[string]any{"custom_headers": headers}
		if integration["auth_type"] == "none" {
			integration["auth_type"] = "headers"
		}
	}
	l.add("mcp_integrations", integration)
	l.add("mcp_servers", map[string]any{"slug": identifier(f.Name), "name": f.Name, "mcp_integration_id": slug})
	return nil
}

// headerValue is a secret as the value of a header. Basic needs it in base64.
func headerValue(l *importer, prefix, form string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(form, "${"), "}")
	if value, ok := l.Secrets(name); ok && prefix == "Basic " && strings.Contains(value, ":") {
		l.literal[name] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	return l.derived(prefix, form)
}
