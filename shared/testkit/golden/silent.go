package golden

import "gateway/shared/chat"

// SilentInChat are fields of a chat that may be omitted without a report: the provider
// does anyway what they ask for, or they concern the gateway alone.
func SilentInChat(name string, r *chat.Request) bool {
	switch name {
	case "stream":
		return !r.Stream
	case "stream_options", "n":
		return true // usage is always given; n above one is rejected
	case "max_tokens":
		return r.MaxTokensField == "max_completion_tokens"
	case "stop":
		return len(r.Stop) == 0
	case "user":
		return r.User == ""
	case "service_tier":
		return r.ServiceTier == ""
	case "parallel_tool_calls":
		return r.Parallel.Value || len(r.Tools) == 0 || r.ToolChoice.Mode == chat.ToolsNone
	case "tool_choice", "function_call":
		return len(r.Tools) == 0 && !r.ToolChoice.Forced()
	case "tools", "functions":
		return len(r.Tools) == 0
	case "response_format":
		return r.Format.Kind == chat.FormatText
	case "reasoning_effort":
		return r.Reasoning.Effort == "" || r.Reasoning.Effort == "none" || r.Reasoning.Effort == "minimal" || r.Reasoning.Thinking == chat.ThinkingOff
	}
	return false
}

// SilentInMessages is SilentInChat for messages.
func SilentInMessages(name string, r *chat.Request) bool {
	switch name {
	case "stream":
		return !r.Stream
	case "stop_sequences":
		return len(r.Stop) == 0
	case "system":
		return len(r.Messages) == 0 || r.Messages[0].Role != chat.System || len(r.Messages[0].Parts) == 0
	case "tools", "tool_choice":
		return len(r.Tools) == 0
	case "metadata":
		return r.User == ""
	case "service_tier":
		return r.ServiceTier == ""
	case "thinking":
		return r.Reasoning.Thinking < chat.ThinkingBudget
	case "output_config":
		return r.Reasoning.Effort == "" && r.Format.Kind == chat.FormatText
	}
	return false
}
