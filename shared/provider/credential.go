package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/fault"
)

// CredentialFromHeaders reads a credential that the caller sends with the request: the key
// from Authorization, the fields from x-gateway-<field> headers. h must not have the
// gateway's own key in Authorization. A header that comes twice is a fault, because it is
// unclear which one counts.
func CredentialFromHeaders(p *Provider, h http.Header) (Credential, error) {
	var c Credential
	authorization, err := single(h, "Authorization")
	if err != nil {
		return Credential{}, err
	}
	c.Key = bearerToken(authorization)
	if c.Key == "" && p.Auth.Scheme == HeaderAuth && !strings.EqualFold(p.Auth.Name, "Authorization") {
		if c.Key, err = single(h, p.Auth.Name); err != nil { // such as x-api-key
			return Credential{}, err
		}
	}
	for i := range p.Fields {
		f := &p.Fields[i]
		var v string
		switch values := h[f.header]; {
		case f.header == "":
			continue
		case len(values) == 1:
			v = values[0]
		case len(values) > 1 && f.list():
			v = strings.Join(values, ",")
		case len(values) > 1:
			_, err = single(h, f.HeaderName()) // the error names the header as it is documented
		}
		if v == "" && err == nil && f.Bare != "" {
			if v, err = single(h, f.Bare); f.list() {
				v, err = strings.Join(h[canonical(f.Bare)], ","), nil
			}
		}
		if err != nil {
			return Credential{}, err
		}
		if v != "" {
			if c.Fields == nil {
				c.Fields = make(map[string]string, len(p.Fields))
			}
			c.Fields[f.Name] = v
		}
	}
	return c, nil
}

// list reports whether the field is a comma list, so that its header may come on several
// lines (RFC 9110 §5.3).
func (f *Field) list() bool { return f.Name == "anthropic_beta" || f.Name == "openai_beta" }

// single is the value of a header; "" if it is absent.
func single(h http.Header, name string) (string, error) {
	values := h[canonical(name)]
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", fault.Invalid(name, "The header %s must be sent once", name)
	}
	return values[0], nil
}

// URLHeader is the name of a header of h that sets a provider's address; ""
// when there is none.
func URLHeader(h http.Header) string {
	for _, name := range []string{"x-gateway-azure-foundry-url", "x-gateway-huggingface-base-url", "x-gateway-databricks-workspace", "x-gateway-snowflake-account", "x-gateway-azure-resource-name"} {
		if h.Get(name) != "" {
			return name
		}
	}
	return ""
}

// Or returns c, with missing parts taken from other.
func (c Credential) Or(other Credential) Credential {
	if c.Key == "" {
		c.Key = other.Key
	}
	switch {
	case len(c.Fields) == 0:
		c.Fields = other.Fields
	case len(other.Fields) > 0:
		merged := make(map[string]string, len(c.Fields)+len(other.Fields))
		maps.Copy(merged, other.Fields)
		maps.Copy(merged, c.Fields)
		c.Fields = merged
	}
	if c.Deployments == nil {
		c.Deployments = other.Deployments
	}
	if c.CustomHost == "" {
		c.CustomHost = other.CustomHost
	}
	if c.CustomHeaders == nil {
		c.CustomHeaders = other.CustomHeaders
	}
	return c
}

// bearerToken removes the Bearer prefix, in any case, and no other.
func bearerToken(v string) string {
	if len(v) > 7 && strings.EqualFold(v[:7], "bearer ") {
		return strings.TrimSpace(v[7:])
	}
	return v
}

// CredentialFromConfig makes a credential from a key and from fields as they are in an
// integration's configurations or in a config target. Names that the provider does not
// have and values of a wrong type are omitted: Validate reports them when they are saved,
// and URL reports missing ones.
func CredentialFromConfig(p *Provider, key string, cfg map[string]any) Credential {
	c := Credential{Key: key, Fields: map[string]string{}}
	for name, value := range cfg {
		switch name {
		case "custom_host":
			c.CustomHost, _ = value.(string)
			continue
		case "custom_headers":
			c.CustomHeaders, _ = asTextMap(name, value)
			continue
		}
		f, ok := p.Field(name)
		if !ok {
			continue
		}
		if f.Form == List {
			c.Deployments, _ = asDeployments(name, value)
			continue
		}
		// The name wins over an alias.
		if text, err := asText(name, value); err == nil && text != "" && (name == f.Name || c.Fields[f.Name] == "") {
			c.Fields[f.Name] = text
		}
	}
	return c
}

// asText turns a value into the text that a template or a header needs.
func asText(field string, value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case json.Number:
		return v.String(), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case map[string]any:
		b, err := json.Marshal(v)
		return string(b), err
	}
	return "", fault.Invalid(field, "%s must be a string", field)
}

func asTextMap(field string, value any) (map[string]string, error) {
	if texts, ok := value.(map[string]string); ok {
		return texts, nil
	}
	object, ok := value.(map[string]any)
	if text, sealed := value.(string); sealed { // it is the text that was sealed
		ok = json.Unmarshal([]byte(text), &object) == nil && object != nil
	}
	if !ok {
		return nil, fault.Invalid(field, "%s %s", field, TextMap.rule())
	}
	texts := make(map[string]string, len(object))
	for name, v := range object {
		text, ok := v.(string)
		if !ok {
			return nil, fault.Invalid(field+"."+name, "%s.%s must be a string", field, name)
		}
		texts[name] = text
	}
	return texts, nil
}

// asDeployments reads Azure deployments, with the field names of an integration or of a
// config target.
func asDeployments(field string, value any) ([]Deployment, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, fault.Invalid(field, "%s %s", field, List.rule())
	}
	var all []Deployment
	for i, item := range list {
		object, ok := item.(map[string]any)
		if !ok {
			return nil, fault.Invalid(fmt.Sprintf("%s[%d]", field, i), "%s[%d] must be an object", field, i)
		}
		d := Deployment{
			Name:       text(object, "azure_deployment_name", "deployment_id"),
			Alias:      text(object, "alias"),
			APIVersion: text(object, "azure_api_version", "api_version"),
			Model:      text(object, "azure_model_slug"),
		}
		d.Default, _ = object["is_default"].(bool)
		if !pathSegment(d.Name) {
			return nil, fault.Invalid(fmt.Sprintf("%s[%d].azure_deployment_name", field, i), "the deployment's name %s", PathSegment.rule())
		}
		if d.APIVersion != "" && (!pathSegment(d.APIVersion) || len(d.APIVersion) > 30) {
			return nil, fault.Invalid(fmt.Sprintf("%s[%d].azure_api_version", field, i), "must be at most 30 letters, digits and . _ ~ : -")
		}
		all = append(all, d)
	}
	return all, nil
}

func text(object map[string]any, names ...string) string {
	for _, name := range names {
		if s, ok := object[name].(string); ok && s != "" {
			return s
		}
	}
	return ""
}
