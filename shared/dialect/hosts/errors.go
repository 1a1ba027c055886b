package hosts

import (
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// Refusal is how a host says that a conversation is too long, or that an account has no
// money. A row matches the code, the type, or words of the message in lower case.
type Refusal struct {
	Code, Type, Text   string
	Host, Source, Date string
}

// Overflows are the error texts of hosts for a conversation that exceeds the model's
// context. Agents compact their history after this error.
var Overflows = []Refusal{
	{Code: "context_length_exceeded", Host: "openai", Source: "platform.openai.com/docs/guides/error-codes", Date: "2026-11-28"},
	{Text: "context_length_exceeded", Host: "openai, openrouter", Source: "openrouter.ai/docs/api/reference/errors-and-debugging", Date: "2026-11-28"},
	{Text: "maximum context length", Host: "openai, vllm, openrouter, mistral, deepseek, sglang, ollama", Source: "earendil-works/pi#5929", Date: "2026-11-28"},
	{Text: "context window", Host: "openai (Responses), minimax, llama-cpp-python", Source: "abetlen/llama-cpp-python#416", Date: "2026-11-28"},
	{Text: "prompt is too long", Host: "anthropic, fireworks", Source: "docs.claude.com/en/api/errors", Date: "2026-11-28"},
	{Text: "context limit", Host: "anthropic", Source: "docs.claude.com/en/api/errors", Date: "2026-11-28"},
	{Text: "input length and `max_tokens` exceed", Host: "anthropic", Source: "docs.claude.com/en/api/errors", Date: "2026-11-28"},
	{Text: "input is too long", Host: "bedrock, fireworks", Source: "docs.aws.amazon.com/bedrock (ValidationException)", Date: "2026-11-28"},
	{Text: "too many input tokens", Host: "bedrock", Source: "docs.aws.amazon.com/bedrock (ValidationException)", Date: "2026-11-28"},
	{Text: "too many tokens", Host: "cohere, bedrock", Source: "docs.cohere.com/reference/errors", Date: "2026-11-28"},
	{Text: "exceeds the maximum number of tokens", Host: "google", Source: "ai.google.dev/gemini-api/docs/troubleshooting", Date: "2026-11-28"},
	{Text: "reduce the length of the messages", Host: "groq, cerebras", Source: "console.groq.com/docs/errors", Date: "2026-11-28"},
	{Type: "exceed_context_size_error", Host: "llama.cpp", Source: "NousResearch/hermes-agent#89502", Date: "2026-11-28"},
	{Text: "available context size", Host: "llama.cpp, ollama", Source: "janhq/jan#8646; cline/kanban#505", Date: "2026-11-28"},
	{Text: "context size has been exceeded", Host: "llama.cpp, lm studio", Source: "janhq/jan#8646", Date: "2026-11-28"},
	{Text: "configured context size", Host: "ds4", Source: "earendil-works/pi, packages/ai/src/utils/overflow.ts", Date: "2026-11-28"},
	{Text: "greater than the context length", Host: "lm studio", Source: "earendil-works/pi, packages/ai/src/utils/overflow.ts", Date: "2026-11-28"},
	{Text: "when context the overflows", Host: "lm studio", Source: "lmstudio-ai/lmstudio-bug-tracker#237, #546", Date: "2026-11-28"},
	{Text: "exceeds the context length", Host: "ollama", Source: "ollama/ollama, server/routes.go", Date: "2026-11-28"},
	{Text: "prompt too long; exceeded", Host: "ollama", Source: "earendil-works/pi, packages/ai/src/utils/overflow.ts", Date: "2026-11-28"},
	{Text: "longer than the model's context length", Host: "sglang, together", Source: "sgl-project/sglang, managers/tokenizer_manager.py", Date: "2026-11-28"},
	{Text: "maximum prompt length", Host: "x-ai", Source: "earendil-works/pi, packages/ai/src/utils/overflow.ts", Date: "2026-11-28"},
	{Text: "exceeded model token limit", Host: "moonshot", Source: "platform.moonshot.ai/docs/api/chat (errors)", Date: "2026-11-28"},
	{Code: "1261", Host: "z-ai, zhipu", Source: "mangowhoiscloud/geode#668", Date: "2026-11-28"},
	{Text: "prompt exceeds max length", Host: "z-ai, zhipu", Source: "farion1231/cc-switch#6982", Date: "2026-11-28"},
	{Text: "range of input length should be", Host: "dashscope", Source: "help.aliyun.com/zh/model-studio/error-code; QwenLM/qwen-code#3652", Date: "2026-11-28"},
	{Text: "`inputs` tokens + `max_new_tokens`", Host: "together, tgi", Source: "huggingface/text-generation-inference, router/src/validation.rs", Date: "2026-11-28"},
	{Text: "inputs tokens + max_new_tokens", Host: "together, zhipu", Source: "huggingface/text-generation-inference, router/src/validation.rs", Date: "2026-11-28"},
	{Text: "`inputs` must have less than", Host: "tgi", Source: "huggingface/text-generation-inference, router/src/validation.rs", Date: "2026-11-28"},
	{Code: "model_max_prompt_tokens_exceeded", Host: "github copilot", Source: "kortix-ai/suna#6368", Date: "2026-11-28"},
	{Text: "prompt token count of", Host: "github copilot", Source: "kortix-ai/suna#6368", Date: "2026-11-28"},
}

// Balances are how hosts say that the account has no money or quota left. Clients must not
// try again as they do after a rate limit.
var Balances = []Refusal{
	{Code: "insufficient_quota", Host: "openai", Source: "platform.openai.com/docs/guides/error-codes", Date: "2026-11-28"},
	{Type: "insufficient_quota", Host: "openai", Source: "platform.openai.com/docs/guides/error-codes", Date: "2026-11-28"},
	{Code: "1113", Host: "z-ai, zhipu", Source: "zai-org/GLM-5#148", Date: "2026-11-28"},
	{Text: "insufficient balance", Host: "z-ai, deepseek, moonshot", Source: "vercel/ai#9290; api-docs.deepseek.com/quick_start/error_codes", Date: "2026-11-28"},
	{Text: "\u4f59\u989d\u4e0d\u8db3", Host: "zhipu", Source: "continuedev/continue#10297", Date: "2026-11-28"},
	{Type: "exceeded_current_quota_error", Host: "moonshot", Source: "platform.moonshot.ai/docs/api/chat (errors)", Date: "2026-11-28"},
	{Code: "Arrearage", Host: "dashscope", Source: "help.aliyun.com/zh/model-studio/error-code", Date: "2026-11-28"},
	{Text: "credit balance is too low", Host: "anthropic", Source: "docs.claude.com/en/api/errors", Date: "2026-11-28"},
	{Text: "specified api usage limits", Host: "anthropic", Source: "docs.claude.com/en/api/errors", Date: "2026-11-28"},
	{Code: "enforced_spend_limit_reached", Host: "anthropic", Source: "docs.claude.com/en/api/errors", Date: "2026-11-28"},
}

// MeaningOf returns the code of an error for clients, independent of the host:
// chat.InsufficientQuota, chat.ContextLength, or nothing. Words only count if they cannot
// be those of a rate limit or of a failed host: "too many tokens" is used for both.
func MeaningOf(p *chat.ProviderError) fault.Code {
	words := strings.ToLower(p.Message)
	if p.Status == http.StatusPaymentRequired || matches(Balances, p, words) {
		return chat.InsufficientQuota
	}
	switch p.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusInternalServerError:
	default:
		words = ""
	}
	if matches(Overflows, p, words) {
		return chat.ContextLength
	}
	return ""
}

// matches reports whether a row matches an error with these words.
func matches(rows []Refusal, p *chat.ProviderError, words string) bool {
	for i := range rows {
		switch r := &rows[i]; {
		case r.Code != "" && r.Code == p.Code,
			r.Type != "" && r.Type == p.Type,
			r.Text != "" && strings.Contains(words, r.Text):
			return true
		}
	}
	return false
}
