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

// fallbacks rejects budgets that reroute requests to a saved provider that the workspace does
// not have. Models are not checked, since new ones appear every week. References that were
// stored before may remain, and a provider may name itself. Budgets above workspaces are not
// checked: their workspaces may get the provider later.
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

// at returns the path prefix of the fields of budget i in a body.
func (l *Limits[T]) at(i int) string {
	switch {
	case l.Flat:
		return ""
	case l.Place.ManyBudgets():
		return usageField + "[" + strconv.Itoa(i) + "]."
	}
	return usageField + "."
}
