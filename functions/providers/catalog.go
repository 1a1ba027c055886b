package providers

import (
	"slices"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/provider"
	"gateway/shared/provider/modelmeta"
)

// catalogSlug is the last segment of the catalog's path. No provider can have it as its slug.
const catalogSlug = "catalog"

// catalogEntry is a provider that integrations can name.
type catalogEntry struct {
	ID           string         `json:"id" doc:"ai_provider_id of integrations, provider of config targets."`
	Aliases      []string       `json:"aliases" doc:"Other ids of the same provider."`
	Name         string         `json:"name"`
	BaseURL      *string        `json:"base_url" doc:"With fields in braces; null if custom_host is required."`
	DefaultModel *string        `json:"default_model" doc:"Model of requests that name none."`
	Auth         []authForm     `json:"auth" doc:"Ways to authenticate, of which an integration uses one."`
	Fields       []catalogField `json:"fields" doc:"Configurations besides api_key, custom_host and custom_headers, which all providers accept."`
	Operations   []string       `json:"operations" doc:"What it serves; empty for providers that only pass-through reaches."`
	Ending       []endingModel  `json:"ending_models" doc:"Models with an announced end of life, by its day; others are unknown or have none."`
}

// endingModel is a model with an announced end of life.
type endingModel struct {
	Model       string  `json:"model"`
	Deprecation *string `json:"deprecation_date" doc:"Day of the notice, such as 2026-06-11."`
	Shutdown    *string `json:"shutdown_date" doc:"Day from which the provider rejects it."`
}

// authForm is a way to authenticate at a provider.
type authForm struct {
	Scheme   string   `json:"scheme" enum:"none,header,query,azure,aws,google,oci"`
	Field    *string  `json:"field" doc:"The configuration that selects this way, with value; null if there is one way."`
	Value    *string  `json:"value"`
	Required []string `json:"required" doc:"Fields that an integration must have; api_key is its key."`
}

// catalogField is a field of a provider's credential.
type catalogField struct {
	Name    string   `json:"name"`
	Aliases []string `json:"aliases"`
	Header  *string  `json:"header" doc:"Request header with the same meaning."`
	Secret  bool     `json:"secret" doc:"Whether it is sealed and masked."`
	Rule    string   `json:"rule" doc:"Accepted values."`
	Values  []string `json:"values" doc:"All accepted values; empty if there is no list."`
}

// catalogRoute lists all providers.
func catalogRoute() admin.Route {
	return admin.Route{Method: "GET", Path: "/providers/" + catalogSlug, Name: "listProviderCatalog", Scopes: []string{admin.AnyScope}, Level: admin.Shared,
		Doc:        "List every provider that the gateway supports, with its fields, ways to authenticate and operations.",
		Query:      []admin.Field{{Name: "operation", Type: admin.String, Max: 64, Doc: "Only providers that serve this operation, such as chat."}},
		ResponseOf: func() admin.Schema { return admin.ListSchema(admin.SchemaOf[catalogEntry]()) },
		Do: func(c *admin.Call) (any, error) {
			all := []catalogEntry{}
			for _, p := range provider.All() {
				if op := c.Query.Text("operation"); op == "" || p.Serves(provider.Operation(op)) {
					all = append(all, describeProvider(p))
				}
			}
			return admin.Members{"object": "list", "total": len(all), "data": all}, nil
		}}
}

func describeProvider(p *provider.Provider) catalogEntry {
	e := catalogEntry{
		ID: p.ID, Aliases: listed(p.Aliases), Name: p.Name, BaseURL: admin.NullIfZero(p.Base), DefaultModel: admin.NullIfZero(p.Model),
		Auth: authForms(p), Fields: []catalogField{}, Operations: []string{}, Ending: []endingModel{},
	}
	for _, m := range modelmeta.EndingOf(p.ID) {
		e.Ending = append(e.Ending, endingModel{m.Name, dayOf(m.Deprecated), dayOf(m.Shutdown)})
	}
	for i := range p.Fields {
		f := &p.Fields[i]
		e.Fields = append(e.Fields, catalogField{f.Name, listed(f.Aliases), admin.NullIfZero(f.HeaderName()), f.Secret, f.Rule(), listed(f.Values)})
	}
	for _, r := range p.Routes {
		if op := string(r.Op); !slices.Contains(e.Operations, op) {
			e.Operations = append(e.Operations, op)
		}
	}
	slices.Sort(e.Operations)
	return e
}

// dayOf returns a day as text; nil for none.
func dayOf(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	day := t.Format(time.DateOnly)
	return &day
}

var schemes = map[provider.Scheme]string{
	provider.NoAuth: "none", provider.HeaderAuth: "header", provider.QueryAuth: "query", provider.AzureAuth: "azure",
	provider.SigV4Auth: "aws", provider.GoogleOAuth: "google", provider.OCIAuth: "oci",
}

// authForms returns the ways to authenticate: one for each value of the field on which
// other fields depend, in its order, or a single one.
func authForms(p *provider.Provider) []authForm {
	mode, ok := modeField(p)
	if !ok {
		return []authForm{{Scheme: schemes[p.Auth.Scheme], Required: requiredFields(p, "", "")}}
	}
	var out []authForm
	for _, value := range mode.Values {
		out = append(out, authForm{schemes[p.Auth.Scheme], &mode.Name, &value, requiredFields(p, mode.Name, value)})
	}
	return out
}

// modeField returns the field with the values that other fields depend on.
func modeField(p *provider.Provider) (*provider.Field, bool) {
	needs := []string{p.Key}
	for i := range p.Fields {
		needs = append(needs, p.Fields[i].Need)
	}
	for _, need := range needs {
		name, _, depends := strings.Cut(need, "=")
		if f, ok := p.Field(name); ok && depends && len(f.Values) > 0 {
			return f, true
		}
	}
	return nil, false
}

// requiredFields returns the fields that an integration must have when a field has a value.
func requiredFields(p *provider.Provider, name, value string) []string {
	out := []string{}
	add := func(field, need string) {
		of, values, depends := strings.Cut(need, "=")
		if !depends && need != "" || depends && of == name && slices.Contains(strings.Split(values, "|"), value) {
			out = append(out, field)
		}
	}
	add("api_key", p.Key)
	for i := range p.Fields {
		add(p.Fields[i].Name, p.Fields[i].Need)
	}
	if p.Base == "" {
		out = append(out, "custom_host")
	}
	return out
}

// listed returns a list that is encoded as [] if it is empty.
func listed(values []string) []string {
	if values == nil {
		return []string{}
	}
	return values
}
