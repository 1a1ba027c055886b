package relay

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/tail"
)

// This file holds what routes that are no conversations need on their walk.

// through tells whether the operation goes to the route's own path, though the
// provider's row does not have it: at a host of the target's own, whose operations
// nobody knows here. The catalogue's own addresses are not asked for what they are
// not known to have.
func (tg *target) through() bool {
	p := tg.to.target.Provider
	if !tg.Route.Through || p.Serves(tg.Route.Operation) || p.Dialect != provider.OpenAIChat {
		return false
	}
	own, _ := tg.to.target.OwnHost()
	return own != ""
}

// operationURL is the address of an operation that is not bound to a model.
func (tg *target) operationURL(of part) (*url.URL, error) {
	op, id, query := of.op, of.id, ""
	if tg.Req.Method == http.MethodGet || tg.Req.Method == http.MethodDelete {
		query = of.query
	}
	var raw string
	var err error
	if tg.through() {
		path := tg.Route.Path
		if id != "" {
			path = path[:strings.IndexByte(path, '{')] + url.PathEscape(id)
		}
		raw, err = tg.to.target.PassthroughURL(path, "")
	} else {
		raw, err = tg.to.target.ResourceURL(op, id)
	}
	if err != nil {
		return nil, err
	}
	return provider.ExactURL(provider.AddQuery(raw, query))
}

// setBeta passes on the beta features that the request asks for, and the version
// of Anthropic's API that it names, to providers that know them. What the saved
// provider sets stands.
func (rq *requests) setBeta(h http.Header) {
	for _, extra := range rq.to.target.Provider.Headers {
		var own, bare string
		switch extra.Name {
		case "anthropic-version":
			own, bare = "X-Gateway-Anthropic-Version", "Anthropic-Version"
		case "anthropic-beta":
			own, bare = "X-Gateway-Anthropic-Beta", "Anthropic-Beta"
		default:
			continue
		}
		if v := cmp.Or(asked.One(rq.Req.Header, own), asked.One(rq.Req.Header, bare)); v != "" && h[bare] == nil {
			h[bare] = []string{v}
		}
	}
	if _, known := rq.to.target.Provider.Field("openai_beta"); !known {
		return
	}
	for _, name := range [...]string{"X-Gateway-Openai-Beta", "Openai-Beta"} {
		if v := asked.One(rq.Req.Header, name); v != "" {
			h["Openai-Beta"] = []string{v}
			return
		}
	}
}

// passes tells whether an answer is passed on as it comes.
func (tg *target) passes(resp *http.Response) bool {
	if tg.Route.Client != nil || tg.to.carrier != nil {
		return false
	}
	return tg.Route.Binary || tg.Route.Media && !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json")
}

// learnOperation takes over what the answer of an operation reported. What is
// not reported counts as was assumed before.
func (me *meters) learnOperation(m chat.Meter) {
	if m.Model != "" {
		me.heard.model = m.Model
	}
	u := m.Usage
	if !u.Known() {
		u = me.Wanted.Assumed
	}
	u.Add(pricing.Requests, 1)
	me.charge(u)
}

// meterEvents reads the usage of a stream from its end.
func (s *sender) meterEvents(end []byte) (last chat.Meter) {
	if s.Route.Meter == nil {
		return last
	}
	return tail.MeterEvents(s.Route.Meter, end)
}
