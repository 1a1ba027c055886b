package accounting

import (
	"encoding/json"
	"slices"
	"time"

	"gateway/shared/chat"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/body"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/wire"
)

// CountRequest counts the request against the rates of key, workspace and policies.
func (b *Bill) CountRequest() error {
	if err := b.ReadPolicies(); err != nil {
		return err
	}
	return b.Spending.CountRequest(b.Target.Req.Ctx, b.Ledger, b.Target.Req.Principal.KeyID, append([]*ledger.Subject{b.Target.Req.Principal.Subject, b.Target.Req.WS.Subject}, b.early...)...)
}

// CountCall is CountRequest for a protocol that calls no model. Token rates count the request
// now; Settle adds the response.
func (b *Bill) CountCall() error {
	if err := b.CountRequest(); err != nil {
		return err
	}
	return b.Spending.ReserveTokens(b.Target.Req.Ctx, response.TokensOfBytes(len(b.Target.Body.In)))
}

// CountTool is CountCall for a tool call, which policies on tools count as well.
func (b *Bill) CountTool(server, tool string) error {
	set, err := Load(b.Target.Req.Ctx, b.Target.Req.View, b.Target.Req.Principal.Scope)
	if err != nil {
		return err
	}
	if err := b.Spending.CountRequest(b.Target.Req.Ctx, b.Ledger, b.Target.Req.Principal.KeyID, append([]*ledger.Subject{b.Target.Req.Principal.Subject, b.Target.Req.WS.Subject}, set.Tools(func(key string) []string {
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
	return b.Spending.ReserveTokens(b.Target.Req.Ctx, response.TokensOfBytes(len(b.Target.Body.In)))
}

// LimitTarget checks the limits of the target and reserves money once per request; it reserves
// more if this target is more expensive than the previous one.
func (b *Bill) LimitTarget() error {
	before := b.Spending.Counted()
	rates := b.LimitsOfTarget()
	if b.Target.Req.Settles() {
		return nil // it was counted when the work was started
	}
	if b.Target.Req.Route.BodyMode == routes.Socket && b.Target.Req.Route.Free {
		return hasMoney(b) // its responses are counted and reserved for, one by one
	}
	err := b.Spending.CountTarget(b.Target.Req.Ctx, b.Ledger, b.Target.Req.Principal.KeyID, rates)
	if err == nil && !b.Target.Req.Route.Free && !b.Target.CostsNothing() {
		own, its := b.Budgeted()
		budgeted := len(own)+len(its) > 0
		switch {
		case b.ReadRows != nil:
			err = measureRows(b, budgeted)
		case budgeted:
			err = measureInput(b)
		}
		if err == nil && b.Spending.NeedsCost(own, its) {
			bound, unmeasured := boundOf(b)
			if budgeted {
				err = measuredUnits(b, unmeasured)
			}
			if err == nil {
				err = b.Spending.Reserve(b.Target.Req.Ctx, b.Target.Req.Base, b.Ledger, b.Target.Req.ULID, own, its, bound)
			}
		}
	}
	if err != nil {
		b.Spending.ReturnCounts(b.Target.Req.Base, before)
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
	least := b.MaxCost()
	least.Assumed = b.Target.Units.Most.N(pricing.Seconds) == 0 // time is reserved separately
	r, err := b.Ledger.Reserve(b.Target.Req.Ctx, b.Target.Req.ULID, budgets, least)
	if err != nil {
		return err
	}
	return r.Release(b.Target.Req.Base)
}

// ExtendReservation raises the reservations to cover one more attempt at the target in addition to the
// charges for earlier attempts. If those were charged nothing, the store is not called. It fails
// if a budget is exhausted.
func (b *Bill) ExtendReservation() error {
	if !b.Spending.NeedsExtension() {
		return nil
	}
	return b.Spending.ExtendReservation(b.Target.Req.Ctx, b.MaxCost())
}

// Spend charges the request's cost to the budgets, although it has no reservation. If an earlier
// request has reserved it, Spending.Settle settles that.
func (b *Bill) Spend() {
	if b.Spending.Inherited() {
		return
	}
	own, its := b.Budgeted()
	b.Spending.Spend(b.Target.Req.Base, b.Ledger, b.Target.Req.ULID, own, its)
}

// Budgeted are the subjects with a budget in force: the caller's own, with those of
// policies, and the target's.
func (b *Bill) Budgeted() (own, its []*ledger.Subject) {
	return Budgeted(append([]*ledger.Subject{b.Target.Req.Principal.Subject, b.Target.Req.WS.Subject}, b.early...)...), append(Budgeted(b.Target.Choice.Subjects...), Budgeted(b.late...)...)
}

// Bill is what one request counts, holds and costs, target by target.
type Bill struct {
	Target   *target.Target
	Ledger   *ledger.Ledger
	Prices   *pricing.Book
	Reported Reported
	Spending Spending
	Fetched  *body.FetchedMedia // media that were fetched for a target that takes no addresses
	// ReadRows reads the rows of the batch that the request creates, checks what they name, and
	// adds them up, unless the sum is nil; nil for other requests.
	ReadRows func(*BatchSum) error
	hidden   int64       // most input tokens, where the body refers to input that it does not contain
	rows     []BatchRows // of the batch that the request creates
	PolicyState
}

// Connect sets the values of the earlier stages.
func (b *Bill) Connect(t *target.Target, fetched *body.FetchedMedia) {
	b.Target, b.Fetched = t, fetched
}

// SetDeps sets the dependencies of a request.
func (b *Bill) SetDeps(l *ledger.Ledger, prices *pricing.Book) { b.Ledger, b.Prices = l, prices }

// Second makes the bill that of a second attempt, under the policies of the first.
func (b *Bill) Second(ruled PolicyState) {
	b.PolicyState = ruled
	b.Spending.Second()
}

// noteTurn notes what a new response amounts to if later requests may continue it.
func noteTurn(b *Bill, m chat.Meter) {
	if makesTurn(b) && (m.Complete || !b.Target.Stream) {
		StoreTurn(b, m)
	}
}

// makesTurn reports whether the provider stores the response under an id by which the client may
// continue it.
func makesTurn(b *Bill) bool {
	switch like := b.Target.Body.Counterpart(); {
	case b.Target.Req.Route.BodyMode != routes.Raw:
		return b.Target.Req.Route.Operation == provider.ResponsesCreate && b.Target.SameDialect() && stores(b)
	case like != nil:
		return like.Operation == provider.ResponsesCreate && stores(b)
	}
	return startsInteraction(b) && stores(b)
}

var storeKeys = wire.NewKeySet("store")

// stores reports whether the body lets the provider store its response, as it does by default.
func stores(b *Bill) bool {
	body := b.Target.Body.In
	if b.Target.Choice.Body != nil {
		body = b.Target.Choice.Body
	}
	var w wire.Walk
	if storeKeys.Walk(body, &w) != nil {
		return false
	}
	return !w.Spans[0].Present(body) || string(w.Spans[0].Of(body)) != "false"
}

// maxItems limits the items of a response with a recorded size.
const maxItems = 64

// StoreTurn stores the sizes of a response and of its items, which a later request may name by
// their ids, so that the request reserves that instead of the model's full context window. It does
// so while a budget is in force; m is as the provider reported it.
func StoreTurn(b *Bill, m chat.Meter) {
	if m.ID == "" || !m.Usage.IsReported() || m.Usage.Estimated || !b.Spending.HasReservation() && !b.Spending.Inherited() {
		return
	}
	tokens := max(m.Usage.TotalTokens(), m.ReportedTotal)
	if err := b.Target.ChargeClaims().StoreTurn(m.ID, ownership.Turn{RequestedModel: b.Target.Choice.Model, ResponseModel: m.Model, Tokens: tokens}); err != nil {
		b.Target.Req.Fail("record a turn", err)
	}
	for _, it := range m.Items[:min(len(m.Items), maxItems)] {
		amount := it.Tokens
		if amount < 0 {
			amount = tokens
		}
		if err := b.Target.ChargeClaims().StoreTurn(it.ID, ownership.Turn{RequestedModel: b.Target.Choice.Model, ResponseModel: m.Model, Tokens: amount}); err != nil {
			b.Target.Req.Fail("record an item", err)
			return
		}
	}
}

// seenTurn returns what StoreTurn has stored about an id, if the same model continues it.
func seenTurn(b *Bill, id string) (tokens int64, ok bool) {
	t, ok, err := b.Target.ChargeClaims().LoadTurn(id)
	if err != nil {
		b.Target.Req.Fail("read a turn", err)
		return 0, false
	}
	if !ok || !t.MadeBy(b.ModelOf()) && !t.MadeBy(b.Target.Choice.Model) {
		return 0, false
	}
	return t.Tokens, true
}

// How long budgets hold a reservation for a provider's background work if no request reads its
// end. Afterwards it is charged at its bound.
const (
	// HoldResponse is for responses, interactions and runs: longer than the gateway polls
	// for their end (batch.MaxPollAge).
	HoldResponse = 25 * time.Hour
	// HoldBatch is for batches: a window of 24 hours, and time to read the result.
	HoldBatch = 72 * time.Hour
)

// HoldForBackground holds this request's reservation for the work that its provider does under an
// id, until a request claims the end of that work or the time is over.
func (b *Bill) HoldForBackground(id string, d time.Duration) {
	if id == "" || len(id) > ownership.MaxID || !b.Spending.HasReservation() {
		return
	}
	held, err := b.Spending.Hold(b.Target.Req.Base, b.Target.Req.StartTime.Add(d))
	if err != nil {
		b.Target.Req.Fail("store a reservation", err) // repair charges it at its bound, earlier
	}
	if len(held) == 0 {
		return
	}
	raw, err := json.Marshal(held)
	if err == nil {
		err = b.Target.ChargeClaims().StoreReservations(id, raw)
	}
	if err != nil {
		b.Target.Req.Fail("update a stored reservation", err)
	}
}

// Claim reports whether this request is the first to see the end of a provider's background
// work. The first one settles the reservation held for it.
func (b *Bill) Claim(id string) bool {
	first, _ := claim(b, id)
	return first
}

// ClaimedByOther claims the charge as well, and reports whether another request certainly was
// the first.
func (b *Bill) ClaimedByOther(id string) bool {
	first, err := claim(b, id)
	return !first && err == nil
}

// claim reads the reservation before it claims: if the read fails, a later request charges the
// work.
func claim(b *Bill, id string) (first bool, err error) {
	raw, err := b.Target.ChargeClaims().LoadReservations(id)
	var held []ledger.Held
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, &held)
	}
	if err != nil {
		b.Target.Req.Fail("read a stored reservation", err)
		return false, err
	}
	if first, err = b.Target.ChargeClaims().Claim(id); first {
		b.Spending.Inherit(held)
	}
	return first, err
}

// BackgroundUsage returns the usage of a background response, unless another request has charged it.
func (b *Bill) BackgroundUsage(m chat.Meter) (u pricing.Usage) {
	if !m.Usage.IsReported() || m.ID == "" || len(m.ID) > ownership.MaxID || !b.Claim(m.ID) {
		return u
	}
	return m.Usage
}
