package provider

import (
	"slices"
	"strings"

	"gateway/shared/wire"
)

// Native is the operation in which the target has a conversation of a caller who
// speaks client in the caller's own shape, where its host has that beside the dialect
// of the provider: chat completions, Responses and Messages at the host of Bedrock's
// runtime. "" where it is not known to. A host of the caller's own may not have these
// paths and is asked as it always is; so is Bedrock for the model behind an ARN, which
// they are not known to take.
func (t *Target) Native(client, model string) Operation {
	if t.Provider.ID != "bedrock" || t.ownHost() || strings.HasPrefix(model, "arn:") {
		return ""
	}
	op := map[string]Operation{OpenAIChat: NativeChat, OpenAIResponses: NativeResponses, AnthropicMessages: NativeMessages}[client]
	if w := wireOf(bedrockID(model)); w == nil || !slices.Contains(w.native, op) {
		return ""
	}
	return op
}

// IsNative tells whether op is one that Native gives.
func (op Operation) IsNative() bool {
	return op == NativeChat || op == NativeResponses || op == NativeMessages
}

// ReasonsByResponses tells when a model has function tools by Responses alone,
// whichever host serves it; see ToolsByResponses.
func ReasonsByResponses(model string) ByResponses {
	name, ours := strings.CutPrefix(bedrockID(model), "openai.")
	if !ours {
		return NeverByResponses
	}
	return reasons(name)
}

// ToldAs is the row by whose headers op is told what of its API is switched on: that of
// the provider, or the one of Anthropic's API where the host has that beside.
func (t *Target) ToldAs(op Operation) *Provider {
	if op == NativeMessages {
		return nativeMessages
	}
	return t.Provider
}

var nativeMessages = &Provider{Headers: []Header{{"anthropic-version", "{anthropic_version}"}, {"anthropic-beta", "{anthropic_beta}"}}}

var boundKeys = wire.NewKeySet("max_tokens", "max_completion_tokens")

// completionTokens gives the bound of a chat the name that the models of OpenAI know
// at Bedrock: "Unsupported parameter: 'max_tokens'". Of two bounds that of the newer
// name stays.
func completionTokens(body []byte) []byte {
	var w wire.Walk
	if boundKeys.Walk(body, &w) != nil || w.Spans[0].Absent() {
		return body
	}
	edits := []wire.Edit{wire.DeleteKey(&w, 0)}
	if !w.Spans[1].Present(body) {
		edits = append(edits, boundKeys.SetKey(&w, 1, w.Spans[0].Of(body)))
	}
	return wire.Splice(make([]byte, 0, len(body)+16), body, edits...)
}
