package observe

// Names of attributes and metrics. The conventions still change, so the names are only in
// this file.
const (
	attrOperation       = "gen_ai.operation.name"
	attrProvider        = "gen_ai.provider.name"
	attrRequestModel    = "gen_ai.request.model"
	attrResponseModel   = "gen_ai.response.model"
	attrResponseID      = "gen_ai.response.id"
	attrFinishReasons   = "gen_ai.response.finish_reasons"
	attrConversation    = "gen_ai.conversation.id"
	attrMaxTokens       = "gen_ai.request.max_tokens"
	attrTemperature     = "gen_ai.request.temperature"
	attrTopP            = "gen_ai.request.top_p"
	attrTopK            = "gen_ai.request.top_k"
	attrStop            = "gen_ai.request.stop_sequences"
	attrFrequency       = "gen_ai.request.frequency_penalty"
	attrPresence        = "gen_ai.request.presence_penalty"
	attrSeed            = "gen_ai.request.seed"
	attrChoices         = "gen_ai.request.choice.count"
	attrEncodings       = "gen_ai.request.encoding_formats"
	attrInputMessages   = "gen_ai.input.messages"
	attrOutputMessages  = "gen_ai.output.messages"
	attrInstructions    = "gen_ai.system_instructions"
	attrTools           = "gen_ai.tool.definitions"
	attrInputTokens     = "gen_ai.usage.input_tokens"
	attrOutputTokens    = "gen_ai.usage.output_tokens"
	attrCacheReadTokens = "gen_ai.usage.cache_read.input_tokens"
	attrErrorType       = "error.type"
	attrUser            = "user.id"
	attrServerAddress   = "server.address"
	attrServerPort      = "server.port"
	attrOutputType      = "gen_ai.output.type"
	attrUsageCost       = "gen_ai.usage.cost" // dollars
	attrEstimated       = "gateway.usage.estimated"

	// Names that are in use today.
	attrSystem           = "gen_ai.system"
	attrCacheMadeTokens  = "gen_ai.usage.cache_creation.input_tokens"
	attrTokenType        = "gen_ai.token.type"
	metricTokens         = "gen_ai.client.token.usage"
	metricDuration       = "gen_ai.client.operation.duration"
	conventionsOfToday   = "1.45.0"
	schemaOfToday        = "https://opentelemetry.io/schemas/1.45.0"
	attrConventionsOfNow = "otel.semconv.version"

	// The newer names.
	attrCacheWriteTokens = "gen_ai.usage.cache_write.input_tokens"
	attrReasoningTokens  = "gen_ai.usage.reasoning.output_tokens"
	attrStream           = "gen_ai.request.stream"
	attrFirstChunk       = "gen_ai.response.time_to_first_chunk"
	attrModality         = "gen_ai.token.modality"
	metricSpentBefore    = "gen_ai.client.inference.usage."
	metricSpreadBefore   = "gen_ai.client.inference.operation."

	// Names for protocols that call no model.
	attrMethod       = "mcp.method.name"
	attrVersion      = "mcp.protocol.version"
	attrResource     = "mcp.resource.uri"
	attrTool         = "gen_ai.tool.name"
	attrPromptName   = "gen_ai.prompt.name"
	attrAgentName    = "gen_ai.agent.name"
	attrStatusCode   = "rpc.response.status_code"
	attrAgentMethod  = "a2a.method.name"
	attrAgentVersion = "a2a.protocol.version"
	metricServer     = "mcp.server.operation.duration"
	metricAgent      = "gateway.a2a.operation.duration"
	toolError        = "tool_error"
	clientGone       = "client_disconnected"
	executeTool      = "execute_tool"
	invokeAgent      = "invoke_agent"

	// The gateway's own names.
	attrServer         = "gateway.server.id"
	attrServerSlug     = "gateway.server.slug"
	attrDecision       = "gateway.decision"
	attrAuth           = "gateway.auth.type"
	attrScope          = "gateway.auth.scope"
	attrWorkspace      = "gateway.workspace.id"
	attrWorkspaceSlug  = "gateway.workspace.slug"
	attrOrganisation   = "gateway.organisation.id"
	attrLog            = "gateway.log.id"
	attrConfig         = "gateway.config.slug"
	attrProviderSlug   = "gateway.provider.slug"
	attrPrompt         = "gateway.prompt.slug"
	attrKey            = "gateway.api_key.id"
	attrEndpoint       = "gateway.endpoint"
	attrOption         = "gateway.option"
	attrCache          = "gateway.cache.status"
	attrRetries        = "gateway.retry.count"
	attrCost           = "gateway.cost" // nano-dollars
	attrCostUSD        = "gateway.cost_usd"
	attrError          = "gateway.error.code"
	attrAgent          = "gateway.agent.id"
	attrParentAgent    = "gateway.agent.parent_id"
	attrMetadataBefore = "gateway.metadata."
	attrGuard          = "gateway.guardrail.id"
	attrGuardPhase     = "gateway.guardrail.phase"
	attrGuardVerdict   = "gateway.guardrail.verdict"
	attrGuardAction    = "gateway.guardrail.action"
	attrGuardDeny      = "gateway.guardrail.deny"
	attrGuardAsync     = "gateway.guardrail.async"
	attrGuardCheck     = "gateway.guardrail.check.id"
	eventCheckFailed   = "gateway.guardrail.check.failed"
	eventCheckErrored  = "gateway.guardrail.check.errored"
)

// OptIn is the environment variable that enables the newer names, and Newest is its
// value.
const (
	OptIn  = "OTEL_SEMCONV_STABILITY_OPT_IN"
	Newest = "gen_ai_latest_experimental"
)

// Bounds of histograms, as the conventions advise.
var (
	tokenBounds    = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	durationBounds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	callBounds     = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
)

// operations are the names for the actions of endpoints; others keep their own name.
var operations = map[string]string{
	"chatComplete": "chat", "messages": "chat", "createModelResponse": "chat", "promptCompletions": "chat",
	"complete": "text_completion", "embed": "embeddings", "imageGenerate": "generate_content",
}

func operation(endpoint string) string {
	if name, ok := operations[endpoint]; ok {
		return name
	}
	return endpoint
}

// providers are the names of providers in the conventions, where they differ from the
// gateway's.
var providers = map[string]string{
	"bedrock": "aws.bedrock", "azure-openai": "azure.ai.openai", "azure-ai": "azure.ai.inference", "google": "gcp.gemini", "vertex-ai": "gcp.vertex_ai",
	"mistral-ai": "mistral_ai", "x-ai": "x_ai", "perplexity-ai": "perplexity",
}

func providerName(name string) string {
	if known, ok := providers[name]; ok {
		return known
	}
	return name
}
