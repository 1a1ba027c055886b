package provider

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

	"gateway/shared/chat"
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

// knownTraits are those of a model that was asked for before. They depend on the
// tables of this package only, and nobody changes what they refer to.
type knownTraits struct {
	of     *Provider
	model  string
	traits chat.Traits
}

// Callers name models: only so many are kept, and none with a long name.
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
	for _, name := range q.Drop {
		if name == "parallel_tool_calls" {
			t.NoParallelTools = true
		}
	}
	t.Schema = chat.SchemaNative
	if q.OnlyMaxTokens {
		t.MaxTokensField = "max_tokens"
	}
	if !q.Developer {
		t.SystemRole = "system"
	}
	if p.ID == "openai" || p.ID == "azure-openai" {
		t.PromptCacheKey = true
		openAIModel(&t, model)
	}
	return t
}

// openAIModel: the reasoning models take developer instead of system, another
// name of the bound and no sampling; the others take no effort.
func openAIModel(t *chat.Traits, model string) {
	reasons := strings.HasPrefix(model, "gpt-5") && !strings.HasPrefix(model, "gpt-5-chat")
	for _, prefix := range []string{"o1", "o3", "o4"} {
		reasons = reasons || strings.HasPrefix(model, prefix)
	}
	if reasons {
		t.MaxTokensField, t.SystemRole, t.Sampling = "max_completion_tokens", "developer", chat.SamplingNone
		return
	}
	for _, prefix := range []string{"gpt-3.5", "gpt-4", "chatgpt-4o"} {
		if strings.HasPrefix(model, prefix) {
			t.NoEffort, t.Thinking = true, chat.ThinksNever
		}
	}
}

// cohereModel: the models of the first generations neither think nor see.
func cohereModel(t *chat.Traits, model string) {
	for _, prefix := range []string{"command-r", "command-a-03", "command-a-translate", "command-a-vision", "c4ai-", "tiny-aya", "command-light", "command-nightly"} {
		if strings.HasPrefix(model, prefix) {
			t.Thinking = chat.ThinksNever
		}
	}
	t.NoImages = t.Thinking == chat.ThinksNever && !strings.Contains(model, "vision")
}

// claudes are the Claude models by the beginning of their names, the longer
// name first. A model that is not here counts as a current one.
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
	{"claude-", 128000, chat.SamplingNone, chat.ThinksAdaptively, true, chat.SchemaNative},
}

func claude(t *chat.Traits, model string) {
	for _, c := range claudes {
		if strings.HasPrefix(model, c.prefix) {
			t.DefaultMaxTokens, t.Sampling, t.Thinking, t.NoEffort, t.Schema = c.maxTokens, c.sampling, c.thinking, !c.effort, c.schema
			return
		}
	}
}

// completes tells whether model completes texts on a wire of its own, and not by
// a conversation.
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

// Speaks tells how the provider serves op of a caller who speaks the dialect
// client: natively when it has the operation in that dialect, else as a
// conversation of its own dialect. ok is false when it has neither.
func (p *Provider) Speaks(op Operation, client string) (dialect string, upstream Operation, ok bool) {
	t := Target{Provider: p}
	return t.Speaks(op, client, "")
}

// Speaks is Provider.Speaks for what depends on the target's fields and model.
func (t *Target) Speaks(op Operation, client, model string) (dialect string, upstream Operation, ok bool) {
	if native := t.DialectOf(op, model); native != "" && native == client {
		return native, op, true
	}
	if op == Completions && t.completes(model) {
		return t.DialectOf(op, model), op, true
	}
	switch op {
	case Chat, Completions, Messages, ResponsesCreate:
		if !t.Provider.Serves(Chat) {
			// A conversation is had by responses where there is nothing else.
			if t.DialectOf(ResponsesCreate, model) != OpenAIResponses {
				return "", "", false
			}
			return OpenAIResponses, ResponsesCreate, true
		}
		return t.DialectOf(Chat, model), Chat, true
	}
	return "", "", false
}
