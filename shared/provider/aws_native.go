package provider

import (
	"slices"
	"strings"

	"gateway/shared/wire"
)

// Native returns the operation with which the target accepts a conversation in the caller's
// format, client. The host of Bedrock's runtime has chat completions, Responses and Messages
// besides the provider's dialect. It returns "" if none is known. A custom host may not have
// these paths, so it is called as usual. So is Bedrock for an ARN, because these paths may not
// accept ARNs.
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

// IsNative reports whether op may be a result of Native.
func (op Operation) IsNative() bool {
	return op == NativeChat || op == NativeResponses || op == NativeMessages
}

// ReasonsByResponses returns when a model supports function tools only by Responses, on
// any host; see ToolsByResponses.
func ReasonsByResponses(model string) ByResponses {
	name, ours := strings.CutPrefix(bedrockID(model), "openai.")
	if !ours {
		return NeverByResponses
	}
	return reasons(name)
}

// HeaderRow returns the row with the headers that enable features of op's API: the
// provider's row, or that of Anthropic's API if the host serves it too.
func (t *Target) HeaderRow(op Operation) *Provider {
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
