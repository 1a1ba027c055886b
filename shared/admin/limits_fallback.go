package admin

import (
	"slices"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/resource"
)

// fallbacks refuses budgets that send requests to a saved provider which the workspace does
// not have. Which models it has is the provider's to say, since new ones come every week.
// What was stored before may stay, and a provider may name itself. A budget of what
// stands above workspaces is not looked at: their providers may still come.
func (l *Limits[T]) fallbacks(tx *resource.Tx, ch *Change[T]) error {
	if ch.Rec.Scope.Workspace == "" || l.Budget == nil && l.Budgets == nil {
		return nil
	}
	was := l.budgets(ch.Was)
	for i, u := range l.budgets(ch.Form) {
		if u.FallbackModel == "" || slices.ContainsFunc(was, func(o *ledger.UsageLimit) bool { return o.FallbackModel == u.FallbackModel }) {
			continue
		}
		slug, _, _ := strings.Cut(strings.TrimPrefix(u.FallbackModel, "@"), "/")
		if ch.Rec.Kind == provider.KindProvider && slug == ch.Rec.Slug {
			continue
		}
		rec, ok, err := tx.Get(ch.Rec.Scope, provider.KindProvider, slug)
		if err != nil {
			return err
		}
		if !ok || rec.Archived() {
			return fault.Invalids([]fault.Detail{{Field: l.at(i) + "fallback_model", Message: "names no saved provider of this workspace; it must be @provider/model"}})
		}
	}
	return nil
}

// at is where the members of the budget i stand in a body.
func (l *Limits[T]) at(i int) string {
	switch {
	case l.Flat:
		return ""
	case l.Place.ManyBudgets():
		return usageField + "[" + strconv.Itoa(i) + "]."
	}
	return usageField + "."
}
