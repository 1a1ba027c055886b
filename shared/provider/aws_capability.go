package provider

import (
	"strings"

	"gateway/shared/chat"
)

// bedrockRow is what models of Bedrock support, found by the beginning of their ids;
// Claude's models are elsewhere.
type bedrockRow struct {
	names    []string
	schema   chat.SchemaSupport
	thinking chat.ThinkingStyle
	cache    bool // takes cache points, of five minutes
	strict   bool // enforces a tool's schema
}

// bedrocks has known models only: a new one of the same maker may support more. Rows are
// tried in order and the first that fits counts.
var bedrocks = []bedrockRow{
	{names: []string{"amazon.nova-2"}, schema: chat.SchemaByTool, thinking: chat.ThinksAdaptively, cache: true},
	{names: []string{"amazon.nova-micro", "amazon.nova-lite", "amazon.nova-pro", "amazon.nova-premier"}, schema: chat.SchemaByTool, thinking: chat.ThinksNever, cache: true},
	{names: []string{"openai.gpt-oss"}, schema: chat.SchemaNative, thinking: chat.ThinksAdaptively, strict: true},
	{names: []string{"qwen.qwen3", "deepseek.v3", "google.gemma-3", "minimax.minimax-m2", "moonshot.kimi-k2", "moonshotai.kimi-k2",
		"nvidia.nemotron-nano", "mistral.magistral-small", "mistral.ministral-3", "mistral.mistral-large-3", "mistral.voxtral"},
		schema: chat.SchemaNative, thinking: chat.ThinksNever, strict: true},
	{names: []string{"mistral.devstral-2", "zai.glm-4.7", "zai.glm-5"}, schema: chat.SchemaNative, thinking: chat.ThinksAdaptively, strict: true},
	{names: []string{"mistral.mistral-large-24"}, schema: chat.SchemaByTool, thinking: chat.ThinksNever},
	{names: []string{"ai21.j2-", "ai21.jamba-", "amazon.titan-t", "cohere.command-", "deepseek.r1", "meta.llama2", "meta.llama3", "meta.llama4",
		"mistral.mistral-7b", "mistral.mixtral-8x", "mistral.mistral-small-24", "mistral.pixtral-large-25", "writer.palmyra-x4", "writer.palmyra-x5"},
		schema: chat.SchemaNone, thinking: chat.ThinksNever},
}

// bedrockWire lists the wire formats of a Bedrock model besides Converse and InvokeModel,
// and the roles that Converse accepts for it.
type bedrockWire struct {
	names []string
	// native are the operations at the runtime's host that take a conversation in its
	// client's own shape.
	native []Operation
	// systemTurns: Converse takes the role system between the turns of the conversation.
	// Other models reject it with "role 'system' is not supported on this model".
	systemTurns bool
}

// bedrockWires contains documented and measured facts. A model without a row gets its
// conversations by Converse, with its system prompts first. The runtime's host serves
// Messages for the newest models of Claude only, and of that API only /v1/messages.
// Responses of gpt-oss, gpt-5.4 and gpt-5.5 are only at Mantle. Chat completions of
// gpt-oss are at the runtime's host too, but return the model's reasoning within its
// text, while Converse separates them. See inference-messages-api,
// inference-responses-api, inference-chat-completions and
// claude-messages-mid-conversation-system in the user guide of Bedrock. The first
// matching row applies.
var bedrockWires = []bedrockWire{
	{[]string{"anthropic.claude-opus-4-8", "anthropic.claude-opus-5", "anthropic.claude-sonnet-5", "anthropic.claude-haiku-5", "anthropic.claude-fable-5"},
		[]Operation{NativeMessages}, true},
	{[]string{"openai.gpt-5.6", "openai.gpt-6", "xai.grok-4.6"}, []Operation{NativeChat, NativeResponses}, false},
}

// wireOf is the row of a model, by its id without the region group; nil if there is none.
func wireOf(id string) *bedrockWire {
	for i := range bedrockWires {
		for _, name := range bedrockWires[i].names {
			if strings.HasPrefix(id, name) && endsWord(name, id) {
				return &bedrockWires[i]
			}
		}
	}
	return nil
}

// bedrockModel sets the traits of a Bedrock model. Bedrock itself rejects unsupported
// parameters of an unknown model, or of an ARN.
func bedrockModel(t *chat.Traits, model string) {
	id := bedrockID(model)
	t.Family = bedrockFamily(id)
	t.MaxToolName = 64 // the bound of Converse itself
	if w := wireOf(id); w != nil {
		t.SystemTurns = w.systemTurns
	}
	if t.Family == familyAnthropic {
		t.Schema, t.Thinking = chat.SchemaNative, chat.ThinksEither
		if i := strings.Index(id, "claude-"); i >= 0 {
			claude(t, id[i:])
		}
		// One generation of models brought answers by a schema, caches for an hour and enforced
		// tool schemas.
		t.NoLongCache, t.NoStrictTools = t.Schema != chat.SchemaNative, t.Schema != chat.SchemaNative
		return
	}
	for i := range bedrocks {
		row := &bedrocks[i]
		if named(row.names, id) {
			t.Schema, t.Thinking = row.schema, row.thinking
			t.NoCacheControl, t.NoLongCache, t.NoStrictTools = !row.cache, true, !row.strict
			return
		}
	}
	// Vendors other than Anthropic and Amazon accept an effort under one name. The vendor of a
	// model given by an ARN is unknown, so the caller's values are forwarded.
	t.Schema, t.Thinking = chat.SchemaNative, chat.ThinksAdaptively
	if t.Family == "" {
		t.Thinking = chat.ThinksEither
	}
}

// named reports whether an id begins with one of names.
func named(names []string, id string) bool {
	for _, name := range names {
		if strings.HasPrefix(id, name) {
			return true
		}
	}
	return false
}
