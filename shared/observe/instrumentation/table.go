package instrumentation

// A row describes an instrumentation, or a family of them. The zero value of its sums is
// what the conventions demand: cached tokens are part of the input tokens, and reasoning
// tokens are part of the output tokens.
type row struct {
	name   string
	source string   // package, version and date of the source
	scopes []string // beginnings of the names of its scopes
	marks  []string // attributes, or their beginnings with a dot at the end, that identify it without a scope

	besideCache     bool // input tokens are without tokens read from and written to a cache
	besideReasoning bool // output tokens are without reasoning tokens
	total           bool // the total is the provider's, not the sum of two numbers of the sender

	names map[field][]string // the best one first; member#of is a member of JSON in an attribute
	kinds map[string]string  // values of the field kind, with the type of request; "": no call
}

// conventions describe the GenAI conventions in all versions. They apply to unknown senders,
// and after the names of a sender's own row.
var conventions = row{
	name: "gen_ai", source: "OpenTelemetry semantic conventions 1.27 to 1.45, @opentelemetry/instrumentation-openai 0.22.0, 2026-11-28",
	total: true,
	names: map[field][]string{
		operation:      {"gen_ai.operation.name"},
		provider:       {"gen_ai.provider.name"},
		system:         {"gen_ai.system"},
		requestedModel: {"gen_ai.request.model"},
		model:          {"gen_ai.response.model"},
		finish:         {"gen_ai.response.finish_reasons", "gen_ai.response.finish_reason"},
		response:       {"gen_ai.response.id"},

		input:     {"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"},
		output:    {"gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"},
		total:     {"gen_ai.usage.total_tokens"},
		cacheRead: {"gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens", "gen_ai.usage.input_tokens.cached", "gen_ai.usage.cached_input_tokens", "gen_ai.usage.cached_tokens", "gen_ai.usage.cache_read_tokens", "gen_ai.usage.details.cache_read_tokens", "gen_ai.usage.details.cache_read_input_tokens", "gen_ai.usage.details.cached_tokens", "cache_read_input_tokens"},
		cacheWrite: {"gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens", "gen_ai.usage.input_tokens.cache_write", "gen_ai.usage.cache_write_tokens", "gen_ai.usage.details.cache_write_tokens",
			"gen_ai.usage.details.cache_creation_input_tokens", "cache_creation_input_tokens"},
		cacheWrite5m:   {"gen_ai.usage.cache_creation.5m_input_tokens", "gen_ai.usage.cache_creation.ephemeral_5m_input_tokens", "gen_ai.usage.details.ephemeral_5m_input_tokens"},
		cacheWrite1h:   {"gen_ai.usage.cache_creation.1h_input_tokens", "gen_ai.usage.cache_creation.ephemeral_1h_input_tokens", "gen_ai.usage.details.ephemeral_1h_input_tokens"},
		reasoning:      {"gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens", "gen_ai.usage.output_tokens.reasoning", "gen_ai.usage.details.reasoning_tokens", "gen_ai.usage.details.thoughts_tokens"},
		textIn:         {"gen_ai.usage.text.input_tokens"},
		textOut:        {"gen_ai.usage.text.output_tokens"},
		audioIn:        {"gen_ai.usage.audio.input_tokens", "gen_ai.usage.audio_input_tokens", "gen_ai.usage.details.input_audio_tokens"},
		audioCacheRead: {"gen_ai.usage.audio.cache_read.input_tokens", "gen_ai.usage.cache_audio_read_tokens"},
		imageIn:        {"gen_ai.usage.image.input_tokens", "gen_ai.usage.image_input_tokens"},
		audioOut:       {"gen_ai.usage.audio.output_tokens", "gen_ai.usage.audio_output_tokens", "gen_ai.usage.details.output_audio_tokens"},
		imageOut:       {"gen_ai.usage.image.output_tokens", "gen_ai.usage.image_output_tokens"},
		tier:           {"gen_ai.openai.response.service_tier", "openai.response.service_tier", "gen_ai.response.service_tier", "gen_ai.openai.request.service_tier", "openai.request.service_tier", "gen_ai.request.service_tier"},
		cost:           {"gen_ai.usage.cost", "gen_ai.usage.total_cost", "gen_ai.cost.total", "operation.cost"},

		session: {"session.id", "gen_ai.conversation.id", "session_id", "thread_id"},
		user:    {"user.id", "enduser.id", "gen_ai.user", "gen_ai.user.id", "gen_ai.request.user", "user_id"},
		agent:   {"gen_ai.agent.id", "gen_ai.agent.name"},
		url:     {"url.full", "http.url"},
		stream:  {"gen_ai.request.stream", "gen_ai.is_streaming", "gen_ai.request.streaming", "llm.is_streaming"},
		first:   {"gen_ai.response.time_to_first_chunk", "gen_ai.client.operation.time_to_first_chunk", "gen_ai.response.time_to_first_token", "gen_ai.server.time_to_first_token"},
		status:  {"http.response.status_code", "http.status_code"},
		errType: {"error.type"},
		errText: {"error.message", "exception.message"},
		ours:    {"gateway.log.id"},

		question:     {"gen_ai.input.messages", "gen_ai.request.messages", "gen_ai.prompt", "gen_ai.embeddings.input"},
		reply:        {"gen_ai.output.messages", "gen_ai.completion"},
		calls:        {"gen_ai.response.tool_calls"},
		instructions: {"gen_ai.system_instructions"},
		tools:        {"gen_ai.tool.definitions", "gen_ai.request.available_tools"},

		questions: {"gen_ai.prompt."},
		replies:   {"gen_ai.completion."},
		metadata:  {"gateway.metadata."},
	},
}

// table is the table of senders. Their names are unique to them, so that the names of all
// rows are read from each span; only names that two rows use with different precedence, and
// the sums, depend on the sender.
var table = []row{
	{
		name: "Traceloop for Anthropic", source: "@traceloop/instrumentation-anthropic 0.27.0, 2026-11-28",
		scopes: []string{"@traceloop/instrumentation-anthropic"}, besideCache: true,
	},
	{
		name: "Traceloop for Google", source: "@traceloop/instrumentation-google-generativeai 0.27.0, 2026-11-28",
		scopes: []string{"@traceloop/instrumentation-google", "@traceloop/instrumentation-vertexai"}, besideReasoning: true, total: true,
	},
	{
		name: "Traceloop", source: "@traceloop/instrumentation-openai, -bedrock, -langchain 0.27.0, ai-semantic-conventions 0.27.0, 2026-11-28",
		scopes: []string{"@traceloop/", "opentelemetry.instrumentation.", "traceloop"}, marks: []string{"traceloop."},
		names: map[field][]string{
			kind:           {"llm.request.type", "traceloop.span.kind"},
			total:          {"llm.usage.total_tokens"},
			input:          {"llm.usage.prompt_tokens"},
			output:         {"llm.usage.completion_tokens"},
			requestedModel: {"llm.request.model"},
			model:          {"llm.response.model"},
			finish:         {"llm.response.finish_reason", "llm.response.stop_reason"},
			session:        {"traceloop.association.properties.session_id", "traceloop.association.properties.sessionId", "traceloop.association.properties.thread_id", "traceloop.association.properties.conversation_id"},
			user:           {"traceloop.association.properties.user_id", "traceloop.association.properties.userId", "llm.user"},
			tools:          {"llm.request.functions"},
			question:       {"traceloop.entity.input"},
			reply:          {"traceloop.entity.output"},
			questions:      {"llm.prompts."},
			replies:        {"llm.completions."},
			metadata:       {"traceloop.association.properties."},
		},
		kinds: map[string]string{"chat": "chatComplete", "completion": "complete", "embedding": "embed", "rerank": "rerank", "workflow": "", "task": "", "agent": "", "tool": "", "unknown": ""},
	},
	{
		name: "OpenInference", source: "@arizeai/openinference-instrumentation-openai 4.2.7, -anthropic 0.2.8, -langchain 4.1.1, openinference-vercel 3.2.1, 2026-11-28",
		scopes: []string{"@arizeai/openinference", "openinference.instrumentation"}, marks: []string{"openinference.", "llm.token_count.", "llm.model_name"}, total: true,
		names: map[field][]string{
			kind:           {"openinference.span.kind"},
			provider:       {"llm.provider"},
			system:         {"llm.system"},
			requestedModel: {"llm.request.model_name", "llm.model_name", "embedding.model_name", "reranker.model_name"},
			model:          {"llm.response.model_name"},
			finish:         {"llm.finish_reason"},
			input:          {"llm.token_count.prompt"},
			output:         {"llm.token_count.completion"},
			total:          {"llm.token_count.total"},
			cacheRead:      {"llm.token_count.prompt_details.cache_read", "llm.token_count.prompt_details.cache_input"},
			cacheWrite:     {"llm.token_count.prompt_details.cache_write"},
			audioIn:        {"llm.token_count.prompt_details.audio"},
			reasoning:      {"llm.token_count.completion_details.reasoning"},
			audioOut:       {"llm.token_count.completion_details.audio"},
			cost:           {"llm.cost.total"},
			question:       {"input.value"},
			reply:          {"output.value"},
			questions:      {"llm.input_messages."},
			replies:        {"llm.output_messages."},
			toolList:       {"llm.tools."},
			metadata:       {"metadata."},
			metadataObject: {"metadata"},
		},
		kinds: map[string]string{"llm": "chatComplete", "embedding": "embed", "reranker": "rerank", "agent": "", "chain": "", "tool": "", "retriever": "", "guardrail": "", "evaluator": "", "prompt": ""},
	},
	{
		name: "Langfuse", source: "@langfuse/openai and @langfuse/otel 5.11.1, 2026-11-28",
		scopes: []string{"langfuse-sdk"}, marks: []string{"langfuse."}, besideCache: true, besideReasoning: true, total: true,
		names: map[field][]string{
			kind:           {"langfuse.observation.type"},
			requestedModel: {"langfuse.observation.model.name"},
			input:          {"langfuse.observation.usage_details#input"},
			output:         {"langfuse.observation.usage_details#output"},
			total:          {"langfuse.observation.usage_details#total"},
			cacheRead:      {"langfuse.observation.usage_details#input_cached_tokens", "langfuse.observation.usage_details#input_cache_read", "langfuse.observation.usage_details#cache_read_input_tokens"},
			cacheWrite:     {"langfuse.observation.usage_details#input_cache_creation", "langfuse.observation.usage_details#cache_creation_input_tokens"},
			audioIn:        {"langfuse.observation.usage_details#input_audio_tokens"},
			reasoning:      {"langfuse.observation.usage_details#output_reasoning_tokens", "langfuse.observation.usage_details#output_reasoning"},
			audioOut:       {"langfuse.observation.usage_details#output_audio_tokens"},
			tier:           {"langfuse.observation.model.parameters#service_tier", "langfuse.observation.metadata.service_tier"},
			cost:           {"langfuse.observation.cost_details#total"},
			session:        {"langfuse.session.id"},
			user:           {"langfuse.user.id"},
			firstAt:        {"langfuse.observation.completion_start_time"},
			level:          {"langfuse.observation.level"},
			errText:        {"langfuse.observation.status_message"},
			question:       {"langfuse.observation.input"},
			reply:          {"langfuse.observation.output"},
			metadata:       {"langfuse.trace.metadata.", "langfuse.observation.metadata."},
		},
		kinds: map[string]string{"generation": "chatComplete", "embedding": "embed", "span": "", "event": "", "agent": "", "chain": "", "tool": "", "retriever": "", "evaluator": "", "guardrail": ""},
	},
	{
		name: "AI SDK", source: "ai 6.0.326 and 7.0.173, @ai-sdk/otel 1.0.173 (also LegacyOpenTelemetry), 2026-11-28",
		scopes: []string{"ai", "gen_ai"}, marks: []string{"ai.operationId"}, total: true,
		names: map[field][]string{
			kind:           {"ai.operationId"},
			system:         {"ai.model.provider"},
			requestedModel: {"ai.model.id"},
			model:          {"ai.response.model"},
			response:       {"ai.response.id"},
			finish:         {"ai.response.finishReason"},
			input:          {"ai.usage.inputTokens", "ai.usage.promptTokens", "ai.usage.tokens"},
			output:         {"ai.usage.outputTokens", "ai.usage.completionTokens"},
			total:          {"ai.usage.totalTokens"},
			cacheRead:      {"ai.usage.inputTokenDetails.cacheReadTokens", "ai.usage.cachedInputTokens"},
			cacheWrite:     {"ai.usage.inputTokenDetails.cacheWriteTokens"},
			reasoning:      {"ai.usage.outputTokenDetails.reasoningTokens", "ai.usage.reasoningTokens"},
			textIn:         {"ai.usage.inputTokenDetails.noCacheTokens"},
			textOut:        {"ai.usage.outputTokenDetails.textTokens"},
			session:        {"ai.telemetry.metadata.sessionId", "ai.telemetry.metadata.session_id", "ai.settings.context.sessionId", "ai.settings.context.session_id"},
			user:           {"ai.telemetry.metadata.userId", "ai.telemetry.metadata.user_id", "ai.settings.context.userId", "ai.settings.context.user_id"},
			firstMillis:    {"ai.response.msToFirstChunk"},
			question:       {"ai.prompt.messages", "ai.prompt", "ai.values", "ai.value"},
			reply:          {"ai.response.text", "ai.response.object"},
			calls:          {"ai.response.toolCalls"},
			tools:          {"ai.prompt.tools"},
			metadata:       {"ai.telemetry.metadata.", "ai.settings.context."},
			metadataObject: {"ai.telemetry.metadata"},
		},
		kinds: map[string]string{
			"ai.generatetext.dogenerate": "chatComplete", "ai.streamtext.dostream": "chatComplete", "ai.generateobject.dogenerate": "chatComplete", "ai.streamobject.dostream": "chatComplete",
			"ai.embed.doembed": "embed", "ai.embedmany.doembed": "embed", "ai.rerank.dorerank": "rerank",
			"ai.generatetext": "", "ai.streamtext": "", "ai.generateobject": "", "ai.streamobject": "", "ai.embed": "", "ai.embedmany": "", "ai.rerank": "", "ai.toolcall": "",
		},
	},
	{
		name: "LangSmith", source: "langsmith 0.12.0 in OTEL mode, 2026-11-28",
		scopes: []string{"langsmith"}, marks: []string{"langsmith."},
		names: map[field][]string{
			kind:           {"langsmith.span.kind"},
			requestedModel: {"langsmith.metadata.ls_model_name"},
			system:         {"langsmith.metadata.ls_provider"},
			cacheRead:      {"gen_ai.usage.input_token_details#cache_read"},
			cacheWrite:     {"gen_ai.usage.input_token_details#cache_creation"},
			cacheWrite5m:   {"gen_ai.usage.input_token_details#ephemeral_5m_input_tokens"},
			cacheWrite1h:   {"gen_ai.usage.input_token_details#ephemeral_1h_input_tokens"},
			audioIn:        {"gen_ai.usage.input_token_details#audio"},
			reasoning:      {"gen_ai.usage.output_token_details#reasoning"},
			audioOut:       {"gen_ai.usage.output_token_details#audio"},
			session:        {"langsmith.metadata.session_id", "langsmith.metadata.thread_id", "langsmith.metadata.conversation_id", "langsmith.trace.session_id"},
			user:           {"langsmith.metadata.user_id", "langsmith.metadata.userId"},
			metadata:       {"langsmith.metadata."},
		},
		kinds: map[string]string{"llm": "chatComplete", "embedding": "embed", "chain": "", "tool": "", "retriever": "", "prompt": "", "parser": ""},
	},
	{
		name: "Mastra", source: "@mastra/otel-exporter 1.4.0, @mastra/core 1.71.0, 2026-11-28",
		scopes: []string{"@mastra/"}, marks: []string{"mastra."}, total: true,
		names: map[field][]string{
			kind:     {"mastra.span.type"},
			session:  {"mastra.metadata.sessionId", "mastra.metadata.threadId"},
			user:     {"mastra.metadata.userId"},
			firstAt:  {"mastra.completion_start_time"},
			question: {"mastra.model_inference.input", "mastra.model_step.input", "mastra.model_generation.input", "mastra.agent_run.input"},
			reply:    {"mastra.model_chunk.output", "mastra.model_step.output", "mastra.model_generation.output", "mastra.agent_run.output"},
			metadata: {"mastra.metadata."},
		},
		kinds: map[string]string{"model_inference": "chatComplete", "model_generation": "", "model_step": "", "model_chunk": "", "agent_run": "", "tool_call": "", "workflow_run": "", "workflow_step": "", "generic": ""},
	},
	{
		name: "Google ADK", source: "@google/adk 2.0.0, 2026-11-28",
		scopes: []string{"gcp.vertex.agent"}, marks: []string{"gcp.vertex.agent."}, besideReasoning: true, total: true,
		names: map[field][]string{
			input:     {"gcp.vertex.agent.llm_response#usageMetadata.promptTokenCount"},
			output:    {"gcp.vertex.agent.llm_response#usageMetadata.candidatesTokenCount"},
			cacheRead: {"gcp.vertex.agent.llm_response#usageMetadata.cachedContentTokenCount"},
			reasoning: {"gcp.vertex.agent.llm_response#usageMetadata.thoughtsTokenCount"},
			total:     {"gcp.vertex.agent.llm_response#usageMetadata.totalTokenCount"},
			session:   {"gcp.vertex.agent.session_id"},
			question:  {"gcp.vertex.agent.llm_request"},
			reply:     {"gcp.vertex.agent.llm_response"},
		},
	},
	{
		name: "Sentry", source: "@sentry/node 10.78.0 and 11.12.0, 2026-11-28",
		scopes: []string{"@sentry/", "sentry"}, marks: []string{"sentry."}, total: true,
		names: map[field][]string{
			cost:  {"gen_ai.cost.total_tokens"},
			reply: {"gen_ai.response.text", "gen_ai.response.object"},
		},
	},
	{
		name: "Anthropic SDK", source: "@anthropic-ai/sdk 0.137.0 and 1.14.0, 2026-11-28",
		scopes: []string{"com.anthropic.sdk"}, marks: []string{"anthropic.request.id"},
		names: map[field][]string{
			cacheWrite5m: {"anthropic.usage.cache_creation.ephemeral_5m_input_tokens"},
			cacheWrite1h: {"anthropic.usage.cache_creation.ephemeral_1h_input_tokens"},
			tier:         {"anthropic.response.service_tier"},
			finish:       {"anthropic.message.stop_reason"},
		},
	},
}

// operations are the operations of the conventions and their variants. Those that call no
// model, or have the summed usage of calls, have no request type.
var operations = map[string]string{
	"chat": "chatComplete", "generate_content": "chatComplete", "messages": "chatComplete", "message": "chatComplete", "responses": "chatComplete", "response": "chatComplete", "generate_text": "chatComplete",
	"stream_text": "chatComplete", "text_completion": "complete", "completion": "complete", "completions": "complete", "embeddings": "embed", "embedding": "embed", "embed": "embed", "rerank": "rerank",
	"image_generation": "imageGenerate", "generate_image": "imageGenerate", "images": "imageGenerate",
	"invoke_agent": "", "create_agent": "", "agent_step": "", "execute_tool": "", "invoke_workflow": "", "agent": "", "chain": "", "tool": "", "workflow": "", "model_generation": "", "model_step": "", "model_chunk": "",
	"retrieval": "", "handoff": "", "guardrail": "",
}
