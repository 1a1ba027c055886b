// Package policies is the family of policies: limits of usage and rates for all
// requests of a workspace that meet conditions, counted by groups.
package policies

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/resource"
)

// New makes the family.
func New(l *ledger.Ledger) admin.Family {
	f := &family{ledger: l}
	f.usage, f.rates = f.usagePolicies(), f.ratePolicies()
	return admin.Family{Name: "policies", Doc: "Policies: limits for requests of a workspace that meet conditions.", Routes: slices.Concat(f.usage.Routes(), f.rates.Routes(), f.entities(), []admin.Route{f.limitsRoute()})}
}

type family struct {
	ledger       *ledger.Ledger
	usage, rates *admin.Collection[ledger.PolicyForm]
	seen         recentCounters
}

// item and change are a policy and what happens to it.
type (
	item   = admin.Item[ledger.PolicyForm]
	change = admin.Change[ledger.PolicyForm]
)

var statusOfRead = admin.Field{Name: "status", Type: admin.String, Enum: []string{"active", resource.StatusArchived}, Default: "active", Doc: "An archived policy is read with archived only."}

// base is what both kinds have in common. listed are texts that lists filter by.
func base(object, path string, kind resource.Kind, listed ...admin.Field) *admin.Collection[ledger.PolicyForm] {
	conditions := admin.Field{Name: "conditions", Type: admin.Any, Required: true, Form: ledger.ConditionsSchema, Doc: "Conditions that counted requests must all meet.", Check: ledger.CheckConditions}
	groups := admin.Field{Name: "group_by", Type: admin.Any, Fixed: true, Form: ledger.GroupsSchema, Doc: "Keys with a separate counter for each value. Optional for policies of target mcp_tools: one counter for all.", Check: ledger.CheckGroups, Absent: []any{}}
	return &admin.Collection[ledger.PolicyForm]{
		Kind: kind, Object: object, Path: path, Param: "policyId", UUIDOnly: true,
		Scope: "policies", Level: admin.InWorkspace, WriteRole: admin.Manager,
		ArchiveOnDelete: true, ArchivedReachable: true, Authorize: may,
		List:      admin.List{Status: true, Query: listed, Match: matches(listed)},
		ReadQuery: []admin.Field{statusOfRead},
		Fields: []admin.Field{
			{Name: "name", Type: admin.String, Max: 255, Column: true}, {Name: "description"}, conditions, groups,
			{Name: "status", Type: admin.String, Enum: []string{"active", resource.StatusArchived}, Column: true, UpdateOnly: true},
		},
		Computed: []admin.ComputedField[ledger.PolicyForm]{
			{Field: admin.Field{Name: "name", Type: admin.String}, Value: func(_ *admin.Call, it item) any { return admin.OrNull(it.Name) }},
		},
		Created: &admin.Reply{Members: []string{"id", "object"}},
	}
}

// may hides archived policies from reads that do not request them, and prevents their repeated
// deletion.
func may(c *admin.Call, action string, row *resource.Row) bool {
	archived := row.Status == resource.StatusArchived
	switch action {
	case "read":
		if c.Route.Method == "GET" && c.Query.Has("status") {
			return archived == (c.Query.Text("status") == resource.StatusArchived)
		}
		return !archived
	case "delete":
		return !archived
	}
	return true
}

// matches filters by texts of list rows.
func matches(listed []admin.Field) func(*admin.Call, *resource.Row) bool {
	return func(c *admin.Call, row *resource.Row) bool {
		for i := range listed {
			if name := listed[i].Name; c.Query.HasValue(name) && row.Fields[name] != c.Query.Text(name) {
				return false
			}
		}
		return true
	}
}

// choice is a query parameter of a list.
func choice(name string, of ...string) admin.Field {
	return admin.Field{Name: name, Type: admin.String, Enum: of, Doc: "Only those of this " + name + "."}
}

// note stores the fields that lists filter by.
func note(ch *change, fields map[string]string) {
	if ch.Rec.Fields == nil {
		ch.Rec.Fields = make(map[string]string, len(fields))
	}
	for name, v := range fields {
		ch.Rec.Fields[name] = v
	}
}

func (f *family) ratePolicies() *admin.Collection[ledger.PolicyForm] {
	col := base("policy_rate_limits", "/policies/rate-limits", ledger.KindRatePolicy,
		choice("type", "requests", "tokens"), choice("unit", "rpm", "rph", "rpd", "rpw"), choice("target", ledger.TargetLLM, ledger.TargetMCPTools))
	col.Fields = append(col.Fields, admin.Field{Name: "target", Fixed: true, Absent: ledger.TargetLLM, Doc: "What is counted: model requests or tool calls."})
	col.New = func(*admin.Call) ledger.PolicyForm {
		return ledger.PolicyForm{Target: ledger.TargetLLM, Rate: &ledger.RateLimit{}}
	}
	col.Limits = &admin.Limits[ledger.PolicyForm]{Ledger: f.ledger, Place: ledger.OnPolicy, Flat: true, Rate: func(p *ledger.PolicyForm) *ledger.RateLimit {
		if p.Rate == nil {
			p.Rate = &ledger.RateLimit{}
		}
		return p.Rate
	}}
	col.Before = func(_ *admin.Call, _ *resource.Tx, ch *change) error {
		if ch.Form.Target == "" {
			ch.Form.Target = ledger.TargetLLM
		}
		note(ch, map[string]string{"type": string(ch.Form.Rate.Type), "unit": string(ch.Form.Rate.Unit), "target": ch.Form.Target})
		return nil
	}
	return col
}

func (f *family) usagePolicies() *admin.Collection[ledger.PolicyForm] {
	col := base("policy_usage_limits", "/policies/usage-limits", ledger.KindUsagePolicy, choice("type", "cost", "tokens", "requests"))
	for i := range col.Fields {
		if f := &col.Fields[i]; f.Name == "group_by" {
			f.Required, f.Absent, f.Doc = true, nil, "Keys with a separate counter for each value."
		}
	}
	col.Fields = append(col.Fields, admin.Field{Name: resetValue, Type: admin.String, Min: 1, Max: 4096, Trigger: true, UpdateOnly: true, Doc: "Value key of the counter to reset."})
	col.ReadQuery = append(col.ReadQuery, admin.Field{Name: includeUsage, Type: admin.Boolean, Default: false, Doc: "true adds the counters."})
	col.Computed = append(col.Computed, admin.ComputedField[ledger.PolicyForm]{Field: admin.Field{Name: usageMap, Type: admin.Object, Optional: true, Single: true, Doc: "With include_usage: the counters by value key.", Form: usageMapSchema}},
		admin.ComputedField[ledger.PolicyForm]{Field: admin.Field{Name: "last_reset_at", Type: admin.Timestamp, Doc: "When all counters were last reset by hand."}, Value: func(_ *admin.Call, it item) any {
			if it.Form.Limit == nil {
				return nil
			}
			return admin.FormatTime(it.Form.Limit.ResetAt)
		}})
	col.Limits = &admin.Limits[ledger.PolicyForm]{Ledger: f.ledger, Place: ledger.OnPolicy, Flat: true, Budget: func(p *ledger.PolicyForm) **ledger.UsageLimit { return &p.Limit }}
	col.Before = func(_ *admin.Call, _ *resource.Tx, ch *change) error {
		note(ch, map[string]string{"type": string(ch.Form.Limit.Type)})
		return nil
	}
	col.Committed = f.resetValue
	col.Decorate = f.decorate
	return col
}

// Names of parameters and members.
const (
	resetValue   = "reset_usage_for_value"
	includeUsage = "include_usage"
	usageMap     = "value_key_usage_map"
)

// maxEntities bounds how many counters of a policy one call looks at; further ones are
// reached by cursor.
const maxEntities = 10_000

var (
	inUnit         = admin.Schema{"type": "number", "description": "In the unit of credit_limit: US dollars, tokens or requests."}
	usageMapSchema = admin.Schema{"type": "object", "additionalProperties": admin.Closed(map[string]admin.Schema{
		"current_usage": inUnit, "reserved_usage": inUnit, "available": inUnit, "status": {"type": "string"}, "is_threshold_alerts_sent": {"type": "boolean"}, "is_exhausted_alerts_sent": {"type": "boolean"},
	})}
	entitySchema = admin.Closed(map[string]admin.Schema{
		"id": {"type": "string"}, "value_key": {"type": "string"}, "current_usage": inUnit, "reserved_usage": inUnit, "available": inUnit, "status": {"type": "string"}, "object": {"type": "string"},
	})
	rateEntitySchema = admin.Closed(map[string]admin.Schema{
		"id": {"type": "string"}, "value_key": {"type": "string"}, "current_usage": {"type": "number", "description": "Requests or tokens, by the type of the policy."}, "status": {"type": "string"},
		"window_resets_at": {"type": []string{"string", "null"}, "format": "date-time"}, "object": {"type": "string"},
	})
	paging = admin.Paging{MaxSize: 100}
)

// listSchema is a list of counters, of which there may be more than were counted.
func listSchema(entry admin.Schema) admin.Schema {
	s := admin.ListSchema(entry)
	members := s["properties"].(map[string]admin.Schema)
	members["total_is_lower_bound"] = admin.Schema{"type": "boolean", "description": "There are more than total."}
	members["next_cursor"] = admin.Schema{"type": "string", "description": "Absent on the last page."}
	return s
}

// entities are the routes of the counters of policies.
func (f *family) entities() []admin.Route {
	const below = "/{policyId}/entities"
	query := append(paging.Fields(), admin.Field{Name: "status", Type: admin.String, Enum: []string{ledger.Active, ledger.Exhausted}, Doc: "Only those of this status."},
		admin.Field{Name: "search", Type: admin.String, Min: 1, Max: 255, Doc: "Part of the value key."},
		admin.Field{Name: "cursor", Type: admin.String, Min: 1, Max: 2048, Doc: "next_cursor of the previous page, instead of current_page; total then counts from there."})
	const doc = ", by value key. total counts up to 10,000."
	return append(f.usage.ItemRoutes(
		admin.Route{Method: "GET", Path: "/policies/usage-limits" + below, Name: "listPolicyEntities", Doc: "List the counters of a usage policy" + doc, Response: listSchema(entitySchema), Query: query, Do: f.usage.WithItem("read", f.listUsage)},
		admin.Route{Method: "PUT", Path: "/policies/usage-limits" + below + "/{entityId}/reset", Name: "resetPolicyEntity", Doc: "Reset a counter of a usage policy.", Response: admin.EmptyResponse, Action: audit.Update,
			Do: f.usage.WithItem("update", f.reset)},
	), f.rates.ItemRoutes(
		admin.Route{Method: "GET", Path: "/policies/rate-limits" + below, Name: "listRatePolicyEntities", Doc: "List the counters of a rate policy in the current windows" + doc, Response: listSchema(rateEntitySchema), Query: query, Do: f.rates.WithItem("read", f.listRates)},
	)...)
}

// entityID names a counter in paths.
func entityID(valueKey string) string { return base64.RawURLEncoding.EncodeToString([]byte(valueKey)) }

// entity is a counter as lists show it.
type entity struct {
	valueKey, status string
	place            string // in the store
	shown            admin.Members
}

func (f *family) listUsage(c *admin.Call) (any, error) {
	it, err := findAny(c, f.usage)
	if err != nil {
		return nil, err
	}
	return list(c, func(after string) ([]entity, string, error) {
		all, next, err := f.ledger.Buckets(c.Context, subject(it, ""), after, maxEntities)
		out := make([]entity, len(all))
		for i, b := range all {
			s := b.Budgets[0]
			out[i] = entity{b.ValueKey, s.Status, b.Place, admin.Members{
				"id": entityID(b.ValueKey), "value_key": b.ValueKey, "current_usage": s.Limit.Type.Amount(s.Usage), "reserved_usage": s.Limit.Type.Amount(s.Reserved), "available": s.Limit.Type.Amount(s.Available()), "status": s.Status, "object": "policy_entity",
			}}
		}
		return out, next, err
	})
}

func (f *family) listRates(c *admin.Call) (any, error) {
	it, err := findAny(c, f.rates)
	if err != nil {
		return nil, err
	}
	return list(c, func(after string) ([]entity, string, error) {
		all, next, err := f.ledger.RateBuckets(c.Context, subject(it, ""), after, maxEntities)
		out := make([]entity, len(all))
		for i, b := range all {
			r, status := b.Rates[0], ledger.Active
			if r.IsFull() {
				status = ledger.Exhausted
			}
			out[i] = entity{b.ValueKey, status, b.Place, admin.Members{
				"id": entityID(b.ValueKey), "value_key": b.ValueKey, "current_usage": r.Used, "status": status,
				"window_resets_at": admin.FormatTime(r.ResetsAt), "object": "policy_entity",
			}}
		}
		return out, next, err
	})
}

// list responds with a page of the counters that read gives from a place on.
func list(c *admin.Call, read func(after string) ([]entity, string, error)) (any, error) {
	page, err := paging.Of(c.Query)
	if err != nil {
		return nil, err
	}
	after, err := placeOf(c)
	if err != nil {
		return nil, err
	}
	all, more, err := read(after)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(e entity) bool {
		return c.Query.HasValue("status") && e.status != c.Query.Text("status") || !strings.Contains(e.valueKey, c.Query.Text("search"))
	})
	part, shown := admin.Cut(all, page), []any{}
	for i := range part {
		shown = append(shown, part[i].shown)
	}
	out := admin.Members{"object": "list", "total": len(all), "data": shown}
	if more != "" {
		out["total_is_lower_bound"] = true
	}
	switch {
	case len(part) > 0 && part[len(part)-1].place != all[len(all)-1].place:
		more = part[len(part)-1].place
	case len(part) == 0 && len(all) > 0:
		more = "" // a page after the last
	}
	if more != "" {
		out["next_cursor"] = base64.RawURLEncoding.EncodeToString([]byte(more))
	}
	return out, nil
}

// placeOf returns the position at which a listing continues.
func placeOf(c *admin.Call) (string, error) {
	if !c.Query.HasValue("cursor") {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(c.Query.Text("cursor"))
	switch {
	case c.Query.HasValue("current_page"):
		return "", fault.Invalid("cursor", "cannot be given together with current_page")
	case err != nil || len(raw) == 0 || len(raw) > 1024 || !utf8.Valid(raw):
		return "", fault.Invalid("cursor", "must be a next_cursor of this list")
	}
	return string(raw), nil
}

// findAny finds a live policy; the parameter status of this route is about the counters.
func findAny(c *admin.Call, col *admin.Collection[ledger.PolicyForm]) (item, error) {
	query := c.Query
	c.Query = admin.Values{}
	it, err := col.Find(c)
	c.Query = query
	return it, err
}

func (f *family) reset(c *admin.Call) (any, error) {
	it, err := f.usage.Find(c)
	if err != nil {
		return nil, err
	}
	raw, err := base64.RawURLEncoding.DecodeString(c.Param("entityId"))
	known := false
	if err == nil && len(raw) > 0 {
		known, err = f.known(c, it, string(raw))
	} else {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, fault.New(fault.NotFound, "entityId", "This policy has no such entity")
	}
	return nil, f.ledger.Reset(c.Context, subject(it, string(raw)))
}

// subject is a counter of a policy; without a value key the policy itself.
func subject(it item, valueKey string) *ledger.Subject {
	return it.Form.SubjectOf(it.Scope, it.ID, it.Name, it.Rev, valueKey)
}

// known reports whether a policy has a counter.
func (f *family) known(c *admin.Call, it item, valueKey string) (bool, error) {
	return f.ledger.Counts(c.Context, subject(it, valueKey))
}

// resetValue sets the counter back that an update names.
func (f *family) resetValue(c *admin.Call, ch *change) {
	if ch.Rec == nil || !c.Body.HasValue(resetValue) {
		return
	}
	_ = f.ledger.Reset(c.Context, subject(ch.Item(), c.Body.Text(resetValue))) // what fails can be sent again
}

// decorate adds the values of the counters, on request.
func (f *family) decorate(c *admin.Call, items []item, objects []admin.Members) error {
	if !c.Query.Bool(includeUsage) || c.Route.Method != "GET" || len(items) != 1 {
		return nil
	}
	all, _, err := f.ledger.Buckets(c.Context, subject(items[0], ""), "", maxEntities)
	if err != nil {
		return err
	}
	usage := admin.Members{}
	for _, b := range all {
		s := b.Budgets[0]
		usage[b.ValueKey] = admin.Members{
			"current_usage": s.Limit.Type.Amount(s.Usage), "reserved_usage": s.Limit.Type.Amount(s.Reserved), "available": s.Limit.Type.Amount(s.Available()), "status": s.Status, "is_threshold_alerts_sent": s.ThresholdAlert, "is_exhausted_alerts_sent": s.ExhaustedAlert,
		}
	}
	objects[0][usageMap] = usage
	return nil
}
