package policies

import (
	"encoding/base64"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/store"
)

// Names of parameters and members.
const (
	resetValue   = "reset_usage_for_value"
	includeUsage = "include_usage"
	usageMap     = "value_key_usage_map"
)

// maxEntities bounds how many counters of a policy one call looks at.
const maxEntities = 2000

var (
	usageMapSchema = admin.Schema{"type": "object", "additionalProperties": admin.Closed(map[string]admin.Schema{
		"current_usage": {"type": "number"}, "status": {"type": "string"}, "is_threshold_alerts_sent": {"type": "boolean"}, "is_exhausted_alerts_sent": {"type": "boolean"},
	})}
	entitySchema = admin.Closed(map[string]admin.Schema{
		"id": {"type": "string"}, "value_key": {"type": "string"}, "current_usage": {"type": "number"}, "status": {"type": "string"}, "object": {"type": "string"},
	})
	paging = admin.Paging{MaxSize: 100}
)

// entities are the routes of a usage policy's counters.
func (f *family) entities() []admin.Route {
	const at = "/policies/usage-limits/{policyId}/entities"
	return f.usage.Below(
		admin.Route{Method: "GET", Path: at, Name: "listPolicyEntities", Doc: "List the counters of a usage policy, by their value keys; the first 2000.", Answer: admin.ListSchema(entitySchema),
			Query: append(paging.Fields(), admin.Field{Name: "status", Type: admin.String, Enum: []string{ledger.Active, ledger.Exhausted}, Doc: "Only those of this status."},
				admin.Field{Name: "search", Type: admin.String, Min: 1, Max: 255, Doc: "Part of the value key."}),
			Do: f.usage.At("read", f.list)},
		admin.Route{Method: "PUT", Path: at + "/{entityId}/reset", Name: "resetPolicyEntity", Doc: "Set a counter of a usage policy back to nothing.", Answer: admin.Nothing, Action: audit.Update,
			Do: f.usage.At("update", f.reset)},
	)
}

// entityID names a counter in paths.
func entityID(valueKey string) string { return base64.RawURLEncoding.EncodeToString([]byte(valueKey)) }

// buckets are the counters of a policy.
func (f *family) buckets(c *admin.Call, it item) ([]ledger.Bucket, error) {
	list, _, err := f.ledger.Buckets(c.Context, it.Form.SubjectOf(it.Scope, it.ID, it.Name, it.Rev, ""), "", maxEntities)
	return list, err
}

func (f *family) list(c *admin.Call) (any, error) {
	page, err := paging.Of(c.Query)
	if err != nil {
		return nil, err
	}
	it, err := f.findAny(c)
	if err != nil {
		return nil, err
	}
	all, err := f.buckets(c, it)
	if err != nil {
		return nil, err
	}
	entries := []any{}
	for _, b := range all {
		s := b.Budgets[0]
		if c.Query.Given("status") && s.Status != c.Query.Text("status") || !strings.Contains(b.ValueKey, c.Query.Text("search")) {
			continue
		}
		entries = append(entries, admin.Members{
			"id": entityID(b.ValueKey), "value_key": b.ValueKey, "current_usage": s.Limit.Type.Amount(s.Usage), "status": s.Status, "object": "policy_entity",
		})
	}
	return admin.ListEnvelope.Wrap(admin.Cut(entries, page), len(entries), page), nil
}

// findAny finds a live policy: the parameter status of this route is the counters'.
func (f *family) findAny(c *admin.Call) (item, error) {
	query := c.Query
	c.Query = admin.Values{}
	it, err := f.usage.Find(c)
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
	return nil, f.ledger.Reset(c.Context, subject(it.Form, it.Scope, it.ID, it.Name, it.Rev, string(raw)))
}

func subject(p *ledger.PolicyForm, sc store.Scope, id, name string, rev int64, valueKey string) *ledger.Subject {
	return p.SubjectOf(sc, id, name, rev, valueKey)
}

// known reports whether a policy has a counter.
func (f *family) known(c *admin.Call, it item, valueKey string) (bool, error) {
	return f.ledger.Counts(c.Context, subject(it.Form, it.Scope, it.ID, it.Name, it.Rev, valueKey))
}

// resetValue sets the counter back that an update names.
func (f *family) resetValue(c *admin.Call, ch *change) {
	if ch.Rec == nil || !c.Body.Given(resetValue) {
		return
	}
	_ = f.ledger.Reset(c.Context, subject(ch.Form, ch.Rec.Scope, ch.Rec.ID, ch.Rec.Name, ch.Rec.Rev, c.Body.Text(resetValue))) // what fails can be sent again
}

// decorate adds what the counters say, where that is asked for.
func (f *family) decorate(c *admin.Call, items []item, objects []admin.Members) error {
	if !c.Query.Bool(includeUsage) || c.Route.Method != "GET" || len(items) != 1 {
		return nil
	}
	all, err := f.buckets(c, items[0])
	if err != nil {
		return err
	}
	usage := admin.Members{}
	for _, b := range all {
		s := b.Budgets[0]
		usage[b.ValueKey] = admin.Members{
			"current_usage": s.Limit.Type.Amount(s.Usage), "status": s.Status, "is_threshold_alerts_sent": s.ThresholdAlert, "is_exhausted_alerts_sent": s.ExhaustedAlert,
		}
	}
	objects[0][usageMap] = usage
	return nil
}
