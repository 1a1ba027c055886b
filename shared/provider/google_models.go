package provider

import (
	"strings"

	"gateway/shared/chat"
	"gateway/shared/wire"
)

// geminis are the Gemini models by the beginning of their names, longer names first. A
// model that is not here counts as a current one.
var geminis = []struct {
	prefix               string
	thinking             chat.ThinkingStyle
	minBudget, maxBudget int64
	always               bool
	efforts              string
	signed               bool
	schema               chat.SchemaSupport
}{
	{prefix: "gemini-1.", thinking: chat.ThinksNever, schema: chat.SchemaSubset},
	{prefix: "gemini-2.0-flash-thinking", maxBudget: 24576, schema: chat.SchemaSubset},
	{prefix: "gemini-2.0", thinking: chat.ThinksNever, schema: chat.SchemaSubset},
	{prefix: "gemini-2.5-flash-image", thinking: chat.ThinksNever, schema: chat.SchemaNative},
	{prefix: "gemini-2.5-flash-lite", minBudget: 512, maxBudget: 24576, schema: chat.SchemaNative},
	{prefix: "gemini-2.5-flash", maxBudget: 24576, schema: chat.SchemaNative},
	{prefix: "gemini-2.5-pro", minBudget: 128, maxBudget: 32768, always: true, schema: chat.SchemaNative},
	{prefix: "gemini-2.5", maxBudget: 24576, schema: chat.SchemaNative},
	{prefix: "gemini-flash-", maxBudget: 24576, schema: chat.SchemaNative},
	{prefix: "gemini-pro-latest", minBudget: 128, maxBudget: 32768, always: true, schema: chat.SchemaNative},
	{prefix: "gemini-robotics", maxBudget: 24576, schema: chat.SchemaNative},
	{prefix: "gemini-3-pro", thinking: chat.ThinksAdaptively, efforts: "low high", signed: true, always: true, schema: chat.SchemaNative},
	{prefix: "gemini-3.1-pro", thinking: chat.ThinksAdaptively, efforts: "low medium high", signed: true, always: true, schema: chat.SchemaNative},
	{prefix: "gemini-", thinking: chat.ThinksAdaptively, signed: true, schema: chat.SchemaNative},
}

// oldGemmas support neither tools nor a format of the answer. From the fourth generation on
// they support both (Gemma's function calling guide).
var oldGemmas = []string{"gemma-2", "gemma-3", "gemma2", "gemma3"}

// geminiModel fills in what a generation of Gemini or Gemma supports. Other models of the
// host have no limits.
func geminiModel(t *chat.Traits, model string) {
	i := strings.Index(model, "gemini-")
	if i < 0 {
		if i = strings.Index(model, "gemma"); i >= 0 {
			t.Thinking, t.Schema = chat.ThinksAdaptively, chat.SchemaNative
			if named(oldGemmas, model[i:]) {
				t.Thinking, t.NoTools, t.Schema = chat.ThinksNever, true, chat.SchemaNone
			}
		}
		return
	}
	for _, g := range geminis {
		if strings.HasPrefix(model[i:], g.prefix) {
			t.Thinking, t.MinBudget, t.MaxBudget, t.ThinksAlways = g.thinking, g.minBudget, g.maxBudget, g.always
			t.Efforts, t.SignedCalls, t.Schema = g.efforts, g.signed, g.schema
			return
		}
	}
}

// vertexPublishers are the hosts of the OpenAI dialect on Vertex AI.
var vertexPublishers = map[string]*Provider{
	"meta":      {ID: "vertex-ai", Dialect: OpenAIChat, Quirks: Quirks{StreamUsage: true, OnlyMaxTokens: true}},
	"endpoints": {ID: "vertex-ai", Dialect: OpenAIChat, Quirks: Quirks{StreamUsage: true, OnlyMaxTokens: true}},
	"mistralai": {ID: "vertex-ai", Dialect: OpenAIChat, Quirks: Quirks{OnlyMaxTokens: true, RequiredIsAny: true, NoUnknown: true,
		Rename: []Rename{{"seed", "random_seed"}, {"safe_mode", "safe_prompt"}}, Drop: []string{"user", "logit_bias", "logprobs", "top_logprobs", "service_tier", "store", "stream_options"}}},
}

// vertexModelTraits are the traits of a model on Vertex AI, by its publisher.
func vertexModelTraits(t *chat.Traits, model string) {
	publisher, name := vertexModel(model)
	if p := vertexPublishers[publisher]; p != nil {
		*t = p.Traits(name)
		return
	}
	geminiModel(t, name)
}

// vertexVersion is the version of the Messages API that Vertex AI wants in the
// body.
const vertexVersion = "vertex-2023-10-16"

var messagesKeys = wire.NewKeySet("model", "anthropic_version")

// Adapt is Provider.Adapt with the parts that depend on the target. A Messages body for
// Vertex AI contains its version, but not its model, which is in the address. A body of
// count_tokens keeps the model. body is a checked JSON object in dialect.
func (t *Target) Adapt(op Operation, dialect, model string, body []byte) (adapted []byte, dropped []string) {
	if t.Provider.ID != "vertex-ai" {
		if dialect == AnthropicMessages {
			return body, nil
		}
		if op == NativeChat && strings.HasPrefix(bedrockID(model), "openai.") {
			return completionTokens(body), nil
		}
		return t.Provider.Adapt(body)
	}
	if dialect == OpenAIChat {
		if publisher, _ := vertexModel(model); vertexPublishers[publisher] != nil {
			return vertexPublishers[publisher].Adapt(body)
		}
	}
	var w wire.Walk
	if dialect != AnthropicMessages || messagesKeys.Walk(body, &w) != nil {
		return body, nil
	}
	var edits []wire.Edit
	if !w.Spans[0].Absent() && op != MessagesCountTokens {
		edits = append(edits, wire.DeleteKey(&w, 0))
	}
	version := t.Field("anthropic_version")
	if !hasVertexVersion(version) { // the SDK's header names Anthropic's own version
		version = vertexVersion
		if own := w.Spans[1]; own.Present(body) {
			if s, err := wire.ScanString(own.Of(body), "anthropic_version"); err == nil && hasVertexVersion(s) {
				return wire.Splice(make([]byte, 0, len(body)), body, edits...), nil
			}
		}
	}
	edits = append(edits, messagesKeys.SetKey(&w, 1, wire.AppendJSONString(nil, version)))
	return wire.Splice(make([]byte, 0, len(body)+48), body, edits...), nil
}

func hasVertexVersion(s string) bool { return strings.HasPrefix(s, "vertex-") }
