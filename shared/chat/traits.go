package chat

// Traits are what a dialect has to know of a host and a model. It is plain data that the
// catalogue fills for a provider and the routed model; the zero value is the dialect's own
// provider with a current model.
type Traits struct {
	Provider string // id of the provider, for messages

	// DefaultMaxTokens is sent where the dialect requires a bound and the client
	// gave none: the most that the model can give. 0: the dialect's default.
	DefaultMaxTokens int64
	// MaxTokensField is the field that takes the bound in the OpenAI dialect: max_tokens or
	// max_completion_tokens. Empty: as the client named it.
	MaxTokensField string

	// SystemRole is system or developer when the host takes only that one of the
	// two. Empty: as the client wrote it.
	SystemRole string

	// Sampling says which sampling fields the model takes.
	Sampling Sampling
	// ClampTemperature cuts a temperature that is too high for the host instead
	// of refusing it.
	ClampTemperature bool

	// Thinking is how the model is told to think.
	Thinking ThinkingStyle
	// NoEffort: the model takes no output_config.effort (Anthropic dialect), or
	// no reasoning_effort (OpenAI dialect).
	NoEffort bool

	// ThinksAlways: thinking cannot be switched off.
	ThinksAlways bool
	// MinBudget and MaxBudget bound a budget of thinking, in tokens; 0: the
	// dialect's own bound.
	MinBudget, MaxBudget int64
	// Efforts are the efforts that the model knows, from the lowest, separated by spaces. An
	// unknown effort becomes the next higher one. Empty: the dialect's own.
	Efforts string
	// SignedCalls: the model refuses its own tool calls when they come back
	// without their signature (Gemini dialect).
	SignedCalls bool

	// Schema tells how the model can be made to answer by a JSON schema.
	Schema SchemaSupport

	// Limits are what the model is known not to do.
	Limits
	// Room is how much wider than the specification its bounds are.
	Room            Room
	NoCacheControl  bool // the host refuses cache markers
	NoLongCache     bool // the host refuses a ttl of an hour
	NoStrictTools   bool // the host refuses strict on tools
	NoStreamUsage   bool // the host refuses stream_options
	NoParallelTools bool // the host refuses parallel_tool_calls
	NoAssumedStrict bool // strict is written only where the client did
	PromptCacheKey  bool // the host takes prompt_cache_key; one is derived when absent
	Breakpoints     bool // content parts take prompt_cache_breakpoint (OpenAI's dialects)
	NoThreads       bool // the host keeps no threads, though it speaks the Messages dialect
	NoUnknown       bool // the host refuses fields that are not in its own reference

	// NeedsMediaBytes: the host fetches nothing from the web for the model, so the bytes
	// replace http: and https: addresses before a request is encoded. MediaHosts are hosts,
	// with their subdomains, whose addresses it reads nevertheless.
	NeedsMediaBytes bool
	MediaHosts      []string

	// Family is the maker of a model that a host serves among others (Converse
	// dialect): anthropic, amazon, cohere ... Empty: not known.
	Family string
	// SystemTurns: the role system is taken between the turns of a conversation
	// (Converse dialect).
	SystemTurns bool
	// Betas are the beta features that the credential asks for, for hosts that
	// take them in the body.
	Betas []string

	// Fields are values of the credential that the dialect writes into its bodies,
	// by their names; none of them is a secret.
	Fields map[string]string

	// MaxToolName is the longest tool name; 0: the dialect's default.
	MaxToolName int
	// DowngradeToolChoice turns a forced tool choice that cannot go with thinking
	// into auto, with a loss entry, instead of refusing it.
	DowngradeToolChoice bool
}

// Sampling is which sampling fields a model takes.
type Sampling uint8

// The kinds of sampling.
const (
	SamplingFree   Sampling = iota // temperature, top_p and the like
	SamplingEither                 // temperature or top_p, not both
	SamplingNone                   // neither
)

// ThinkingStyle is how a model is told to think.
type ThinkingStyle uint8

// The styles.
const (
	ThinksByBudget   ThinkingStyle = iota // a budget of tokens
	ThinksAdaptively                      // by effort only
	ThinksEither                          // both are taken
	ThinksNever                           // the model does not think
)

// SchemaSupport is how a response of a JSON schema is had.
type SchemaSupport uint8

// The ways.
const (
	SchemaByTool  SchemaSupport = iota // by a hidden tool; Anthropic dialect
	SchemaNative                       // the model has it
	SchemaNone                         // not at all: such requests are refused
	SchemaSubset                       // in a subset of JSON schema; Gemini dialect
	SchemaInWords                      // by json_object and an instruction; OpenAI dialect
)
