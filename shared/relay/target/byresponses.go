package target

import (
	"net/http"
	"strings"

	"gateway/shared/provider"
	"gateway/shared/relay/body"
	"gateway/shared/wire"
)

// Fields of a conversation that show whether it has tools, and reasons.
var reasonKeys = wire.NewKeySet("tools", "reasoning_effort", "thinking", "output_config", "toolConfig")

const (
	keyTools = iota
	keyEffort
	keyThinking
	keyOutputConfig
	keyToolConfig // Bedrock's; Gemini has it next to tools
)

// responsesBeta is the value of x-gateway-beta that sends a request of any dialect to /responses
// if the provider has it.
const responsesBeta = "use-responses-api-2026-07-30"

// wantsResponses reports whether a request opts in to /responses.
func wantsResponses(h http.Header) bool {
	for _, list := range h["X-Gateway-Beta"] {
		for value := range strings.SplitSeq(list, ",") {
			if strings.TrimSpace(value) == responsesBeta {
				return true
			}
		}
	}
	return false
}

// byResponses sends a conversation to /responses if its model accepts tools with reasoning only
// there. body is the request for the target.
func byResponses(tg *Target, body []byte) {
	if tg.Req.Route.Client == nil || tg.To.Dialect == nil || tg.To.Op != provider.Chat || tg.To.Dialect.Name() != provider.OpenAIChat {
		return
	}
	asked := wantsResponses(tg.Req.Req.Header) && tg.To.Target.Provider.Serves(provider.ResponsesCreate)
	when := tg.To.Target.ToolsByResponses(tg.To.Model)
	if !asked && (when == provider.NeverByResponses || !reasonsWithTools(body, when)) {
		return
	}
	if d := tg.Means.Dialects[provider.OpenAIResponses]; d != nil {
		tg.To.Dialect, tg.To.Op = d, provider.ResponsesCreate
	}
}

// reasonsWithTools reports whether a body has tools and will reason, because it requests it or
// because the model does so by default.
func reasonsWithTools(src []byte, when provider.ByResponses) bool {
	var w wire.Walk
	if reasonKeys.Walk(src, &w) != nil {
		return false
	}
	tools := w.Spans[keyTools]
	if tools.Absent() {
		tools = toolsIn(src, w.Spans[keyToolConfig])
	}
	if !tools.Present(src) || wire.KindOf(tools.Of(src)) != wire.KindArray || emptyArray(tools.Of(src)) {
		return false
	}
	unless := when == provider.ByResponsesUnlessNoEffort
	if v := w.Spans[keyEffort]; v.Present(src) && !wire.IsNull(v.Of(src)) {
		effort, err := wire.ScanString(v.Of(src), "reasoning_effort")
		return err == nil && effort != "none"
	}
	if v := w.Spans[keyThinking]; v.Present(src) && !wire.IsNull(v.Of(src)) {
		return body.TextIn(v.Of(src), "type") != "disabled" || unless && !w.Spans[keyEffort].Present(src)
	}
	if v := w.Spans[keyOutputConfig]; v.Present(src) && !wire.IsNull(v.Of(src)) && body.TextIn(v.Of(src), "effort") != "" {
		return true
	}
	return unless
}

func emptyArray(raw []byte) bool {
	for _, c := range raw[1:] {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == ']'
		}
	}
	return true
}

var configuredTools = wire.NewKeySet("tools")

// toolsIn returns the position of the tools in a body that nests them in another field.
func toolsIn(body []byte, outer wire.Span) wire.Span {
	var w wire.Walk
	if !outer.Present(body) || configuredTools.Walk(outer.Of(body), &w) != nil || w.Spans[0].Absent() {
		return wire.Span{}
	}
	return wire.Span{Start: outer.Start + w.Spans[0].Start, End: outer.Start + w.Spans[0].End}
}
