package relay

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

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

// joined is the list set, with what else stands in more.
func joined(set, more string) string {
	has := strings.Split(set, ",")
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
