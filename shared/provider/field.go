package provider

import (
	"net/url"
	"strings"
)

// Field is one field of a provider's credential. In a request it is the header
// x-gateway-<name with dashes>; in a config target and in an integration's configurations
// it has the name Name or an alias.
type Field struct {
	Name    string
	Header  string   // end of the x-gateway- header if it is not Name with dashes; "-": none
	Bare    string   // header that is accepted without the prefix too
	Aliases []string // other names in configs and configurations
	Form    Form
	Secret  bool // sealed and masked
	// Need specifies when an integration must have the field: "" never, "always",
	// or "other=value" when another field has a value.
	Need   string
	Values []string // allowed values; nil means any

	header string // HeaderName in canonical form
}

// Form is what a value may look like. Everything that becomes part of a URL has a strict
// form, so that no value can change the host or leave its segment.
type Form uint8

const (
	Text        Form = iota // any text that a header can carry
	HostLabel               // one label of a host name: letters, digits, dashes
	HostLabels              // labels and dots, underscores allowed: an account
	PathSegment             // letters, digits and . _ ~ : - ; not . or ..
	BaseURL                 // https URL without query; the caller checks the host
	JSONObject              // an object, or its text
	Flag                    // true or false
	List                    // an array of objects
	TextMap                 // an object of strings
	TextOrFlag              // a text, or true or false
)

const (
	headerPrefix = "x-gateway-"
	always       = "always"
)

// HeaderName is the request header that carries the field; "" if none does.
func (f *Field) HeaderName() string {
	switch f.Header {
	case "-":
		return ""
	case "":
		return headerPrefix + strings.ReplaceAll(f.Name, "_", "-")
	}
	return headerPrefix + f.Header
}

// fits reports whether value has the field's form.
func (form Form) fits(value string) bool {
	switch form {
	case HostLabel:
		return hostLabel(value, false)
	case HostLabels:
		for label := range strings.SplitSeq(value, ".") {
			if !hostLabel(label, true) {
				return false
			}
		}
		return len(value) <= 200
	case PathSegment:
		return pathSegment(value)
	case BaseURL:
		return baseURL(value)
	case Flag:
		return value == "true" || value == "false"
	}
	return true
}

// Rule describes in words which values the field accepts.
func (f *Field) Rule() string { return f.Form.rule() }

// rule describes in words what the form demands.
func (form Form) rule() string {
	return [...]string{
		Text:        "must be a text without control characters",
		HostLabel:   "must be 1 to 63 letters, digits and inner dashes",
		HostLabels:  "must be letters, digits, dashes, underscores and single dots",
		PathSegment: "must be 1 to 128 letters, digits and . _ ~ : -",
		BaseURL:     "must be an https URL without user info, query or fragment",
		JSONObject:  "must be a JSON object",
		Flag:        "must be true or false",
		List:        "must be an array of objects",
		TextMap:     "must be an object with string values",
		TextOrFlag:  "must be a text without control characters, or true or false",
	}[form]
}

func alphanumeric(c byte) bool {
	return c-'0' <= 9 || c-'a' < 26 || c-'A' < 26
}

func hostLabel(s string, underscore bool) bool {
	if len(s) == 0 || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if !alphanumeric(s[i]) && s[i] != '-' && (s[i] != '_' || !underscore) {
			return false
		}
	}
	return true
}

func pathSegment(s string) bool {
	if len(s) == 0 || len(s) > 128 || s == "." || s == ".." {
		return false
	}
	for i := range len(s) {
		if !alphanumeric(s[i]) && strings.IndexByte("._~:-", s[i]) < 0 {
			return false
		}
	}
	return true
}

func baseURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= 2048 && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" &&
		u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && u.Opaque == ""
}

// Field finds a field by its name or an alias.
func (p *Provider) Field(name string) (*Field, bool) {
	for i := range p.Fields {
		f := &p.Fields[i]
		if f.Name == name {
			return f, true
		}
		for _, alias := range f.Aliases {
			if alias == name {
				return f, true
			}
		}
	}
	return nil, false
}

// SecretFields names the fields that must be sealed, which always include api_key.
func (p *Provider) SecretFields() []string {
	var names []string
	for _, f := range p.Fields {
		if f.Secret {
			names = append(names, f.Name)
		}
	}
	return names
}

var (
	anthropicFields = []Field{
		{Name: "anthropic_beta", Bare: "anthropic-beta"},
		{Name: "anthropic_version", Bare: "anthropic-version"},
		{Name: "anthropic_inspect_stream_for_overloaded_error", Header: "-", Form: Flag},
	}
	azureAuthFields = []Field{
		{Name: "azure_auth_mode", Need: always, Values: []string{"default", "entra", "managed", "entraFederated", "workload"}},
		{Name: "azure_ad_token", Secret: true},
		{Name: "azure_entra_tenant_id", Form: PathSegment, Need: "azure_auth_mode=entra"},
		{Name: "azure_entra_client_id", Need: "azure_auth_mode=entra"},
		{Name: "azure_entra_client_secret", Secret: true, Need: "azure_auth_mode=entra"},
		{Name: "azure_entra_scope"},
		{Name: "azure_managed_client_id"},
		{Name: "azure_workload_tenant_id", Header: "-", Form: PathSegment},
		{Name: "azure_workload_client_id"},
		{Name: "is_key_required", Header: "-", Form: Flag},
	}
	awsFields = []Field{
		{Name: "aws_auth_type", Need: always, Values: []string{"accessKey", "assumedRole", "serviceRole", "apiKey"}},
		{Name: "aws_region", Form: HostLabel, Need: always},
		{Name: "aws_access_key_id", Need: "aws_auth_type=accessKey"},
		{Name: "aws_secret_access_key", Secret: true, Need: "aws_auth_type=accessKey"},
		{Name: "aws_session_token", Secret: true},
		{Name: "aws_role_arn", Need: "aws_auth_type=assumedRole"},
		{Name: "aws_external_id"},
	}
)

func fields(sets ...[]Field) []Field {
	var all []Field
	for _, set := range sets {
		all = append(all, set...)
	}
	return all
}
