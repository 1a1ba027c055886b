package relay

import (
	"slices"

	"gateway/shared/ledger"
	"gateway/shared/relay/purse"
	"gateway/shared/relay/routes"
)

// limitTarget checks the limits of the target and reserves money once per
// request, more when this target is dearer than the one before.
func (bk *books) limitTarget() error {
	before := bk.purse.Counted()
	rates := bk.limitsOfTarget()
	if bk.Route.Shape == routes.Socket && bk.Route.Free {
		return bk.hasMoney() // what is counted and reserved are its responses
	}
	err := bk.purse.CountTarget(bk.Ctx, bk.Ledger, bk.Who.KeyID, rates)
	if err == nil && !bk.Route.Free && !bk.CostsNothing() {
		if own, its := bk.budgeted(); bk.purse.Asks(own, its) {
			err = bk.purse.Reserve(bk.Ctx, bk.Base, bk.Ledger, bk.ULID, own, its, bk.boundOf())
		}
	}
	if err != nil {
		bk.purse.GiveBack(bk.Base, before)
	} else {
		bk.counted = append(bk.counted, rates...)
	}
	return err
}

// hasMoney refuses a session that no response could be made in: its budgets have nothing
// left, or ask for a price that nobody knows.
func (bk *books) hasMoney() error {
	own, its := bk.budgeted()
	budgets := slices.Concat(own, its)
	if len(budgets) == 0 {
		return nil
	}
	least := bk.boundOf()
	least.Assumed = true
	r, err := bk.Ledger.Reserve(bk.Ctx, bk.ULID, budgets, least)
	if err != nil {
		return err
	}
	return r.Release(bk.Base)
}

// coverAgain makes the reservations cover a further attempt at the target beside
// what those before were charged; nothing is asked of the store while that is
// nothing. An error: the budgets do not allow it.
func (bk *books) coverAgain() error {
	if !bk.purse.Short() {
		return nil
	}
	return bk.purse.CoverAgain(bk.Ctx, bk.boundOf())
}

// spend takes the cost of the request from the budgets though none was reserved:
// the money is gone already.
func (bk *books) spend() {
	own, its := bk.budgeted()
	if err := bk.purse.Spend(bk.Base, bk.Ledger, bk.ULID, bk.Org.Settings.Unpriced == "allow", own, its); err != nil {
		bk.Fail("budget of a finished batch", err)
	}
}

// budgeted are the subjects with a budget in force: the caller's own, with those of
// policies, and the target's.
func (bk *books) budgeted() (own, its []*ledger.Subject) {
	return purse.Budgeted(append([]*ledger.Subject{bk.Who.Subject, bk.WS.Subject}, bk.early...)...), purse.Budgeted(bk.To.Subjects...)
}
