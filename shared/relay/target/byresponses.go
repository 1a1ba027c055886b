package target

import (
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/reference"
	"gateway/shared/provider"
	"gateway/shared/relay/body"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/routes"
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
	if tg.Req.Route.Client == nil || tg.Choice.Dialect == nil || tg.Choice.Op != provider.Chat || tg.Choice.Dialect.Name() != provider.OpenAIChat {
		return
	}
	asked := wantsResponses(tg.Req.Req.Header) && tg.Choice.Target.Provider.Serves(provider.ResponsesCreate)
	when := tg.Choice.Target.ToolsByResponses(tg.Choice.Model)
	if !asked && (when == provider.NeverByResponses || !reasonsWithTools(body, when)) {
		return
	}
	if d := tg.Deps.Dialects[provider.OpenAIResponses]; d != nil {
		tg.Choice.Dialect, tg.Choice.Op = d, provider.ResponsesCreate
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

// effective applies the target's config to the client's body. The result determines whether the
// response is a stream, whether it reports usage, and what it may cost.
func effective(tg *Target) error {
	tg.ResetDemands()
	if tg.Choice.order != nil {
		body.SetUnits(&tg.Demands, *tg.Choice.order)
	}
	body, other := tg.Body.In, tg.Choice.Prompt != tg.Body.Prompt
	switch {
	case other:
		body = tg.Choice.Prompt.Body
	case tg.Choice.inlined != nil:
		body, other = tg.Choice.inlined, true
	}
	if len(body) == 0 || tg.Choice.Leaf.IsUnchanged() && !other {
		if err := byWay(tg, body); err != nil {
			return err
		}
		return withinBounds(tg, tg.Body.Excess())
	}
	var err error
	if !tg.Choice.Leaf.IsUnchanged() {
		if body, err = tg.Choice.Leaf.Apply(nil, body); err != nil {
			return err
		}
	}
	return Rewrite(tg, body)
}

// Rewrite replaces the client's body by src, the result of a config or a guardrail.
func Rewrite(tg *Target, src []byte) error {
	tg.Choice.Body = src
	if err := mayName(tg, src); err != nil {
		return err
	}
	if tg.Req.Route.BodyMode == routes.Raw && tg.Body.Counterpart() == nil && tg.Req.Req.Method == http.MethodPost {
		body.SetUnits(&tg.Demands, body.UnitsOf(tg.Body.RawPath(), src, int64(len(src))))
	}
	if tg.Req.Route.BodyMode != routes.Unified {
		return nil
	}
	if err := byWay(tg, src); err != nil {
		return err
	}
	if tg.Req.Route.Client != nil {
		// A body changed by a config must keep to the same limits.
		checked := chat.Checked{ByTarget: true}
		if err := tg.Req.Route.Client.Check(src, &checked); err != nil {
			return err
		}
		if err := withinBounds(tg, checked.Excess); err != nil {
			return err
		}
	}
	var err error
	tg.Demands, err = tg.Body.DemandsOf(src, &tg.Edited)
	return err
}

// mayName checks a body that the client did not write: a config's parameters may name the same
// models and stored objects as the client's body.
func mayName(tg *Target, body []byte) error {
	if tg.Choice.Target.Provider != nil {
		if err := mayCallAll(tg, tg.Choice.Target.Provider, body); err != nil {
			return err
		}
	}
	if tg.Choice.Saved == nil || !tg.Choice.Isolation.Enabled {
		return nil
	}
	body, _ = tg.Unmark(body)
	if err := mayUseItems(tg, body); err != nil || !reference.MayNameObjects(body) {
		return err
	}
	ids, err := ownership.IDsIn(body)
	if err != nil {
		return err
	}
	if tg.Req.Route.Client != nil && !tg.SameDialect() {
		ids = ownership.Files(ids)
	}
	return check(tg, ids)
}

// byWay chooses the operation of the target for a body that has several.
func byWay(tg *Target, body []byte) error {
	byResponses(tg, body)
	return byNative(tg, body)
}

// withinBounds rejects a body that exceeds a limit of the specification, unless the target is
// known to allow more. Limits that no target extends were checked at admission.
func withinBounds(tg *Target, excess []chat.Excess) error {
	if len(excess) == 0 {
		return nil
	}
	return tg.Choice.Traits.Extended.Check(excess)
}
