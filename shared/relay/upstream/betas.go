package upstream

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/provider"
	"gateway/shared/relay/admission"
)

// SetBetas forwards the beta features that a client requests, and the version of Anthropic's API that
// it names, to a provider that supports them. h is the header of the request to the provider. A
// version that the saved provider has set there is not replaced, and the client's betas are
// appended to its betas.
func SetBetas(h, client http.Header, p *provider.Provider) {
	for _, extra := range p.Headers {
		var own, bare string
		switch extra.Name {
		case "anthropic-version":
			own, bare = "X-Gateway-Anthropic-Version", "Anthropic-Version"
		case "anthropic-beta":
			own, bare = "X-Gateway-Anthropic-Beta", "Anthropic-Beta"
		default:
			continue
		}
		v := cmp.Or(admission.HeaderList(client, own), admission.HeaderList(client, bare))
		switch set := admission.HeaderList(h, bare); {
		case v == "":
		case set == "":
			h[bare] = []string{v}
		case extra.Name == "anthropic-beta":
			h[bare] = []string{joined(set, v)}
		}
	}
	if _, known := p.Field("openai_beta"); !known {
		return
	}
	for _, name := range [...]string{"X-Gateway-Openai-Beta", "Openai-Beta"} {
		if v := admission.HeaderList(client, name); v != "" {
			h["Openai-Beta"] = []string{v}
			return
		}
	}
}

// SetAnthropicBetas forwards all other Anthropic headers of a client to a provider with that dialect,
// including unknown ones: they belong to fields of the body, which is forwarded completely. A
// header that the saved provider has set in h is not replaced.
func SetAnthropicBetas(h, client http.Header) {
	for name, v := range client {
		if !strings.HasPrefix(name, "Anthropic-") || name == "Anthropic-Beta" || name == "Anthropic-Version" || !egress.Forwardable(name) {
			continue
		}
		if _, set := h[name]; !set && len(v) > 0 {
			h[name] = v[:1:1]
		}
	}
}

// CarryBetas adds to t the betas that a client with Anthropic's dialect requests, if the translation
// to a dialect can express them, and reports the others as lost. Clients send a list for
// Anthropic's own host with every request, and other hosts reject unknown entries; so only those
// of the gateway's own header are forwarded there.
func CarryBetas(client http.Header, dialect string, t *chat.Traits, loss *chat.Loss) {
	if dialect == provider.AnthropicMessages {
		return
	}
	if list := admission.HeaderList(client, "X-Gateway-Anthropic-Beta"); list != "" && dialect == provider.Converse && t.Family == "anthropic" {
		t.Betas = strings.Split(joined(strings.Join(t.Betas, ","), list), ",")
	}
	for one := range strings.SplitSeq(admission.HeaderList(client, "Anthropic-Beta"), ",") {
		if one = strings.TrimSpace(one); one != "" && !slices.Contains(t.Betas, one) {
			loss.Add("anthropic-beta", "the provider has no such switches")
			return
		}
	}
}

// joined returns the list set, followed by those of more that it lacks.
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
