package provider

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

	"gateway/shared/chat"
	"gateway/shared/wire"
)

// Traits are what the dialects must know of the host and of model.
func (p *Provider) Traits(model string) chat.Traits {
	at := (maphash.String(traitsSeed, p.ID) ^ maphash.String(traitsSeed, model)*31) % uint64(len(traitsKnown))
	if known := traitsKnown[at].Load(); known != nil && known.of == p && known.model == model {
		return known.traits
	}
	t := p.traits(model)
	p.limit(&t, model)
	if len(model) <= maxKnownModel {
		traitsKnown[at].Store(&knownTraits{p, strings.Clone(model), t})
	}
	return t
}

// knownTraits caches the traits of models. They depend only on this package's tables, and
// are immutable.
type knownTraits struct {
	of     *Provider
	model  string
	traits chat.Traits
}

// Callers choose model names: so the cache is limited, and omits long names.
var (
	traitsKnown [256]atomic.Pointer[knownTraits]
	traitsSeed  = maphash.MakeSeed()
)

const maxKnownModel = 128

func (p *Provider) traits(model string) chat.Traits {
	q := &p.Quirks
	t := chat.Traits{Provider: p.ID}
	if p.Dialect == Converse {
		bedrockModel(&t, model)
		return t
	}
	if p.Dialect == Cohere {
		cohereModel(&t, model)
		return t
	}
	if i := strings.Index(model, "claude-"); i >= 0 && p.Dialect != OpenAIChat {
		claude(&t, model[i:])
		return t
	}
	if p.ID == "vertex-ai" && p.Dialect == Gemini {
		vertexModelTraits(&t, model)
		return t
	}
	if p.Dialect == Gemini {
		geminiModel(&t, model)
		return t
	}
	if p.Dialect != OpenAIChat {
		return t
	}
	t.NoStreamUsage = !q.StreamUsage
	t.NoCacheControl = !q.CacheControl
	t.NoUnknown = q.NoUnknown
	t.NoParallelTools = q.drops("parallel_tool_calls")
	t.Schema = chat.SchemaNative
	if q.ObjectOnly {
		t.Schema = chat.SchemaInWords
	}
	if q.OnlyMaxTokens {
		t.MaxTokensField = "max_tokens"
	}
	if !q.Developer {
		t.SystemRole = "system"
	}
	if p.ID == "openai" || p.ID == "azure-openai" {
		t.PromptCacheKey, t.Breakpoints = true, breaksPrompts(model)
		openAIModel(&t, model)
	}
	if p.ID == "azure-openai" { // the owner chooses the name of a deployment
		t.NoEffort, t.Thinking = false, chat.ThinksEither
	}
	return t
}

// breaksPrompts reports whether requests to a model of OpenAI must mark the end of the
// cacheable prefix. These are the models from 5.6 on, for which a write to the cache
// costs more than reading the prompt. Others reject the field.
func breaksPrompts(model string) bool {
	return version(model, "gpt-5.6") || version(model, "gpt-6")
}

// openAIModel: the reasoning models accept developer instead of system, another name for
// the limit and no sampling; the others accept no effort. For a model of an unknown later
// generation the caller's parameters are sent.
func openAIModel(t *chat.Traits, model string) {
	switch {
	case version(model, "o1"), version(model, "o3"), version(model, "o4"), version(model, "gpt-5") && !strings.Contains(model, "-chat"):
		t.MaxTokensField, t.SystemRole, t.Sampling = "max_completion_tokens", "developer", chat.SamplingNone
	case strings.HasPrefix(model, "gpt-5."): // it takes sampling while it does not reason
		t.MaxTokensField, t.SystemRole = "max_completion_tokens", "developer"
	case version(model, "gpt-3.5"), version(model, "gpt-4"), version(model, "gpt-4o"), version(model, "gpt-4.1"), version(model, "gpt-4.5"), version(model, "chatgpt-4o"):
		t.NoEffort, t.Thinking = true, chat.ThinksNever
	}
}

// version reports whether model is name, or name with further words.
func version(model, name string) bool {
	rest, ok := strings.CutPrefix(model, name)
	return ok && (rest == "" || rest[0] == '-')
}

// cohereModel: the models of the first generations neither think nor see.
func cohereModel(t *chat.Traits, model string) {
	for _, name := range []string{"command-r", "command-r7b", "command-a-03", "command-a-translate", "command-a-vision", "c4ai-aya", "c4ai-command", "tiny-aya", "command-light", "command-nightly"} {
		if version(model, name) {
			t.Thinking = chat.ThinksNever
		}
	}
	t.NoImages = t.Thinking == chat.ThinksNever && !strings.Contains(model, "vision")
}

// claudes are the Claude models by name prefix, longer names first. For a model without a
// row the caller's parameters are sent, in the form of the current ones.
var claudes = []struct {
	prefix    string
	maxTokens int64
	sampling  chat.Sampling
	thinking  chat.ThinkingStyle
	effort    bool
	schema    chat.SchemaSupport
}{
	{"claude-opus-4-8", 128000, chat.SamplingNone, chat.ThinksAdaptively, true, chat.SchemaNative},
	{"claude-opus-4-7", 128000, chat.SamplingNone, chat.ThinksAdaptively, true, chat.SchemaNative},
	{"claude-opus-4-6", 128000, chat.SamplingEither, chat.ThinksEither, true, chat.SchemaNative},
	{"claude-sonnet-4-6", 64000, chat.SamplingEither, chat.ThinksEither, true, chat.SchemaNative},
	{"claude-opus-4-5", 64000, chat.SamplingEither, chat.ThinksByBudget, true, chat.SchemaNative},
	{"claude-sonnet-4-5", 64000, chat.SamplingEither, chat.ThinksByBudget, false, chat.SchemaNative},
	{"claude-haiku-4-5", 64000, chat.SamplingEither, chat.ThinksByBudget, false, chat.SchemaNative},
	{"claude-opus-4-1", 32000, chat.SamplingEither, chat.ThinksByBudget, false, chat.SchemaByTool},
	{"claude-opus-4", 32000, chat.SamplingFree, chat.ThinksByBudget, false, chat.SchemaByTool},
	{"claude-sonnet-4", 64000, chat.SamplingFree, chat.ThinksByBudget, false, chat.SchemaByTool},
	{"claude-3-7", 64000, chat.SamplingFree, chat.ThinksByBudget, false, chat.SchemaByTool},
	{"claude-3-5", 8192, chat.SamplingFree, chat.ThinksNever, false, chat.SchemaByTool},
	{"claude-3", 4096, chat.SamplingFree, chat.ThinksNever, false, chat.SchemaByTool},
	{"claude-2", 4096, chat.SamplingFree, chat.ThinksNever, false, chat.SchemaNone},
	{"claude-instant", 4096, chat.SamplingFree, chat.ThinksNever, false, chat.SchemaNone},
	{"claude-opus-5", 128000, chat.SamplingNone, chat.ThinksAdaptively, true, chat.SchemaNative},
	{"claude-sonnet-5", 128000, chat.SamplingNone, chat.ThinksAdaptively, true, chat.SchemaNative},
	{"claude-fable-5", 128000, chat.SamplingNone, chat.ThinksAdaptively, true, chat.SchemaNative},
	{"claude-", 128000, chat.SamplingFree, chat.ThinksEither, true, chat.SchemaNative},
}

func claude(t *chat.Traits, model string) {
	for _, c := range claudes {
		if strings.HasPrefix(model, c.prefix) {
			t.DefaultMaxTokens, t.Sampling, t.Thinking, t.NoEffort, t.Schema = c.maxTokens, c.sampling, c.thinking, !c.effort, c.schema
			return
		}
	}
}

// completes reports whether model has a separate API for text completion, and none for
// conversations.
func (t *Target) completes(model string) bool {
	switch t.Provider.ID {
	case "triton", "workers-ai":
		return true
	case "palm":
		return strings.HasPrefix(model, "text-")
	case "ai21":
		return strings.HasPrefix(model, "j1-") || strings.HasPrefix(model, "j2-")
	case "cohere":
		switch model {
		case "command", "command-light", "command-nightly", "command-light-nightly":
			return true
		}
	}
	return false
}

// UpstreamDialect reports how the provider serves op for a caller who speaks the dialect client:
// natively if it has the operation in that dialect, otherwise as a conversation in its
// own dialect. ok is false when it has neither.
func (p *Provider) UpstreamDialect(op Operation, client string) (dialect string, upstream Operation, ok bool) {
	t := Target{Provider: p}
	return t.UpstreamDialect(op, client, "")
}

// UpstreamDialect is Provider.Speaks with what depends on the target's fields and model.
func (t *Target) UpstreamDialect(op Operation, client, model string) (dialect string, upstream Operation, ok bool) {
	if native := t.DialectOf(op, model); native != "" && native == client {
		return native, op, true
	}
	if op == Completions && t.completes(model) {
		return t.DialectOf(op, model), op, true
	}
	switch op {
	case Chat, Completions, Messages, ResponsesCreate:
		if !t.Provider.Serves(Chat) {
			// Without another operation, a conversation is held by responses.
			if t.DialectOf(ResponsesCreate, model) != OpenAIResponses {
				return "", "", false
			}
			return OpenAIResponses, ResponsesCreate, true
		}
		return t.DialectOf(Chat, model), Chat, true
	}
	return "", "", false
}

// mediaHosts are hosts from which Gemini reads on its own: files that were uploaded to
// it, and videos.
var mediaHosts = []string{"generativelanguage.googleapis.com", "youtube.com", "youtu.be"}

// mediaBytes reports whether the gateway must send images and documents as bytes. That is
// so if the host does not read them from the web, or does so only for some of its models.
func (p *Provider) mediaBytes(t *chat.Traits, model string) {
	switch p.ID {
	case "bedrock", "cohere", "oracle", "ollama":
		t.NeedsMediaBytes = true
	case "google":
		t.NeedsMediaBytes, t.MediaHosts = true, mediaHosts
	case "vertex-ai":
		publisher, _ := vertexModel(model)
		t.NeedsMediaBytes = publisher == "anthropic" || strings.HasPrefix(model, "claude-")
	}
}

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

// oldGemmas support neither tools nor a format of the response. From the fourth generation on
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
