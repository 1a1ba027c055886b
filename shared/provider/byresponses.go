package provider

import (
	"net/url"
	"strings"
)

// ByResponses is the set of conversations that a model accepts only by Responses,
// although its host also has chat completions.
type ByResponses uint8

const (
	NeverByResponses          ByResponses = iota
	ByResponsesWhenEffort                 // with function tools and an effort other than none
	ByResponsesUnlessNoEffort             // with function tools, unless the effort is none
)

// reasonsByResponses are the models that reject function tools with reasoning at
// /chat/completions, by name prefix. The first one reasons only on request; the others
// also reason by default: "Function tools with reasoning_effort are not supported for
// gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead", as in
// github.com/openai/openai-openapi/issues/541 (gpt-5.4),
// github.com/charmbracelet/crush/issues/2913 and
// github.com/jeffdafoe/llm-memory-api/pull/178 (gpt-5.5, also without reasoning_effort),
// github.com/BerriAI/litellm/pull/34569 (gpt-5.6, which accepts tools only with the
// effort none).
var reasonsByResponses = []struct {
	name string
	when ByResponses
}{{"gpt-5.4", ByResponsesWhenEffort}, {"gpt-5.5", ByResponsesUnlessNoEffort}, {"gpt-5.6", ByResponsesUnlessNoEffort}}

// ToolsByResponses returns when a conversation with function tools must be sent to
// /responses. A custom host may not have that path, and is called as usual.
func (t *Target) ToolsByResponses(model string) ByResponses {
	switch t.Provider.ID {
	case "openai":
		if t.customHost() != "" {
			return NeverByResponses
		}
	case "azure-openai", "azure-ai":
		if t.customHost() != "" || t.Provider.ID == "azure-ai" && !azureHost(t.Field("azure_foundry_url")) {
			return NeverByResponses
		}
		if name := t.Field("azure_model_name"); name != "" { // the owner chooses the name of a deployment
			model = name
		}
	default:
		return NeverByResponses
	}
	if !t.Provider.Serves(ResponsesCreate) {
		return NeverByResponses
	}
	return reasons(model)
}

// reasons is the row of a model in reasonsByResponses.
func reasons(model string) ByResponses {
	for _, m := range reasonsByResponses {
		if version(model, m.name) && !strings.Contains(model, "-chat") {
			return m.when
		}
	}
	return NeverByResponses
}

// azureHost reports whether an address is one of Azure's own hosts, which have
// /responses.
func azureHost(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (strings.HasSuffix(u.Hostname(), ".services.ai.azure.com") || strings.HasSuffix(u.Hostname(), ".openai.azure.com"))
}
