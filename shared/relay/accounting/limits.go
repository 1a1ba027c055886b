package accounting

import (
	"slices"

	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
)

// CountRequest counts the request against the rates of key, workspace and policies.
func (b *Bill) CountRequest() error {
	if err := b.ReadPolicies(); err != nil {
		return err
	}
	return b.Purse.CountRequest(b.Target.Req.Ctx, b.Ledger, b.Target.Req.Who.KeyID, append([]*ledger.Subject{b.Target.Req.Who.Subject, b.Target.Req.WS.Subject}, b.early...)...)
}

// CountCall is CountRequest for a protocol that calls no model. Token rates count the request
// now; Settle adds the response.
func (b *Bill) CountCall() error {
	if err := b.CountRequest(); err != nil {
		return err
	}
	return b.Purse.ReserveTokens(b.Target.Req.Ctx, response.TokensOfBytes(len(b.Target.Body.In)))
}

// CountTool is CountCall for a tool call, which policies on tools count as well.
func (b *Bill) CountTool(server, tool string) error {
	set, err := Load(b.Target.Req.Ctx, b.Target.Req.View, b.Target.Req.Who.Scope)
	if err != nil {
		return err
	}
	if err := b.Purse.CountRequest(b.Target.Req.Ctx, b.Ledger, b.Target.Req.Who.KeyID, append([]*ledger.Subject{b.Target.Req.Who.Subject, b.Target.Req.WS.Subject}, set.Tools(func(key string) []string {
		switch key {
		case "mcp_server":
			return []string{server}
		case "mcp_tool":
			return []string{tool}
		}
		return b.fact(key)
	})...)...); err != nil {
		return err
	}
	return b.Purse.ReserveTokens(b.Target.Req.Ctx, response.TokensOfBytes(len(b.Target.Body.In)))
}

// LimitTarget checks the limits of the target and reserves money once per request; it reserves
// more if this target is more expensive than the previous one.
func (b *Bill) LimitTarget() error {
	before := b.Purse.Counted()
	rates := b.LimitsOfTarget()
	if b.Target.Req.Settles() {
		return nil // it was counted when the work was started
	}
	if b.Target.Req.Route.Shape == routes.Socket && b.Target.Req.Route.Free {
		return hasMoney(b) // its responses are counted and reserved for, one by one
	}
	err := b.Purse.CountTarget(b.Target.Req.Ctx, b.Ledger, b.Target.Req.Who.KeyID, rates)
	if err == nil && !b.Target.Req.Route.Free && !b.Target.CostsNothing() {
		own, its := b.Budgeted()
		budgeted := len(own)+len(its) > 0
		switch {
		case b.ReadRows != nil:
			err = measureRows(b, budgeted)
		case budgeted:
			err = measureInput(b)
		}
		if err == nil && b.Purse.NeedsCost(own, its) {
			bound, unmeasured := boundOf(b)
			if budgeted {
				err = measuredUnits(b, unmeasured)
			}
			if err == nil {
				err = b.Purse.Reserve(b.Target.Req.Ctx, b.Target.Req.Base, b.Ledger, b.Target.Req.ULID, own, its, bound)
			}
		}
	}
	if err != nil {
		b.Purse.GiveBack(b.Target.Req.Base, before)
	} else {
		b.counted = append(b.counted, rates...)
	}
	return err
}

// hasMoney rejects a session in which no response could be made: a budget is used up, or a
// budget is in force and the price is unknown.
func hasMoney(b *Bill) error {
	own, its := b.Budgeted()
	budgets := slices.Concat(own, its)
	if len(budgets) == 0 {
		return nil
	}
	for _, s := range budgets {
		if err := b.Ledger.CheckExhausted(b.Target.Req.Ctx, s); err != nil {
			return err
		}
	}
	least := b.BoundOf()
	least.Assumed = b.Target.Wanted.Most.N(pricing.Seconds) == 0 // time is reserved separately
	r, err := b.Ledger.Reserve(b.Target.Req.Ctx, b.Target.Req.ULID, budgets, least)
	if err != nil {
		return err
	}
	return r.Release(b.Target.Req.Base)
}

// CoverAgain raises the reservations to cover one more attempt at the target in addition to the
// charges for earlier attempts. If those were charged nothing, the store is not called. It fails
// if a budget is exhausted.
func (b *Bill) CoverAgain() error {
	if !b.Purse.Short() {
		return nil
	}
	return b.Purse.CoverAgain(b.Target.Req.Ctx, b.BoundOf())
}

// Spend charges the request's cost to the budgets, although it has no reservation. If an earlier
// request has reserved it, Purse.Settle settles that.
func (b *Bill) Spend() {
	if b.Purse.Inherited() {
		return
	}
	own, its := b.Budgeted()
	b.Purse.Spend(b.Target.Req.Base, b.Ledger, b.Target.Req.ULID, own, its)
}

// Budgeted are the subjects with a budget in force: the caller's own, with those of
// policies, and the target's.
func (b *Bill) Budgeted() (own, its []*ledger.Subject) {
	return Budgeted(append([]*ledger.Subject{b.Target.Req.Who.Subject, b.Target.Req.WS.Subject}, b.early...)...), append(Budgeted(b.Target.To.Subjects...), Budgeted(b.late...)...)
}
