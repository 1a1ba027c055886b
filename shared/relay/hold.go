package relay

import (
	"gateway/shared/ledger"
	"gateway/shared/relay/purse"
)

// limitTarget checks the limits of the target and reserves money once per
// request, more when this target is dearer than the one before.
func (bk *books) limitTarget() error {
	before := bk.purse.Counted()
	rates := bk.limitsOfTarget()
	err := bk.purse.CountTarget(bk.Ctx, bk.Ledger, rates)
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
