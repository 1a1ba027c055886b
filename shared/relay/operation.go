package relay

import (
	"cmp"
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/tail"
)

// This file holds what routes that are no conversations need on their walk.

// setBeta passes on the beta features that the request asks for, and the version
// of Anthropic's API that it names, to providers that know them. What the saved
// provider sets stands.
func (rq *requests) setBeta(h http.Header) {
	for _, extra := range rq.To.Target.Provider.Headers {
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
	if _, known := rq.To.Target.Provider.Field("openai_beta"); !known {
		return
	}
	for _, name := range [...]string{"X-Gateway-Openai-Beta", "Openai-Beta"} {
		if v := asked.One(rq.Req.Header, name); v != "" {
			h["Openai-Beta"] = []string{v}
			return
		}
	}
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
