package hosts

import "gateway/shared/chat"

// Stop is a finish_reason that a host sends beside OpenAI's own.
type Stop struct {
	Name   string
	Reason chat.StopReason
	// Failed reports that the host aborted: the response is not a success, whatever was
	// sent before.
	Failed bool
	Host   string
}

// Stops are the finish reasons of hosts. A word has the same meaning at every host, because the
// same servers also run under other names.
var Stops = []Stop{
	{Name: "sensitive", Reason: chat.StopFilter, Host: "z-ai, zhipu"},                     // docs.z.ai/api-reference/llm/chat-completion, 2026-11-28
	{Name: "network_error", Failed: true, Host: "z-ai, zhipu"},                            // docs.z.ai/api-reference/llm/chat-completion, 2026-11-28
	{Name: "model_context_window_exceeded", Reason: chat.StopLength, Host: "z-ai, zhipu"}, // docs.z.ai/api-reference/llm/chat-completion; anomalyco/opencode#18918, 2026-11-28
	{Name: "insufficient_system_resource", Failed: true, Host: "deepseek"},                // api-docs.deepseek.com/api/create-chat-completion, 2026-11-28
	{Name: "aborted", Failed: true, Host: "deepseek"},                                     // api-docs.deepseek.com/api/create-chat-completion, 2026-11-28
	{Name: "error", Failed: true, Host: "openrouter, mistral, vllm"},                      // openrouter.ai/docs/api/reference/errors-and-debugging; docs.mistral.ai/api (finish_reason), 2026-11-28
	{Name: "abort", Failed: true, Host: "vllm, sglang"},                                   // vllm/v1/engine/__init__.py (FinishReason), 2026-11-28
	{Name: "eos", Reason: chat.StopEnd, Host: "together"},                                 // docs.together.ai/reference/chat-completions-1, 2026-11-28
	{Name: "eos_token", Reason: chat.StopEnd, Host: "tgi"},                                // huggingface/text-generation-inference, router/src/lib.rs (FinishReason), 2026-11-28
	{Name: "stop_sequence", Reason: chat.StopSequence, Host: "tgi, hosts of Claude"},      // huggingface/text-generation-inference, router/src/lib.rs (FinishReason), 2026-11-28
	{Name: "model_length", Reason: chat.StopLength, Host: "mistral"},                      // docs.mistral.ai/api (finish_reason), 2026-11-28
	{Name: "max_tokens", Reason: chat.StopLength, Host: "hosts of Claude"},                // docs.claude.com/en/api/messages (stop_reason), 2026-11-28
	{Name: "end_turn", Reason: chat.StopEnd, Host: "hosts of Claude"},                     // docs.claude.com/en/api/messages (stop_reason), 2026-11-28
	{Name: "tool_use", Reason: chat.StopToolCalls, Host: "hosts of Claude"},               // docs.claude.com/en/api/messages (stop_reason), 2026-11-28
	{Name: "refusal", Reason: chat.StopFilter, Host: "hosts of Claude"},                   // docs.claude.com/en/api/messages (stop_reason), 2026-11-28
	{Name: "function_call", Reason: chat.StopToolCalls, Host: "older models of OpenAI"},   // platform.openai.com/docs/api-reference/chat/object, 2026-11-28
}

// StopOf reads a finish_reason. failed reports that the host aborted. A word that no row
// has is chat.StopUnknown.
func StopOf(finish []byte) (reason chat.StopReason, failed bool) {
	switch string(finish) {
	case "stop":
		return chat.StopEnd, false
	case "length":
		return chat.StopLength, false
	case "tool_calls":
		return chat.StopToolCalls, false
	case "content_filter":
		return chat.StopFilter, false
	}
	for i := range Stops {
		if s := &Stops[i]; s.Name == string(finish) {
			return s.Reason, s.Failed
		}
	}
	return chat.StopUnknown, false
}
