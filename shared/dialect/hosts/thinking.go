package hosts

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	"gateway/shared/chat"
)

// Switch is the field by which a host turns thinking on and off.
type Switch uint8

// The switches. The zero value means that no field is known.
const (
	NoSwitch       Switch = iota
	ThinkingType          // thinking: {type: enabled | disabled}
	EnableThinking        // enable_thinking: true | false, and thinking_budget
	EffortOnly            // reasoning_effort alone
)

// ThinkingControl is the way in which requests to a host control thinking.
type ThinkingControl struct {
	Host   string // id of the provider
	Switch Switch
	// Efforts are the values of reasoning_effort that a budget may become, from the lowest,
	// separated by spaces; empty: a budget becomes no effort.
	Efforts string
	// KnownOnly: only models that are known to reason get the field, because the others of
	// this host reject it.
	KnownOnly bool
}

// ThinkingControls are the hosts with a known switch. Those with ThinkingType and EnableThinking
// think by default.
var ThinkingControls = []ThinkingControl{
	{Host: "openai", Switch: EffortOnly, Efforts: "low medium high xhigh"},                        // platform.openai.com/docs/api-reference/chat/create (reasoning_effort), 2026-11-28
	{Host: "azure-openai", Switch: EffortOnly, Efforts: "low medium high xhigh", KnownOnly: true}, // learn.microsoft.com/en-us/azure/foundry/openai/how-to/reasoning; anomalyco/opencode#14611 (xhigh), 2026-11-29
	{Host: "openrouter", Switch: EffortOnly, Efforts: "low medium high xhigh"},                    // openrouter.ai/docs/use-cases/reasoning-tokens; enricoros/big-AGI#940 (reasoning_effort), 2026-11-29
	{Host: "deepseek", Switch: ThinkingType, Efforts: "low high max"},                             // api-docs.deepseek.com/guides/thinking_mode, 2026-11-29
	{Host: "moonshot", Switch: ThinkingType},                                                      // platform.kimi.ai/docs/api/models-overview; anomalyco/models.dev#2294, 2026-11-29
	{Host: "z-ai", Switch: ThinkingType},                                                          // docs.z.ai/api-reference/llm/chat-completion (thinking.type); theopenco/llmgateway#3152, 2026-11-29
	{Host: "zhipu", Switch: ThinkingType},                                                         // docs.bigmodel.cn (thinking.type); esengine/DeepSeek-Reasonix#5059, 2026-11-29
	{Host: "byteplus", Switch: ThinkingType},                                                      // langgenius/dify-official-plugins#1187; chatboxai/chatbox#3548 (thinking.type of Ark), 2026-11-29
	{Host: "dashscope", Switch: EnableThinking},                                                   // help.aliyun.com/en/model-studio/deep-thinking (enable_thinking, thinking_budget), 2026-11-29
	{Host: "siliconflow", Switch: EnableThinking},                                                 // CherryHQ/cherry-studio#14782 (thinking is not accepted); anomalyco/models.dev#2508 (thinking_budget), 2026-11-29
}

// ThinkingControlOf returns the row of a provider, nil if there is none.
func ThinkingControlOf(provider string) *ThinkingControl {
	for i := range ThinkingControls {
		if t := &ThinkingControls[i]; t.Host == provider {
			return t
		}
	}
	return nil
}

// Effort returns the effort of this host that is nearest to effort, not below it.
func (t *ThinkingControl) Effort(effort string) string {
	nearest := effort
	for _, known := range strings.Fields(t.Efforts) {
		if nearest = known; chat.EffortRank(known) >= chat.EffortRank(effort) {
			break
		}
	}
	return nearest
}

// MinEffort is the lowest effort of models controlled by an effort.
type MinEffort struct {
	Model  string // beginning of the model's name; longer ones come first
	Effort string
}

// MinEfforts are the efforts that mean no thinking. A model without a row gets none.
var MinEfforts = []MinEffort{
	{"gpt-5.", "none"},     // developers.openai.com/api/docs/guides/reasoning, 2026-11-28
	{"gpt-5-pro", "high"},  // developers.openai.com/api/docs/models/gpt-5-pro, 2026-11-28
	{"gpt-5-codex", "low"}, // developers.openai.com/api/docs/models/gpt-5-codex, 2026-11-28
	{"gpt-5", "minimal"},   // developers.openai.com/api/docs/guides/reasoning, 2026-11-28
	{"gpt-6", "none"},      // developers.openai.com/api/docs/guides/reasoning, 2026-11-28
	{"o", "low"},           // developers.openai.com/api/docs/guides/reasoning, 2026-11-28
}

// LeastEffort returns the least effort of a model, "" if it is not known.
func LeastEffort(model string) string {
	model = model[strings.LastIndexByte(model, '/')+1:]
	for i := range MinEfforts {
		rest, ok := strings.CutPrefix(model, MinEfforts[i].Model)
		if ok && (MinEfforts[i].Model != "o" || rest != "" && rest[0] >= '1' && rest[0] <= '9') {
			return MinEfforts[i].Effort
		}
	}
	return ""
}

// Length bounds a field of a request, in characters.
type Length struct {
	Host, Field string // id of the provider, user or tool_call_id
	Min, Max    int
}

// Lengths are the bounds of hosts. A field without a row has none.
var Lengths = []Length{
	{"openai", "user", 0, 64},               // looplj/axonhub#1669 (string_above_max_length), 2026-11-28
	{"azure-openai", "user", 0, 64},         // looplj/axonhub#1669 (string_above_max_length), 2026-11-28
	{"openrouter", "user", 0, 128},          // ujisati/claude-code-provider-proxy#11, 2026-11-29
	{"zhipu", "user", 6, 128},               // docs.bigmodel.cn (user_id), 2026-11-28
	{"z-ai", "user", 6, 128},                // docs.z.ai/api-reference/llm/chat-completion (user_id), 2026-11-28
	{"byteplus", "user", 6, 128},            // docs.byteplus.com/en/docs/ModelArk, 2026-11-28
	{"openai", "tool_call_id", 0, 64},       // orchidfiles/ungate#26; AnswerDotAI/fastllm#45, 2026-11-28
	{"azure-openai", "tool_call_id", 0, 40}, // BerriAI/litellm#11392; Azure/azure-dev#7324 (64 at /responses: openai/codex#14355), 2026-11-29
}

// lengthOf returns the row of a field, nil if there is none.
func lengthOf(provider, field string) *Length {
	for i := range Lengths {
		if l := &Lengths[i]; l.Host == provider && l.Field == field {
			return l
		}
	}
	return nil
}

// User returns the id of the end user as a provider takes it: a stable hash if its length is out
// of bounds, which is reported.
func User(provider, user string, loss *chat.Loss) string {
	l, n := lengthOf(provider, "user"), utf8.RuneCountInString(user)
	if l == nil || n >= l.Min && n <= l.Max {
		return user
	}
	loss.Add("user", "given as a hash: the provider takes "+strconv.Itoa(l.Min)+" to "+strconv.Itoa(l.Max)+" characters")
	sum := sha256.Sum256([]byte(user))
	return hex.EncodeToString(sum[:16])
}

// CallID returns the id of a tool call in the form that a provider accepts. A long one is
// always shortened in the same way, so that calls and results still match; responses do not
// repeat ids, and the client uses its own.
func CallID(provider, id string) string {
	if l := lengthOf(provider, "tool_call_id"); l != nil && len(id) > l.Max {
		return chat.LegalName(id, l.Max)
	}
	return id
}
