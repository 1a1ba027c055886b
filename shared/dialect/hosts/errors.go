package hosts

import (
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// Refusal is how a host reports that a conversation is too long, or that an account has no
// money. A row matches the code, the type, or words of the message in lower case.
type Refusal struct {
	Code, Type, Text string
	Host             string
}

// Overflows are the error texts of hosts for a conversation that exceeds the model's
// context. Agents compact their history after this error.
var Overflows = []Refusal{
	{Code: "context_length_exceeded", Host: "openai"},                                                     // platform.openai.com/docs/guides/error-codes, 2026-11-28
	{Text: "context_length_exceeded", Host: "openai, openrouter"},                                         // openrouter.ai/docs/api/reference/errors-and-debugging, 2026-11-28
	{Text: "maximum context length", Host: "openai, vllm, openrouter, mistral, deepseek, sglang, ollama"}, // earendil-works/pi#5929, 2026-11-28
	{Text: "context window", Host: "openai (Responses), minimax, llama-cpp-python"},                       // abetlen/llama-cpp-python#416, 2026-11-28
	{Text: "prompt is too long", Host: "anthropic, fireworks"},                                            // docs.claude.com/en/api/errors, 2026-11-28
	{Text: "context limit", Host: "anthropic"},                                                            // docs.claude.com/en/api/errors, 2026-11-28
	{Text: "input length and `max_tokens` exceed", Host: "anthropic"},                                     // docs.claude.com/en/api/errors, 2026-11-28
	{Text: "input is too long", Host: "bedrock, fireworks"},                                               // docs.aws.amazon.com/bedrock (ValidationException), 2026-11-28
	{Text: "too many input tokens", Host: "bedrock"},                                                      // docs.aws.amazon.com/bedrock (ValidationException), 2026-11-28
	{Text: "too many tokens", Host: "cohere, bedrock"},                                                    // docs.cohere.com/reference/errors, 2026-11-28
	{Text: "exceeds the maximum number of tokens", Host: "google"},                                        // ai.google.dev/gemini-api/docs/troubleshooting, 2026-11-28
	{Text: "reduce the length of the messages", Host: "groq, cerebras"},                                   // console.groq.com/docs/errors, 2026-11-28
	{Type: "exceed_context_size_error", Host: "llama.cpp"},                                                // NousResearch/hermes-agent#89502, 2026-11-28
	{Text: "available context size", Host: "llama.cpp, ollama"},                                           // janhq/jan#8646; cline/kanban#505, 2026-11-28
	{Text: "context size has been exceeded", Host: "llama.cpp, lm studio"},                                // janhq/jan#8646, 2026-11-28
	{Text: "configured context size", Host: "ds4"},                                                        // earendil-works/pi, packages/ai/src/utils/overflow.ts, 2026-11-28
	{Text: "greater than the context length", Host: "lm studio"},                                          // earendil-works/pi, packages/ai/src/utils/overflow.ts, 2026-11-28
	{Text: "when context the overflows", Host: "lm studio"},                                               // lmstudio-ai/lmstudio-bug-tracker#237, #546, 2026-11-28
	{Text: "exceeds the context length", Host: "ollama"},                                                  // ollama/ollama, server/routes.go, 2026-11-28
	{Text: "prompt too long; exceeded", Host: "ollama"},                                                   // earendil-works/pi, packages/ai/src/utils/overflow.ts, 2026-11-28
	{Text: "longer than the model's context length", Host: "sglang, together"},                            // sgl-project/sglang, managers/tokenizer_manager.py, 2026-11-28
	{Text: "maximum prompt length", Host: "x-ai"},                                                         // earendil-works/pi, packages/ai/src/utils/overflow.ts, 2026-11-28
	{Text: "exceeded model token limit", Host: "moonshot"},                                                // platform.moonshot.ai/docs/api/chat (errors), 2026-11-28
	{Code: "1261", Host: "z-ai, zhipu"},                                                                   // mangowhoiscloud/geode#668, 2026-11-28
	{Text: "prompt exceeds max length", Host: "z-ai, zhipu"},                                              // farion1231/cc-switch#6982, 2026-11-28
	{Text: "range of input length should be", Host: "dashscope"},                                          // help.aliyun.com/zh/model-studio/error-code; QwenLM/qwen-code#3652, 2026-11-28
	{Text: "`inputs` tokens + `max_new_tokens`", Host: "together, tgi"},                                   // huggingface/text-generation-inference, router/src/validation.rs, 2026-11-28
	{Text: "inputs tokens + max_new_tokens", Host: "together, zhipu"},                                     // huggingface/text-generation-inference, router/src/validation.rs, 2026-11-28
	{Text: "`inputs` must have less than", Host: "tgi"},                                                   // huggingface/text-generation-inference, router/src/validation.rs, 2026-11-28
	{Code: "model_max_prompt_tokens_exceeded", Host: "github copilot"},                                    // kortix-ai/suna#6368, 2026-11-28
	{Text: "prompt token count of", Host: "github copilot"},                                               // kortix-ai/suna#6368, 2026-11-28
}

// Balances are how hosts report that the account has no money or quota left. Clients must not
// try again as they do after a rate limit.
var Balances = []Refusal{
	{Code: "insufficient_quota", Host: "openai"},                     // platform.openai.com/docs/guides/error-codes, 2026-11-28
	{Type: "insufficient_quota", Host: "openai"},                     // platform.openai.com/docs/guides/error-codes, 2026-11-28
	{Code: "1113", Host: "z-ai, zhipu"},                              // zai-org/GLM-5#148, 2026-11-28
	{Text: "insufficient balance", Host: "z-ai, deepseek, moonshot"}, // vercel/ai#9290; api-docs.deepseek.com/quick_start/error_codes, 2026-11-28
	{Text: "\u4f59\u989d\u4e0d\u8db3", Host: "zhipu"},                // continuedev/continue#10297, 2026-11-28
	{Type: "exceeded_current_quota_error", Host: "moonshot"},         // platform.moonshot.ai/docs/api/chat (errors), 2026-11-28
	{Code: "Arrearage", Host: "dashscope"},                           // help.aliyun.com/zh/model-studio/error-code, 2026-11-28
	{Text: "credit balance is too low", Host: "anthropic"},           // docs.claude.com/en/api/errors, 2026-11-28
	{Text: "specified api usage limits", Host: "anthropic"},          // docs.claude.com/en/api/errors, 2026-11-28
	{Code: "enforced_spend_limit_reached", Host: "anthropic"},        // docs.claude.com/en/api/errors, 2026-11-28
}

// CodeOf returns the code of an error for clients, independent of the host:
// chat.InsufficientQuota, chat.ContextLength, or nothing. Words only count if they cannot
// be those of a rate limit or of a failed host: "too many tokens" is used for both.
func CodeOf(p *chat.ProviderError) fault.Code {
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
