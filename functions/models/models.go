// Package models is the family that lists what a workspace can call: the catalog
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
	"time"

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
		Method: method, Path: "/models/{model}", Name: name, Endpoint: "proxy", BodyMode: relay.Raw, Scope: "completions.write",
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
		Method: "GET", Path: "/models", Endpoint: "models", BodyMode: relay.Listing,
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

// list responds with the catalog: {object, data:[{id,object,created,owned_by}],
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
			return nil, fault.Invalid("pageToken", "must be the nextPageToken of the previous page")
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

// anthropicPage answers as Anthropic's own list does: {data:[{type,id,display_name,
// created_at}], has_more, first_id, last_id}, with its paging. routed: the request
// specifies which saved provider is meant, so that models go by their own names; else
// they name it.
func anthropicPage(all []model, routed bool, q url.Values) ([]byte, error) {
	ids := make([]string, 0, len(all))
	page := all[:0]
	for _, m := range all {
		id := m.name
		if !routed {
			id = "@" + m.slug + "/" + m.name
		}
		if n := len(ids); n > 0 && ids[n-1] == id {
			continue // two providers of the route have it
		}
		ids, page = append(ids, id), append(page, m)
	}
	limit, err := number(q, "limit")
	if err != nil {
		return nil, err
	}
	from, to, err := between(ids, q, limit)
	if err != nil {
		return nil, err
	}
	more := to < len(ids)
	if q.Get("before_id") != "" {
		more = from > 0
	}
	out := []byte(`{"data":[`)
	for i := from; i < to; i++ {
		if i > from {
			out = append(out, ',')
		}
		out = appendAnthropic(out, ids[i], &page[i])
	}
	out = append(out, `],"has_more":`...)
	if more {
		out = append(out, "true"...)
	} else {
		out = append(out, "false"...)
	}
	out = append(out, `,"first_id":`...)
	if from == to {
		return append(out, `null,"last_id":null}`...), nil
	}
	out = wire.AppendJSONString(out, ids[from])
	out = append(out, `,"last_id":`...)
	return append(wire.AppendJSONString(out, ids[to-1]), '}'), nil
}

// between returns the part of a list that a page requests: at most limit entries (0: all),
// after after_id or before before_id.
func between(ids []string, q url.Values, limit int) (from, to int, err error) {
	to = len(ids)
	find := func(name string) (int, error) {
		i := slices.Index(ids, q.Get(name))
		if i < 0 {
			return 0, fault.Invalid(name, "must be the id of a model of the list")
		}
		return i, nil
	}
	switch {
	case q.Get("after_id") != "" && q.Get("before_id") != "":
		return 0, 0, fault.Invalid("after_id", "cannot be sent together with before_id")
	case q.Get("after_id") != "":
		if from, err = find("after_id"); err != nil {
			return 0, 0, err
		}
		from++
	case q.Get("before_id") != "":
		if to, err = find("before_id"); err != nil {
			return 0, 0, err
		}
		if limit > 0 {
			from = max(0, to-limit)
		}
	}
	if limit > 0 {
		to = min(to, from+limit)
	}
	return from, to, nil
}

func appendAnthropic(out []byte, id string, m *model) []byte {
	out = append(out, `{"type":"model","id":`...)
	out = wire.AppendJSONString(out, id)
	out = append(out, `,"display_name":`...)
	out = wire.AppendJSONString(out, displayName(m.name))
	out = append(out, `,"created_at":"`...)
	out = time.Unix(m.created, 0).UTC().AppendFormat(out, time.RFC3339)
	out = append(out, '"')
	if k := modelmeta.Of(m.service, m.name); k != nil {
		if k.Window > 0 && k.Output > 0 {
			out = fmt.Appendf(out, `,"max_input_tokens":%d,"max_tokens":%d`, k.Window, k.Output)
		}
		if !k.Deprecated.IsZero() {
			out = k.Deprecated.AppendFormat(out, `,"deprecated_at":"`+time.RFC3339+`"`)
		}
		if !k.Shutdown.IsZero() {
			out = k.Shutdown.AppendFormat(out, `,"retires_at":"`+time.RFC3339+`"`)
		}
	}
	return append(out, '}')
}

// displayName is what people call a model: Claude Sonnet 4.5 for
// us.anthropic.claude-sonnet-4-5-20250929-v1:0. Others go by their name.
func displayName(name string) string {
	i := strings.Index(name, "claude-")
	if i < 0 {
		return name
	}
	var words []string
	number := false // the word before is one
	for word := range strings.FieldsFuncSeq(name[i:], func(r rune) bool { return r == '-' || r == '@' || r == ':' }) {
		digits := strings.Trim(word, "0123456789.") == ""
		switch {
		case digits && len(word) >= 6, len(word) > 1 && word[0] == 'v' && strings.Trim(word[1:], "0123456789") == "":
			return strings.Join(words, " ") // the date or version of an edition
		case digits && number:
			words[len(words)-1] += "." + word
		default:
			words = append(words, strings.ToUpper(word[:1])+word[1:])
		}
		number = digits
	}
	return strings.Join(words, " ")
}
