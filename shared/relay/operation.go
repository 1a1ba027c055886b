package relay

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"gateway/shared/egress"
	"gateway/shared/provider"
	"gateway/shared/relay/asked"
)

// This file holds what routes that are no conversations need on their walk.

// setBeta passes on the beta features that the request asks for, and the version
// of Anthropic's API that it names, to providers that know them. The version that
// the saved provider sets stands, and to its betas those of the request are added.
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
		v := cmp.Or(asked.List(rq.Req.Header, own), asked.List(rq.Req.Header, bare))
		switch set := asked.List(h, bare); {
		case v == "":
		case set == "":
			h[bare] = []string{v}
		case extra.Name == "anthropic-beta":
			h[bare] = []string{joined(set, v)}
		}
	}
	if rq.Route.Verbatim && rq.speaksAlike() {
		rq.passAnthropic(h)
	}
	if _, known := rq.To.Target.Provider.Field("openai_beta"); !known {
		return
	}
	for _, name := range [...]string{"X-Gateway-Openai-Beta", "Openai-Beta"} {
		if v := asked.List(rq.Req.Header, name); v != "" {
			h["Openai-Beta"] = []string{v}
			return
		}
	}
}

// passAnthropic passes on what else the client says in headers of Anthropic's own, known
// here or not, to who speaks its shape: they go with members of the body, of which
// everything is passed on. What the saved provider sets stands.
func (rq *requests) passAnthropic(h http.Header) {
	for name, v := range rq.Req.Header {
		if !strings.HasPrefix(name, "Anthropic-") || name == "Anthropic-Beta" || name == "Anthropic-Version" || !egress.Forwardable(name) {
			continue
		}
		if _, set := h[name]; !set && len(v) > 0 {
			h[name] = v[:1:1]
		}
	}
}

// carryBetas takes over the betas that a client asks for where a translation has a place
// for them, and reports them where it has none: what they switch on cannot be had there.
// Clients send a list for Anthropic's own host with every request, and other hosts refuse
// what they do not know of it: there only those go on that the gateway's header names.
func (rq *requests) carryBetas() {
	if !rq.Route.Verbatim || rq.To.DialectName() == provider.AnthropicMessages {
		return
	}
	t := &rq.To.Traits
	if asked := asked.List(rq.Req.Header, "X-Gateway-Anthropic-Beta"); asked != "" && rq.To.DialectName() == provider.Converse && t.Family == "anthropic" {
		t.Betas = strings.Split(joined(strings.Join(t.Betas, ","), asked), ",")
	}
	for one := range strings.SplitSeq(asked.List(rq.Req.Header, "Anthropic-Beta"), ",") {
		if one = strings.TrimSpace(one); one != "" && !slices.Contains(t.Betas, one) {
			rq.Loss.Add("anthropic-beta", "the provider has no such switches")
			return
		}
	}
}

// joined is the list set, with what else stands in more.
func joined(set, more string) string {
	has := strings.FieldsFunc(set, func(r rune) bool { return r == ',' })
	for i := range has {
		has[i] = strings.TrimSpace(has[i])
	}
	for one := range strings.SplitSeq(more, ",") {
		if one = strings.TrimSpace(one); one != "" && !slices.Contains(has, one) {
			has = append(has, one)
		}
	}
	return strings.Join(has, ",")
}
