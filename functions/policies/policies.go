// Package policies is the family of policies: limits of usage and rates for all
// requests of a workspace that meet conditions, counted by groups.
package policies

import (
	"slices"

	"gateway/shared/admin"
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
		Scope: "policies", Where: admin.InWorkspace, WriteRole: admin.Manager,
		ArchiveOnDelete: true, ArchivedReachable: true, May: may,
		List:      admin.List{Status: true, Query: listed, Match: matches(listed)},
		ReadQuery: []admin.Field{statusOfRead},
		Fields: []admin.Field{
			{Name: "name", Type: admin.String, Max: 255, Column: true}, {Name: "description"}, conditions, groups,
			{Name: "status", Type: admin.String, Enum: []string{"active", resource.StatusArchived}, Column: true, UpdateOnly: true},
		},
		Shown: []admin.Shown[ledger.PolicyForm]{
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
			if name := listed[i].Name; c.Query.Given(name) && row.Fields[name] != c.Query.Text(name) {
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
	col.Shown = append(col.Shown, admin.Shown[ledger.PolicyForm]{Field: admin.Field{Name: usageMap, Type: admin.Object, Optional: true, Single: true, Doc: "With include_usage: the counters by value key.", Form: usageMapSchema}},
		admin.Shown[ledger.PolicyForm]{Field: admin.Field{Name: "last_reset_at", Type: admin.Timestamp, Doc: "When all counters were last reset by hand."}, Value: func(_ *admin.Call, it item) any {
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
