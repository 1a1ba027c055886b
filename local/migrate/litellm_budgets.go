package migrate

import (
	"maps"

	"gateway/local/document"
)

// budgets are the budgets that a LiteLLM proxy sets for everybody: the field with the amount in
// dollars, the field with its period, and the key that our policy counts by.
var budgets = []struct{ amount, period, by string }{
	{"max_budget", "budget_duration", "workspace_id"},
	{"max_end_user_budget", "budget_duration", "metadata._user"},
	{"max_user_budget", "budget_duration", "metadata._user"},
	{"max_internal_user_budget", "internal_user_budget_duration", "metadata._user"},
	{"default_max_internal_user_budget", "internal_user_budget_duration", "metadata._user"},
}

// readBudget maps a budget to a usage limit policy of the workspace. It reports whether the field
// is one of a budget.
func readBudget(l *importer, section *document.Node, at string, f document.Field) (bool, error) {
	for _, b := range budgets {
		switch f.Name {
		case b.period:
			return true, readPeriod(l, section, f)
		case b.amount:
			amount, ok := f.Value.Float()
			if !ok || amount < 0 {
				return true, document.Errorf(f.Value.At, at+"."+f.Name, "must be a number of at least 0")
			}
			if amount == 0 {
				l.not(f.Value, "a budget of 0 refuses everything; set allowed_models or scopes of keys")
				return true, nil
			}
			addBudget(l, "Imported "+at+"."+f.Name, b.by, amount, section.Get(b.period))
			if b.by == "workspace_id" {
				l.mapped(f.Value, "usage limit policy of the workspace")
			} else {
				l.changed(f.Value, "usage limit policy for each value of the metadata field _user, which is what a request sends as user")
			}
			return true, nil
		}
	}
	return false, nil
}

// readPeriod marks the period of a budget, which addBudget uses.
func readPeriod(l *importer, section *document.Node, f document.Field) error {
	used := false
	for _, b := range budgets {
		used = used || b.period == f.Name && section.Get(b.amount).Kind() != document.Null
	}
	if !used {
		l.not(f.Value, "there is no budget that it resets")
		return nil
	}
	l.mapped(f.Value, "reset of the policy")
	if _, note := duration(f.Value.Scalar()); note != "" {
		l.changed(f.Value, note)
	}
	return nil
}

func addBudget(l *importer, name, by string, amount float64, period *document.Node) {
	policy := map[string]any{
		"name": name, "type": "cost", "credit_limit": amount,
		"conditions": []any{map[string]any{"key": by, "value": "*"}}, "group_by": []any{map[string]any{"key": by}},
	}
	if period.Kind() != document.Null {
		reset, _ := duration(period.Scalar())
		maps.Copy(policy, reset)
	}
	l.add("usage_limit_policies", policy)
}
