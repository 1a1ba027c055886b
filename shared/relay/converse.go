package relay

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/relay/admitted"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/dialogue"
	"gateway/shared/relay/purse"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/session"
)

// converse serves a WebSocket on which each message that asks for a response is a
// request of its own.
func (c *call) converse() error {
	if !c.sessions.Open() {
		return restarting()
	}
	c.ownHeaders(c.w.Header())
	protocol := ""
	if offered := asked.Protocols(c.Req.Header); len(offered) > 0 {
		protocol = offered[0] // browsers take no answer without one that they have offered
	}
	client, err := c.Route.Sockets.Accept(c.w, c.Req, protocol, c.w.Header())
	if err != nil {
		return err
	}
	c.headSent, c.status, c.firstByte = true, http.StatusSwitchingProtocols, c.Since()
	d := &dialogue.Dialogue{
		Client: client, Times: c.SessionTimes, Memory: c.Memory, Tenant: c.Who.Scope.Org, ID: c.ULID, Now: c.Relay.Now, Desk: newPartner(c),
	}
	end, ok := c.sessions.Begin(d)
	if !ok {
		client.Close(session.GoingAway, "the gateway is restarting; open a new connection")
		client.Linger()
		return nil
	}
	result := d.Run(c.Base)
	end()
	c.Size, c.answered = result.FromClient, result.ToClient
	c.Heard.Finish = result.Told()
	if result.Fault != nil {
		c.failure = result.Fault
	}
	c.LearnOperation(chat.Meter{Started: true, Complete: true})
	return nil
}

// partner is the desk of a dialogue. What is read of its call does not change while it
// runs.
type partner struct {
	relay  *Relay
	of     *books
	route  *routes.Route
	header http.Header // of each request
	key    string
}

func newPartner(c *call) *partner {
	h := c.HeadersForProvider().Clone()
	h.Del("X-Gateway-Api-Key")
	for name := range h {
		if strings.HasPrefix(name, "Sec-Websocket-") || name == "Connection" || name == "Upgrade" {
			delete(h, name)
		}
	}
	h.Set("Content-Type", "application/json")
	h.Set(asked.TraceID, c.Ask.TraceID)
	return &partner{relay: c.Relay, of: &c.books, route: c.Route.Turn(), header: h, key: c.KeyHash()}
}

// Ask implements dialogue.Desk.
func (p *partner) Ask(ctx context.Context, w http.ResponseWriter, body []byte) (broken bool) {
	req, err := http.NewRequestWithContext(ctx, p.route.Method, routes.BasePath+p.route.Path, bytes.NewReader(body))
	if err != nil {
		return true // both are the program's own
	}
	req.Header = p.header.Clone()
	now, err := p.of.Still(p.of.Base)
	if err != nil {
		f := fault.From(err)
		f.SetHeaders(w.Header())
		w.WriteHeader(f.Status())
		_, _ = w.Write(f.DataBody(false)) // it is kept
		return false
	}
	return p.relay.run(w, req, p.route, "", &admitted.Behalf{Key: p.key, Caller: now.Who})
}

// Check implements dialogue.Desk.
func (p *partner) Check() error {
	now, err := p.of.Still(p.of.Base)
	if err != nil {
		return err
	}
	own, _ := p.of.Budgeted()
	for _, s := range append(purse.Budgeted(now.Who.Subject), own...) {
		if s == p.of.Who.Subject && s != now.Who.Subject {
			continue // the key's limits have changed since
		}
		exhausted, err := p.relay.budgets.Exhausted(p.of.Base, s)
		if err != nil {
			return err
		}
		if exhausted {
			return fault.Newf(fault.BudgetExhausted, "", "The budget of %s is exhausted", s.Label)
		}
	}
	return nil
}

// Fail implements dialogue.Desk.
func (p *partner) Fail(where string, err error) { p.of.Fail(where, err) }
