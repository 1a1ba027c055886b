// Package organisation is the family of what an organisation sets for all of its
// workspaces.
package organisation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/tenant"
)

const (
	path   = "/admin/organisation/settings"
	object = "organisation-settings"
)

// New makes the family.
func New() admin.Family {
	route := admin.Route{Path: path, Where: admin.InOrganisation, Role: admin.Admin, Resource: "organisation_settings"}
	get, put := route, route
	get.Method, get.Name, get.Scopes = "GET", "getOrganisationSettings", []string{"organisation_settings.read"}
	get.Doc, get.Answer, get.Do = "Read the settings of the organisation.", answer(), read
	put.Method, put.Name, put.Scopes = "PUT", "updateOrganisationSettings", []string{"organisation_settings.update"}
	put.Doc = "Change settings of the organisation: absent sections and members stay, null sets the standard. Requests go by them within 2 seconds."
	put.Body, put.BodyMode, put.Action = sections(), admin.PartialBody, audit.Update
	put.Answer, put.Do = admin.Schema{"type": "object"}, update
	return admin.Family{Name: "organisation", Doc: "Settings of the organisation that requests of every workspace go by.", Routes: []admin.Route{get, put}}
}

// Names of the sections.
const (
	security = "data_plane_security_settings"
	logging  = "request_logging"
	caching  = "cache_settings"
	budgets  = "budget_settings"
)

func sections() []admin.Field {
	return []admin.Field{
		{Name: security, Type: admin.Object, Doc: "What requests may bring with them.", Fields: []admin.Field{
			{Name: "block_inline_config", Type: admin.Boolean, Default: true, Doc: "Refuse inline configs, bare provider names, custom hosts, provider URLs and forwarded headers of requests."},
		}},
		{Name: logging, Type: admin.Object, Doc: "What is kept of requests.", Fields: []admin.Field{
			{Name: "mode", Type: admin.String, Enum: []string{tenant.LogFull, tenant.LogMetrics}, Default: tenant.LogFull, Doc: "full keeps bodies; metrics keeps none."},
			{Name: "enforce_debug", Type: admin.Boolean, Doc: "Takes the place of the header x-gateway-debug of every request; null leaves it to requests."},
		}},
		{Name: caching, Type: admin.Object, Doc: "How answers are used again.", Fields: []admin.Field{
			{Name: "max_age", Type: admin.Integer, Min: tenant.MinCacheMaxAge, Max: tenant.MaxCacheMaxAge, Doc: "Seconds that an answer is used where a config does not say, and the most where it does; null: 604800, and no bound but that of configs."},
		}},
		{Name: budgets, Type: admin.Object, Doc: "What holds for every budget.", Fields: []admin.Field{
			{Name: "unpriced", Type: admin.String, Enum: []string{tenant.UnpricedRefuse, tenant.UnpricedAllow}, Default: tenant.UnpricedRefuse, Doc: "Whether models without a price may be called while a cost budget is in force."},
		}},
	}
}

// answer is the schema of the settings: every section with every member.
func answer() admin.Schema {
	strict := func(members map[string]admin.Schema) admin.Schema {
		s := admin.ObjectSchema(members)
		s["required"], s["additionalProperties"] = slices.Sorted(maps.Keys(members)), false
		return s
	}
	one := func(of ...string) admin.Schema { return admin.Schema{"type": "string", "enum": of} }
	return strict(map[string]admin.Schema{
		"object": {"const": object}, "organisation_id": {"type": "string"},
		"last_updated_at": {"type": []string{"string", "null"}, "format": "date-time"},
		security:          strict(map[string]admin.Schema{"block_inline_config": {"type": "boolean"}}),
		logging: strict(map[string]admin.Schema{
			"mode": one(tenant.LogFull, tenant.LogMetrics), "enforce_debug": {"type": []string{"boolean", "null"}},
		}),
		caching: strict(map[string]admin.Schema{"max_age": {"type": []string{"integer", "null"}}}),
		budgets: strict(map[string]admin.Schema{"unpriced": one(tenant.UnpricedRefuse, tenant.UnpricedAllow)}),
	})
}

// find reads the organisation. One that is not stored has the standards.
func find(get func(id string) (resource.Record, bool, error), c *admin.Call) (resource.Record, *tenant.Organisation, error) {
	id := c.Organisation().Org
	c.About(id)
	rec, ok, err := get(id)
	if err != nil {
		return rec, nil, err
	}
	if !ok {
		rec = resource.Record{Scope: c.Organisation(), Kind: tenant.KindOrganisation, ID: id, Name: id, Status: tenant.StatusActive}
		return rec, &tenant.Organisation{Settings: tenant.Settings{BlockInlineConfig: true}}, nil
	}
	org, err := tenant.DecodeOrganisation(rec)
	return rec, org, err
}

func read(c *admin.Call) (any, error) {
	rec, org, err := find(func(id string) (resource.Record, bool, error) {
		return c.Resources.Get(c.Context, c.Organisation(), tenant.KindOrganisation, id)
	}, c)
	if err != nil {
		return nil, err
	}
	s := &org.Settings
	return map[string]any{
		"object": object, "organisation_id": rec.ID, "last_updated_at": admin.FormatTime(rec.Updated),
		security: map[string]any{"block_inline_config": s.BlockInlineConfig},
		logging:  map[string]any{"mode": cmp.Or(s.RequestLogging, tenant.LogFull), "enforce_debug": s.EnforceDebug},
		caching:  map[string]any{"max_age": orNull(s.CacheMaxAge)},
		budgets:  map[string]any{"unpriced": cmp.Or(s.Unpriced, tenant.UnpricedRefuse)},
	}, nil
}

func orNull(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

func update(c *admin.Call) (any, error) {
	return nil, c.Change(func(tx *resource.Tx) error {
		rec, org, err := find(func(id string) (resource.Record, bool, error) {
			return tx.Get(c.Organisation(), tenant.KindOrganisation, id)
		}, c)
		if err != nil {
			return err
		}
		if err := apply(c.Body, &org.Settings); err != nil {
			return err
		}
		if rec.Body, err = json.Marshal(org); err != nil {
			return fmt.Errorf("organisation: encode: %w", err)
		}
		rec.UpdatedBy = c.Caller.KeyID
		if c.Caller.UserID != "" {
			rec.UpdatedBy = c.Caller.UserID
		}
		if rec.Rev == 0 {
			return tx.Create(&rec)
		}
		return tx.Update(&rec)
	})
}

// apply puts the sections of a body into the settings.
func apply(body admin.Values, s *tenant.Settings) error {
	for _, section := range sections() {
		var given map[string]json.RawMessage
		if err := body.Into(section.Name, &given); err != nil {
			return err
		}
		for _, member := range section.Fields {
			raw, ok := given[member.Name]
			if !ok && !body.Null(section.Name) {
				continue
			}
			if err := set(s, section.Name+"."+member.Name, raw); err != nil {
				return err
			}
		}
	}
	return nil
}

// set changes one setting. No value and null are its standard.
func set(s *tenant.Settings, name string, raw json.RawMessage) error {
	into := map[string]any{
		security + ".block_inline_config": &s.BlockInlineConfig,
		logging + ".mode":                 &s.RequestLogging,
		logging + ".enforce_debug":        &s.EnforceDebug,
		caching + ".max_age":              &s.CacheMaxAge,
		budgets + ".unpriced":             &s.Unpriced,
	}[name]
	if raw == nil || string(raw) == "null" {
		switch v := into.(type) {
		case *bool:
			*v = true
		case *string:
			*v = ""
		case **bool:
			*v = nil
		case *int64:
			*v = 0
		}
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fault.Invalid(name, "does not have the expected form")
	}
	return nil
}
