package chat

// Traits are the properties of a host and a model that a dialect depends on. The catalog sets
// them for a provider and the routed model; the zero value is the dialect's own provider with a
// current model.
type Traits struct {
	Provider string // id of the provider, for messages

	// DefaultMaxTokens is sent if the dialect requires a token limit and the client set none:
	// the model's maximum. If zero, the dialect's default is sent.
	DefaultMaxTokens int64
	// MaxTokensField is the token limit field in the OpenAI dialect: max_tokens or
	// max_completion_tokens. If empty, the client's field is used.
	MaxTokensField string

	// SystemRole is system or developer if the host accepts only one of them. If empty, the
	// client's role is used.
	SystemRole string

	// Sampling states which sampling fields the model supports.
	Sampling Sampling
	// ClampTemperature reduces a temperature that is too high for the host instead of rejecting
	// it.
	ClampTemperature bool

	// Thinking states how the model's thinking is configured.
	Thinking ThinkingStyle
	// NoEffort is set if the model does not support output_config.effort (Anthropic dialect) or
	// reasoning_effort (OpenAI dialect).
	NoEffort bool

	// ThinksAlways is set if thinking cannot be disabled.
	ThinksAlways bool
	// MinBudget and MaxBudget limit the thinking budget in tokens. If zero, the dialect's limit
	// applies.
	MinBudget, MaxBudget int64
	// Efforts are the supported efforts from the lowest, separated by spaces. An unsupported
	// effort becomes the next higher one. If empty, the dialect's efforts apply.
	Efforts string
	// SignedCalls is set if the model rejects its own tool calls without their signature
	// (Gemini dialect).
	SignedCalls bool

	// Schema states how the model can be forced to follow a JSON schema.
	Schema SchemaSupport

	// Limits are the model's known limitations.
	Limits
	// Extended contains limits that exceed the specification.
	Extended        ExtendedLimits
	NoCacheControl  bool // the host rejects cache markers
	NoLongCache     bool // the host rejects a ttl of an hour
	NoStrictTools   bool // the host rejects strict on tools
	NoStreamUsage   bool // the host rejects stream_options
	NoParallelTools bool // the host rejects parallel_tool_calls
	NoAssumedStrict bool // strict is written only if the client set it
	PromptCacheKey  bool // the host supports prompt_cache_key; one is derived if absent
	Breakpoints     bool // content parts support prompt_cache_breakpoint (OpenAI's dialects)
	NoThreads       bool // the host does not store threads, although it uses the Messages dialect
	NoUnknown       bool // the host rejects undocumented fields

	// NeedsMediaBytes is set if the host does not fetch media, so that http: and https:
	// addresses are replaced by the bytes before a request is encoded. MediaHosts are hosts,
	// with their subdomains, that are excepted.
	NeedsMediaBytes bool
	MediaHosts      []string

	// Family is the vendor of a model on a host with models of several vendors (Converse
	// dialect): anthropic, amazon, cohere ... It is empty if unknown.
	Family string
	// SystemTurns is set if the role system is supported between turns (Converse dialect).
	SystemTurns bool
	// Betas are the beta features of the credential, for hosts that expect them in the body.
	Betas []string

	// Fields are values of the credential that the dialect writes into its bodies, by name;
	// none of them is a secret.
	Fields map[string]string

	// MaxToolName is the length limit of tool names. If zero, the dialect's default applies.
	MaxToolName int
	// DowngradeToolChoice changes a forced tool choice that is incompatible with thinking to
	// auto and reports a loss, instead of rejecting it.
	DowngradeToolChoice bool
}

// Sampling states which sampling fields a model supports.
type Sampling uint8

const (
	SamplingFree   Sampling = iota // temperature, top_p and the like
	SamplingEither                 // temperature or top_p, not both
	SamplingNone                   // neither
)

// ThinkingStyle states how a model's thinking is configured.
type ThinkingStyle uint8

const (
	ThinksByBudget   ThinkingStyle = iota // a budget of tokens
	ThinksAdaptively                      // by effort only
	ThinksEither                          // both are supported
	ThinksNever                           // the model does not think
)

// SchemaSupport states how a response with a JSON schema is produced.
type SchemaSupport uint8

const (
	SchemaByTool  SchemaSupport = iota // by a hidden tool; Anthropic dialect
	SchemaNative                       // native support
	SchemaNone                         // not supported: such requests are rejected
	SchemaSubset                       // in a subset of JSON schema; Gemini dialect
	SchemaInWords                      // by json_object and an instruction; OpenAI dialect
)
