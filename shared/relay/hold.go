package relay

import (
	"gateway/shared/ledger"
	"gateway/shared/pricing"
)

// limitTarget checks the limits of the target and reserves money once per
// request, more when this target is dearer than the one before.
func (c *call) limitTarget() error {
	before := len(c.admittedTargets)
	err := c.countTarget()
	if err != nil {
		// What one limit refuses is not charged to the others.
		for _, a := range c.admittedTargets[before:] {
			a.GiveBack(c.base)
		}
		c.admittedTargets = c.admittedTargets[:before]
	}
	return err
}

func (c *call) countTarget() error {
	if rates := withRates(c.to.subjects); len(rates) > 0 {
		admitted, err := c.Ledger.Admit(c.ctx, rates)
		if err != nil {
			return err
		}
		c.admittedTargets = append(c.admittedTargets, admitted)
	}
	if c.rt.Free || c.costsNothing() {
		return nil
	}
	own, its := c.budgeted()
	tokenRates := c.admitted != nil || len(c.admittedTargets) > 0
	if len(own) == 0 && len(its) == 0 && !tokenRates {
		return nil
	}
	bound := c.boundOf()
	if err := c.reserveTokens(bound.Tokens); err != nil {
		return err
	}
	var err error
	if len(own) > 0 {
		if c.reserved == nil {
			c.reserved, err = c.Ledger.Reserve(c.ctx, c.ulid, own, bound)
		} else {
			err = c.reserved.Raise(c.ctx, bound)
		}
		if err != nil {
			return err
		}
	}
	c.settleTarget()
	if len(its) == 0 {
		return nil
	}
	c.held.attempts, c.held.cost, c.held.tokens = len(c.rec.Attempts), c.rec.Cost, c.rec.Usage.TotalTokens()
	c.held.reserved, err = c.Ledger.Reserve(c.ctx, c.ulid, its, bound)
	return err
}

func (c *call) reserveTokens(bound int64) error {
	if err := c.admitted.ReserveTokens(c.ctx, bound); err != nil {
		return err
	}
	for _, a := range c.admittedTargets {
		if err := a.ReserveTokens(c.ctx, bound); err != nil {
			return err
		}
	}
	return nil
}

// targetHold is what the budgets of one target hold: its provider and its
// integration pay for what this target used only.
type targetHold struct {
	reserved *ledger.Reservation
	attempts int                 // of the request before this target
	cost     pricing.NanoDollars // likewise
	tokens   int64
}

// settleTarget settles the budgets of the target that was tried last.
func (c *call) settleTarget() {
	h := &c.held
	if h.reserved == nil {
		return
	}
	ctx := c.base
	var err error
	if len(c.rec.Attempts) == h.attempts {
		err = h.reserved.Release(ctx)
	} else {
		err = h.reserved.Settle(ctx, c.rec.Cost-h.cost, c.rec.Usage.TotalTokens()-h.tokens)
	}
	if err != nil {
		c.fail("settle", err)
	}
	c.rec.SettleSubjects = append(c.rec.SettleSubjects, h.reserved.Entries()...)
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
func (c *call) budgeted() (own, its []*ledger.Subject) {
	for _, s := range [...]*ledger.Subject{c.who.Subject, c.ws.Subject} {
		if s != nil && len(s.Budgets) > 0 {
			own = append(own, s)
		}
	}
	for _, s := range c.to.subjects {
		if len(s.Budgets) > 0 {
			its = append(its, s)
		}
	}
	return own, its
}
