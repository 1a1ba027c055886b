package clients

// drivers are programs with an SDK for agents, which has the task done with tools of the program. Each
// API is used with complete responses and with streams.
func drivers() []pinned {
	named := func(prefix string) tools {
		return tools{
			read: one(prefix+"read", "path"), picture: one(prefix+"read", "path"), run: one(prefix+"run", "command"),
			edit: edits(prefix+"edit", "path", "before", "after"), write: writes(prefix+"write", "path", "content"),
		}
	}
	env := func(root, key string) []string {
		return []string{"GATEWAY_URL=" + root, "GATEWAY_API_KEY=" + key}
	}
	claude := func(root, key string) []string {
		return []string{"ANTHROPIC_BASE_URL=" + root, "ANTHROPIC_AUTH_TOKEN=" + key, "ANTHROPIC_SMALL_FAST_MODEL=" + strictModel, "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
	}
	const folder = "../../drivers/"
	list := []pinned{{"Claude Agent SDK", "@anthropic-ai/claude-agent-sdk", "Messages", folder + "claude_agent_sdk.mjs", named("mcp__driver__"), []string{"messages", strictModel}, false, "", claude}}
	for _, d := range []struct{ agent, pkg, program, wire, name string }{
		{"OpenAI Agents SDK", "@openai/agents", "openai_agents.mjs", "Responses", "responses"},
		{"OpenAI Agents SDK", "@openai/agents", "openai_agents.mjs", "chat", "chat"},
		{"AI SDK, @ai-sdk/openai", "ai, @ai-sdk/openai", "ai_sdk.mjs", "Responses", "responses"},
		{"AI SDK, @ai-sdk/openai", "ai, @ai-sdk/openai", "ai_sdk.mjs", "Responses, store false", "unstored"},
		{"AI SDK, @ai-sdk/openai", "ai, @ai-sdk/openai", "ai_sdk.mjs", "chat", "chat"},
		{"AI SDK, @ai-sdk/openai-compatible", "ai, @ai-sdk/openai-compatible", "ai_sdk.mjs", "chat", "compatible"},
		{"AI SDK, @ai-sdk/anthropic", "ai, @ai-sdk/anthropic", "ai_sdk.mjs", "Messages", "messages"},
		{"AI SDK, @ai-sdk/google", "ai, @ai-sdk/google", "ai_sdk.mjs", "Gemini", "gemini"},
	} {
		list = append(list, pinned{d.agent, d.pkg, d.wire, folder + d.program, named(""), []string{d.name, strictModel}, false, "", env},
			pinned{d.agent, d.pkg, d.wire + ", streamed", folder + d.program, named(""), []string{d.name + ",streamed", strictModel}, false, "", env})
	}
	return list
}
