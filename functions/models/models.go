// Package models is the family that lists what a workspace can call: the catalogue
// of its saved providers, or a provider's own list when a request names one.
package models

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/provider/modelmeta"
	"gateway/shared/relay"
	"gateway/shared/resource"
	"gateway/shared/tenant"
	"gateway/shared/wire"
)

// Routes are the family's routes.
func Routes() []relay.Route {
	return []relay.Route{listed(), one("GET", "retrieveModel"), one("DELETE", "deleteModel")}
}

// one is a route to a provider's own model, which @slug/model names with its
// saved provider. Google's clients read a model in their format, and never delete one.
func one(method, name string) relay.Route {
	own := relay.Route{
		Method: method, Path: "/models/{model}", Name: name, Endpoint: "proxy", Shape: relay.Raw, Scope: "completions.write",
		Free: true, NoOutput: true,
	}
	if method == "GET" {
		google := listed()
		google.Path, google.Name = own.Path, name
		own.Google = &google
	}
	return own
}

// listed is the route of the list.
func listed() relay.Route {
	return relay.Route{
		Method: "GET", Path: "/models", Endpoint: "models", Shape: relay.Listing,
		Scope: "models.list", OrScopes: []string{"completions.write", "virtual_keys.list"},
		Operation: provider.ModelsList, NoOutput: true, Handler: &relay.ModelList{List: list},
	}
}

// model is one callable model.
type model struct {
	slug, name string // @slug/name
	service    string // provider type
	created    int64
}

// list answers with the catalogue: {object, data:[{id,object,created,owned_by}],
// total_count}.
func list(c *relay.Caller) ([]byte, error) {
	q, err := readQuery(c.Query)
	if err != nil {
		return nil, err
	}
	all, err := callable(c)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m model) bool {
		return q.service != "" && m.service != q.service || q.provider != "" && m.slug != q.provider ||
			c.Slugs != nil && !slices.Contains(c.Slugs, m.slug)
	})
	slices.SortFunc(all, q.compare)
	switch {
	case c.Anthropic:
		return anthropicPage(all, c.Slugs != nil, c.Query)
	case c.Google:
		return googlePage(all, c.Model, c.Query)
	}
	total := len(all)
	all = all[min(q.offset, total):]
	if q.limit > 0 && len(all) > q.limit {
		all = all[:q.limit]
	}
	return encode(all, total), nil
}

// callable are the models of all saved providers that the workspace may use now.
func callable(c *relay.Caller) ([]model, error) {
	type saved struct {
		rec  resource.Record
		inst *provider.Instance
	}
	instances, err := resource.LoadAll(c.Context, c.View, c.Scope, provider.KindProvider, func(rec resource.Record) (saved, error) {
		inst, err := provider.DecodeInstance(rec)
		return saved{rec, inst}, err
	})
	if err != nil {
		return nil, err
	}
	org, err := tenant.LoadSettings(c.Context, c.View, c.Scope)
	if err != nil {
		return nil, err
	}
	var all []model
	for _, s := range instances {
		in, ok, err := resource.Load(c.Context, c.View, s.inst.IntegrationScope(c.Scope), provider.KindIntegration, s.inst.IntegrationID, provider.DecodeIntegration)
		if err != nil {
			return nil, err
		}
		if !ok || s.inst.IntegrationOrg && !in.Access(c.Scope.Workspace).Enabled {
			continue
		}
		for _, name := range in.Callable(pricing.Default().Models(in.AIProviderID)) {
			if !org.Settings.AllowsModel(in.AIProviderID, name) {
				continue
			}
			all = append(all, model{slug: s.rec.Slug, name: name, service: in.AIProviderID, created: s.rec.Created.Unix()})
		}
	}
	return all, nil
}

type query struct {
	service, provider string
	limit, offset     int
	compare           func(a, b model) int
}

func readQuery(v url.Values) (query, error) {
	q := query{service: v.Get("ai_service"), provider: strings.TrimPrefix(v.Get("provider"), "@")}
	var err error
	if q.limit, err = number(v, "limit"); err != nil {
		return q, err
	}
	if q.offset, err = number(v, "offset"); err != nil {
		return q, err
	}
	byName := func(a, b model) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.slug, b.slug)) }
	switch v.Get("sort") {
	case "", "name":
		q.compare = byName
	case "provider":
		q.compare = func(a, b model) int { return cmp.Or(cmp.Compare(a.slug, b.slug), byName(a, b)) }
	case "ai_service":
		q.compare = func(a, b model) int { return cmp.Or(cmp.Compare(a.service, b.service), byName(a, b)) }
	default:
		return q, fault.Invalid("sort", "must be name, provider or ai_service")
	}
	switch v.Get("order") {
	case "", "asc":
	case "desc":
		up := q.compare
		q.compare = func(a, b model) int { return up(b, a) }
	default:
		return q, fault.Invalid("order", "must be asc or desc")
	}
	return q, nil
}

func number(v url.Values, name string) (int, error) {
	if v.Get(name) == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(v.Get(name))
	if err != nil || n < 0 {
		return 0, fault.Invalid(name, "must be a whole number that is not negative")
	}
	return n, nil
}

func encode(models []model, total int) []byte {
	out := []byte(`{"object":"list","data":[`)
	for i := range models {
		m := &models[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"id":`...)
		out = wire.AppendJSONString(out, "@"+m.slug+"/"+m.name)
		out = fmt.Appendf(out, `,"object":"model","created":%d,"owned_by":`, m.created)
		out = wire.AppendJSONString(out, m.service)
		out = append(m.appendKnown(m.appendPrice(out)), '}')
	}
	return fmt.Appendf(out, `],"total_count":%d}`, total)
}

// googlePage answers as Google's own list does: {models:[{name,displayName,...}], nextPageToken},
// or with one model. The token is the name of the next model.
func googlePage(all []model, only string, q url.Values) ([]byte, error) {
	size, err := number(q, "pageSize")
	if err != nil {
		return nil, err
	}
	id := func(m *model) string { return "@" + m.slug + "/" + m.name }
	from := 0
	if token := q.Get("pageToken"); token != "" {
		if from = slices.IndexFunc(all, func(m model) bool { return id(&m) == token }); from < 0 {
			return nil, fault.Invalid("pageToken", "must be the nextPageToken of the page before")
		}
	}
	out := []byte(`{"models":[`)
	for i := from; i < len(all); i++ {
		m := &all[i]
		switch {
		case only == id(m), only == m.name:
			return relay.AppendGoogleModel(nil, m.service, only, m.name), nil
		case only != "":
			continue
		case size > 0 && i == from+size:
			return append(wire.AppendJSONString(append(out, `],"nextPageToken":`...), id(m)), '}'), nil
		case i > from:
			out = append(out, ',')
		}
		out = relay.AppendGoogleModel(out, m.service, id(m), m.name)
	}
	if only != "" {
		return nil, relay.NoModel(only)
	}
	return append(out, `]}`...), nil
}

// appendPrice adds the list price, in US cents per token or unit.
func (m *model) appendPrice(out []byte) []byte {
	d, ok := pricing.Default().Document(m.service, m.name)
	if !ok {
		return out
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return out // numbers and names: it cannot fail
	}
	return append(append(out, `,"pricing":`...), raw...)
}

// appendKnown adds the context window, input modalities and end of life, as far as they are
// known.
func (m *model) appendKnown(out []byte) []byte {
	k := modelmeta.Of(m.service, m.name)
	if k == nil {
		return out
	}
	if k.Window > 0 {
		out = fmt.Appendf(out, `,"context_window":%d`, k.Window)
	}
	if k.Output > 0 {
		out = fmt.Appendf(out, `,"max_output_tokens":%d`, k.Output)
	}
	out = append(out, `,"input_modalities":["text"`...)
	for _, in := range k.Inputs {
		out = wire.AppendJSONString(append(out, ','), in)
	}
	out = append(out, ']')
	if !k.Deprecated.IsZero() {
		out = k.Deprecated.AppendFormat(out, `,"deprecation_date":"2006-01-02"`)
	}
	if !k.Shutdown.IsZero() {
		out = k.Shutdown.AppendFormat(out, `,"shutdown_date":"2006-01-02"`)
	}
	return out
}
