package relay

import "gateway/shared/ledger"

// limitTarget checks the limits of the target and reserves money once per
// request, more when this target is dearer than the one before.
func (bk *books) limitTarget() error {
	before := len(bk.admittedTargets)
	err := bk.countTarget()
	if err != nil {
		// What one limit refuses is not charged to the others.
		for _, a := range bk.admittedTargets[before:] {
			a.GiveBack(bk.Base)
		}
		bk.admittedTargets = bk.admittedTargets[:before]
	}
	return err
}

func (bk *books) countTarget() error {
	if rates := withRates(bk.To.Subjects); len(rates) > 0 {
		admitted, err := bk.Ledger.Admit(bk.Ctx, rates)
		if err != nil {
			return err
		}
		bk.admittedTargets = append(bk.admittedTargets, admitted)
	}
	if bk.Route.Free || bk.CostsNothing() {
		return nil
	}
	own, its := bk.budgeted()
	tokenRates := bk.admitted != nil || len(bk.admittedTargets) > 0
	if len(own) == 0 && len(its) == 0 && !tokenRates {
		return nil
	}
	bound := bk.boundOf()
	if err := bk.reserveTokens(bound.Tokens); err != nil {
		return err
	}
	var err error
	bk.covered = bk.spentSoFar()
	if len(own) > 0 {
		all := bound
		all.Spent = bk.covered
		if bk.reserved == nil {
			bk.reserved, err = bk.Ledger.Reserve(bk.Ctx, bk.ULID, own, all)
		} else {
			err = bk.reserved.Raise(bk.Ctx, all)
		}
		if err != nil {
			return err
		}
	}
	bk.settleTarget()
	if len(its) == 0 {
		return nil
	}
	bk.held.attempts, bk.held.before = len(bk.rec.Attempts), bk.covered
	bound.Before = bk.covered
	bk.held.reserved, err = bk.Ledger.Reserve(bk.Ctx, bk.ULID, its, bound)
	return err
}

func (bk *books) spentSoFar() ledger.Used {
	return ledger.Used{Cost: bk.rec.Cost, Tokens: bk.rec.Usage.TotalTokens()}
}

// coverAgain makes the reservations cover a further attempt at the target beside
// what those before were charged; nothing is asked of the store while that is
// nothing. An error: the budgets do not allow it.
func (bk *books) coverAgain() error {
	spent := bk.spentSoFar()
	if spent == bk.covered || bk.reserved == nil && bk.held.reserved == nil {
		return nil
	}
	bound := bk.boundOf()
	bound.Spent = spent
	if err := bk.reserved.Raise(bk.Ctx, bound); err != nil {
		return err
	}
	before := bk.held.before
	bound.Spent, bound.Before = ledger.Used{Cost: spent.Cost - before.Cost, Tokens: spent.Tokens - before.Tokens}, before
	if err := bk.held.reserved.Raise(bk.Ctx, bound); err != nil {
		return err
	}
	bk.covered = spent
	return nil
}

func (bk *books) reserveTokens(bound int64) error {
	if err := bk.admitted.ReserveTokens(bk.Ctx, bound); err != nil {
		return err
	}
	for _, a := range bk.admittedTargets {
		if err := a.ReserveTokens(bk.Ctx, bound); err != nil {
			return err
		}
	}
	return nil
}

// targetHold is what the budgets of one target hold: its provider and its
// integration pay for what this target used only.
type targetHold struct {
	reserved *ledger.Reservation
	attempts int         // of the request before this target
	before   ledger.Used // likewise
}

// settleTarget settles the budgets of the target that was tried last.
func (bk *books) settleTarget() {
	h := &bk.held
	if h.reserved == nil {
		return
	}
	ctx := bk.Base
	var err error
	if len(bk.rec.Attempts) == h.attempts {
		err = h.reserved.Release(ctx)
	} else {
		err = h.reserved.Settle(ctx, bk.rec.Cost-h.before.Cost, bk.rec.Usage.TotalTokens()-h.before.Tokens)
	}
	if err != nil {
		bk.Fail("settle", err)
	}
	bk.rec.SettleSubjects = append(bk.rec.SettleSubjects, h.reserved.Entries()...)
	h.reserved = nil
}

func withRates(subjects []*ledger.Subject) []*ledger.Subject {
	var out []*ledger.Subject
	for _, s := range subjects {
		if len(s.Rates) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// budgeted are the subjects with a budget in force: the caller's own and the
// target's.
func (bk *books) budgeted() (own, its []*ledger.Subject) {
	for _, s := range [...]*ledger.Subject{bk.Who.Subject, bk.WS.Subject} {
		if s != nil && len(s.Budgets) > 0 {
			own = append(own, s)
		}
	}
	for _, s := range bk.To.Subjects {
		if len(s.Budgets) > 0 {
			its = append(its, s)
		}
	}
	return own, its
}
