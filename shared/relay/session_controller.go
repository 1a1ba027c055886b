package relay

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	dialect "gateway/shared/dialect/realtime"
	"gateway/shared/fault"
	"gateway/shared/guard/chain"
	"gateway/shared/identity"
	"gateway/shared/pricing"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/realtime"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/session"
	"gateway/shared/relay/target"
	"gateway/shared/route"
)

// sessionController admits and charges the responses of a session. Each response has its own run of the
// pipeline, as the session's caller and at its target: it is admitted, counted, reserved for,
// settled and recorded by the same stages as any request. The parts of the session's call that
// it reads do not change meanwhile.
type sessionController struct {
	relay   *Relay
	of      *call // the session's
	leaf    *route.Leaf
	req     *http.Request // the HTTP request from which the pipeline of each response starts
	route   *routes.Route // its route
	key     string
	guard   *realtime.Guard
	to      string      // the server of the session
	started atomic.Bool // a response has started; the first one was counted with the session
}

// newSessionController returns the controller of the session that a call has opened.
func newSessionController(c *call) *sessionController {
	req := c.req.Req.WithContext(context.WithoutCancel(c.req.Req.Context()))
	h := c.req.HeadersForProvider().Clone()
	h.Del("X-Gateway-Api-Key")
	h.Set(admission.TraceID, c.req.Headers.TraceID)
	req.Header = h
	rt := *c.req.Route
	rt.Free = false
	d := &sessionController{relay: c.relay, of: c, leaf: c.target.Choice.Leaf, req: req, route: &rt, key: c.req.KeyHash()}
	if at := c.bill.Spending.Last(); at != nil {
		d.to = at.Server
	}
	return d
}

// open starts the pipeline for a response, up to its target. counted: it counts against rates.
func (d *sessionController) open(who *identity.Principal, counted bool) (*call, error) {
	c := d.relay.calls.Get().(*call)
	behalf := &admission.InternalCall{Key: d.key, Caller: who}
	c.begin(d.relay, new(response.Recorder), d.req, d.route, "", behalf) // the response is discarded
	err := c.req.Admit()
	if err == nil {
		err = c.body.Read()
	}
	if err == nil {
		err = c.plan.Resolve(c.relay.sources)
	}
	if err == nil {
		if counted {
			err = c.bill.CountRequest()
		} else {
			err = c.bill.ReadPolicies()
		}
	}
	if err == nil {
		fresh(c)
		err = target.Choose(&c.target, d.leaf)
	}
	return c, err
}

// shut ends the pipeline of a response and releases its memory.
func (d *sessionController) shut(c *call) {
	finish(c)
	c.reset()
	d.relay.calls.Put(c)
}

// Reserve implements session.Controller.
func (d *sessionController) Reserve(what *session.ResponseLimits) (session.Reservation, error) {
	now, err := d.of.req.Reauthenticate(d.of.req.Base)
	if err == nil {
		err = d.of.guards.Live().Renew(d.of.req.Base, now)
	}
	if err != nil {
		return nil, err
	}
	c, err := d.open(now.Principal, d.started.Swap(true))
	if err == nil {
		wants(&c.target, &c.bill, what)
		c.body.SetMessage(append([]byte(nil), what.Event...)) // the connection reuses its memory
		c.guards.Judged.Elsewhere()                           // by those of the session
		err = c.bill.LimitTarget()
	}
	if err != nil {
		c.log.Reject(fault.From(err))
		d.shut(c)
		return nil, err
	}
	return &turn{controller: d, call: c, began: c.req.Since()}, nil
}

// wants sets the most that a response can cost.
func wants(tg *target.Target, bill *accounting.Bill, what *session.ResponseLimits) {
	if what.Model != "" {
		charged(tg, bill, what.Model)
	}
	tg.LimitUsage(what.Input, what.UnboundedField, what.Output, what.Seconds)
}

// charged sets another model than the session's for the charge of a response.
func charged(tg *target.Target, bill *accounting.Bill, model string) {
	bill.Reported.PricedAs(model)
	tg.Choice.Names = tg.Choice.Names.WithModel(model)
}

// ChargeLate implements session.Controller.
func (d *sessionController) ChargeLate(done *dialect.Done, event []byte) {
	c, err := d.open(d.of.req.Principal, false)
	if err != nil {
		d.Fail("response that is not admitted", err)
		d.shut(c)
		return
	}
	if done.Model != "" {
		charged(&c.target, &c.bill, done.Model)
	}
	c.bill.Reported.SetServed(done.Served)
	r := &turn{controller: d, call: c}
	c.bill.LimitsOfTarget()
	r.charge(done.Usage, done.Status, event)
	c.bill.Spend()
	d.shut(c)
}

// ChargeTranscript implements session.Controller.
func (d *sessionController) ChargeTranscript(t *dialect.Transcript, model string, event []byte) {
	c, err := d.open(d.of.req.Principal, false)
	if err != nil {
		d.Fail("transcript that is not admitted", err)
		d.shut(c)
		return
	}
	charged(&c.target, &c.bill, model)
	r := &turn{controller: d, call: c}
	c.bill.LimitsOfTarget()
	r.charge(t.Usage, "transcribed", event)
	c.bill.Spend()
	d.shut(c)
}

// Allows implements session.Controller.
func (d *sessionController) Allows(model string) error {
	if len(model) > body.MaxModel {
		return fault.Invalid("model", "must have at most %d bytes", body.MaxModel)
	}
	if s := d.of.target.Choice.Saved; s != nil {
		return s.Allows(model)
	}
	return nil
}

// Names implements session.Controller.
func (d *sessionController) Names(message []byte) error {
	return target.CheckMessage(&d.of.target, message)
}

// RecordHandle implements session.Controller.
func (d *sessionController) RecordHandle(handle string) error {
	return target.RecordHandle(&d.of.target, handle)
}

// Check implements session.Controller.
func (d *sessionController) Check() error {
	now, err := d.of.req.Reauthenticate(d.of.req.Base)
	if err != nil {
		return err
	}
	// A configured guardrail that does not exist rejects the next response; until then the
	// loaded ones apply.
	if err := d.of.guards.Live().Renew(d.of.req.Base, now); err != nil && !fault.Is(err, fault.InvalidConfig) {
		return err
	}
	who := now.Principal
	own, its := d.of.bill.Budgeted()
	for _, s := range slices.Concat(accounting.Budgeted(who.Subject), own, its) {
		if s == d.of.req.Principal.Subject && s != who.Subject {
			continue // the key's limits have changed
		}
		exhausted, err := d.relay.budgets.Exhausted(d.of.req.Base, s)
		if err != nil {
			return err
		}
		if exhausted {
			return fault.Newf(fault.BudgetExhausted, "", "The budget of %s is exhausted", s.Label)
		}
	}
	return nil
}

// Fail implements session.Controller.
func (d *sessionController) Fail(where string, err error) { d.of.req.Fail(where, err) }

// turn is one response of a session, in its pipeline.
type turn struct {
	controller *sessionController
	call       *call
	began      time.Duration
}

// Cover raises the reservations of a response in progress. The error is a fault of a budget that
// does not allow it.
func (r *turn) Cover(what *session.ResponseLimits) error {
	c := r.call
	wants(&c.target, &c.bill, what)
	own, its := c.bill.Budgeted()
	switch {
	case !c.bill.Spending.NeedsCost(own, its):
		return nil
	case c.bill.Spending.HasReservation():
		return c.bill.Spending.Cover(c.req.Ctx, c.bill.MaxCost())
	}
	return c.bill.Spending.Reserve(c.req.Ctx, c.req.Base, c.bill.Ledger, c.req.ULID, own, its, c.bill.MaxCost())
}

// End implements session.Reservation.
func (r *turn) End(d *dialect.Done, event []byte) {
	if d.Model != "" {
		charged(&r.call.target, &r.call.bill, d.Model)
	}
	r.call.bill.Reported.SetServed(d.Served)
	reason := d.Status
	if d.Reason != "" {
		reason = d.Reason
	}
	r.charge(d.Usage, reason, event)
	if reason == dialect.ConnectionLost {
		r.call.log.Reject(fault.New(fault.InvalidProviderResponse, "", "The response was cut: its session ended"))
	}
	r.judged(d.ID)
	r.controller.shut(r.call)
}

// judged adds the guardrail results of a response, and of the input before it, to its record.
func (r *turn) judged(id string) {
	g, c := r.controller.guard, r.call
	c.guards.Entries.AddVerdicts(r.controller.of.guards.Live())
	if g == nil {
		return
	}
	switch o := g.Outcome(id); {
	case o.Denied:
		c.log.Reject(fault.New(fault.GuardrailDenied, "", chain.Denial(nil)))
	case o.Failed:
		c.log.Status(guardrail.StatusFailed)
	}
}

// charge charges the usage of a response.
func (r *turn) charge(u pricing.Usage, finish string, event []byte) {
	c := r.call
	latency := c.req.Since() - r.began
	at := c.bill.Try(r.began)
	at.At(r.controller.to)
	at.End(http.StatusOK, "", latency)
	c.log.Attempt(latency)
	c.log.Wait(latency)
	c.log.Status(http.StatusOK)
	c.bill.Reported.Ended(clipText(finish))
	c.log.Body(record.Response, event)
	u.Add(pricing.Requests, 1)
	c.bill.Charge(u)
}

// Drop implements session.Reservation.
func (r *turn) Drop(refused *fault.Fault) {
	c := r.call
	if refused == nil { // no request was sent, and none is recorded
		c.bill.Spending.Settle(c.req.Base, c.bill.Ledger, nil, nil)
		c.log.Close()
	} else {
		c.bill.Try(r.began).End(refused.Status(), string(refused.Code), 0)
		c.log.Reject(refused)
	}
	r.controller.shut(c)
}
