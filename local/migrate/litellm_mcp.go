package migrate

import (
	"encoding/base64"
	"strings"

	"gateway/local/document"
)

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
		l.not(n, "an OpenAPI document is no MCP server; serve it over HTTP")
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
