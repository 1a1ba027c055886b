package provider

import (
	"slices"
	"strings"

	"gateway/shared/wire"
)

// Native is the operation by which the target takes a conversation in the caller's own
// shape, whose dialect is client. The host of Bedrock's runtime has chat completions,
// Responses and Messages beside the provider's dialect. "" if the target is not known to
// have one. A caller's own host may not have these paths, so it is called as usual. So is
// Bedrock for the model behind an ARN, because these paths are not known to take ARNs.
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

// IsNative tells whether op may be a result of Native.
func (op Operation) IsNative() bool {
	return op == NativeChat || op == NativeResponses || op == NativeMessages
}

// ReasonsByResponses tells when a model has function tools only by Responses, whichever
// host serves it; see ToolsByResponses.
func ReasonsByResponses(model string) ByResponses {
	name, ours := strings.CutPrefix(bedrockID(model), "openai.")
	if !ours {
		return NeverByResponses
	}
	return reasons(name)
}

// ToldAs is the row whose headers switch on features of op's API: the provider's row, or
// that of Anthropic's API where the host has it beside its own.
func (t *Target) ToldAs(op Operation) *Provider {
	if op == NativeMessages {
		return nativeMessages
	}
	return t.Provider
}

var nativeMessages = &Provider{Headers: []Header{{"anthropic-version", "{anthropic_version}"}, {"anthropic-beta", "{anthropic_beta}"}}}

var boundKeys = wire.NewKeySet("max_tokens", "max_completion_tokens")

// completionTokens renames the bound of a chat to the name that OpenAI's models accept at
// Bedrock, which answers "Unsupported parameter: 'max_tokens'". If there are two bounds,
// the one with the newer name stays.
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
