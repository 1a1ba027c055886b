package chat

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"gateway/shared/fault"
)

// Jobs translates long-lived objects of a provider - files, batches and fine-tuning jobs -
// between OpenAI's format and the provider's. One operation may take several calls.
// Implementations are stateless and safe for concurrent use. All errors are *fault.Fault.
type Jobs interface {
	// Name returns the name that the catalog refers to, such as anthropic.jobs.
	Name() string
	// Do performs the operation; its response has OpenAI's format.
	Do(ctx context.Context, j *Job) (*JobResponse, error)
	// Usage returns the usage of the rows of the ended batch j.ID, with one entry per model.
	Usage(ctx context.Context, j *Job) ([]Meter, error)
	// DecodeError decodes a provider's error response, like ErrorReader.
	DecodeError(status int, h http.Header, body []byte) *fault.Fault
}

// Job is one requested operation.
type Job struct {
	Operation string     // files_upload, batches_create ...
	ID        string     // of the object, as the client names it; empty for a collection
	Query     url.Values // of the client
	Body      []byte     // JSON that the route has validated; may be nil
	Upload    *Upload    // of files_upload
	Model     string     // as the provider names it; empty if the request names none

	Request      string // id of the request, which makes a second call idempotent
	Now          time.Time
	ProviderName string
	Strict       bool
	Loss         *Loss

	Field  func(name string) string // of the target's credential; never a secret
	Header func(name string) string // of the client's request
	// Conversation returns the conversation between the dialect of batch rows and a model of the
	// target. It rejects models that the caller may not use.
	Conversation func(client, model string) (*Conversation, error)
	Files        JobFiles
	// Tier returns the size that a prompt of so many tokens exceeds and by which its price in a
	// batch is determined; 0: prompts of all sizes have the same.
	Tier func(model string, prompt int64) int64
	// Call sends one request to the provider. Statuses other than 2xx are errors, as
	// DecodeError decodes them.
	Call func(ctx context.Context, c *JobCall) (*http.Response, error)
}

// EmbeddingRows is the dialect that Job.Conversation accepts for rows with embeddings.
const EmbeddingRows = "openai.embeddings"

// Conversation connects a client's dialect with a model.
type Conversation struct {
	Client     Client
	Provider   Provider
	Translator Translator // for rows that are not conversations, in place of both; nil if such rows need none
	Model      string     // as the provider names it
	Traits     *Traits
	// Adapt changes a body of the provider's dialect if the host differs from others with that
	// dialect; dropped are the omitted fields.
	Adapt func(body []byte) (adapted []byte, dropped []string)
}

// Wire returns the name of the provider's format.
func (t *Conversation) Wire() string {
	switch {
	case t.Translator != nil:
		return t.Translator.Name()
	case t.Provider == nil:
		return EmbeddingRows
	}
	return t.Provider.Name()
}

// Native reports whether the provider uses the client's format.
func (t *Conversation) Native() bool {
	return t.Translator == nil && (t.Provider == nil || t.Provider.Name() == t.Client.Name())
}

// JobCall is one request to the provider.
type JobCall struct {
	Method    string
	Operation string // with the route that determines the address, or
	Object    string // bucket/key of an object in the provider's cloud storage
	ID        string // in the address of the operation
	Suffix    string // fixed path suffix
	URL       string // alternatively an address from the provider; the credential is not sent there
	Query     string // escaped
	Header    http.Header
	Body      []byte                        // or
	Open      func() (io.ReadCloser, error) // a body of Length bytes; may be called repeatedly
	Length    int64
}

// JobResponse is the response to the client.
type JobResponse struct {
	Type   string // media type
	Body   io.ReadCloser
	Length int64 // bytes; -1 if unknown
}

// JobJSON returns a JSON response.
func JobJSON(b []byte) *JobResponse {
	return &JobResponse{Type: "application/json", Body: io.NopCloser(bytes.NewReader(b)), Length: int64(len(b))}
}

// Upload is a file from the client.
type Upload struct {
	Name string
	File io.Reader
	// Fields returns the form's fields. Fields that follow the file are known only after the
	// file was read; the rest of it is skipped.
	Fields func() (map[string]string, error)
}

// JobFiles stores for a workspace what its provider cannot store.
type JobFiles interface {
	// Save stores a file, sealed; purpose is called after its bytes were read.
	Save(ctx context.Context, name string, src io.Reader, purpose func() (string, error)) (*StoredFile, error)
	// File returns a file, or nil if the workspace has none with the id.
	File(ctx context.Context, id string) (*StoredFile, error)
	// Open returns a file's bytes.
	Open(ctx context.Context, f *StoredFile) io.ReadCloser
	// Remove deletes a file. It returns false if there is none.
	Remove(ctx context.Context, id string) (bool, error)
	// Files lists files, the newest first, starting after the id after.
	Files(ctx context.Context, purpose, after string, limit int) (page []StoredFile, more bool, err error)
	// SetData stores data about an object beyond what its provider returns; Data returns the
	// notes by id.
	SetData(ctx context.Context, id string, note []byte) error
	Data(ctx context.Context, ids ...string) (map[string][]byte, error)
}

// StoredFile is a file that the gateway stores.
type StoredFile struct {
	ID, Name, Purpose string
	Bytes             int64
	Created, Expires  int64 // Unix seconds
}

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
