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
)

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
	return append(f.usage.Below(
		admin.Route{Method: "GET", Path: "/policies/usage-limits" + below, Name: "listPolicyEntities", Doc: "List the counters of a usage policy" + doc, Answer: listSchema(entitySchema), Query: query, Do: f.usage.At("read", f.listUsage)},
		admin.Route{Method: "PUT", Path: "/policies/usage-limits" + below + "/{entityId}/reset", Name: "resetPolicyEntity", Doc: "Reset a counter of a usage policy.", Answer: admin.Nothing, Action: audit.Update,
			Do: f.usage.At("update", f.reset)},
	), f.rates.Below(
		admin.Route{Method: "GET", Path: "/policies/rate-limits" + below, Name: "listRatePolicyEntities", Doc: "List the counters of a rate policy in the current windows" + doc, Answer: listSchema(rateEntitySchema), Query: query, Do: f.rates.At("read", f.listRates)},
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
			if r.Full() {
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

// list answers with a page of the counters that read gives from a place on.
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
		return c.Query.Given("status") && e.status != c.Query.Text("status") || !strings.Contains(e.valueKey, c.Query.Text("search"))
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
	if !c.Query.Given("cursor") {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(c.Query.Text("cursor"))
	switch {
	case c.Query.Given("current_page"):
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
	if ch.Rec == nil || !c.Body.Given(resetValue) {
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
