package provider

import (
	"net/url"
	"slices"
	"strings"

	"gateway/shared/wire"
)

// Operation is an operation of a provider's API.
type Operation string

// The operations, named as in logs and limits.
const (
	Chat                Operation = "chat"
	Completions         Operation = "completions"
	Embeddings          Operation = "embeddings"
	Messages            Operation = "messages"
	MessagesCountTokens Operation = "messages_count_tokens"
	Moderations         Operation = "moderations"
	Rerank              Operation = "rerank"
	OCR                 Operation = "ocr"
	ImagesGenerate      Operation = "images_generate"
	ImagesEdit          Operation = "images_edit"
	ImagesVariation     Operation = "images_variation"
	AudioSpeech         Operation = "audio_speech"
	AudioTranscription  Operation = "audio_transcription"
	AudioTranslation    Operation = "audio_translation"
	Realtime            Operation = "realtime"
	Live                Operation = "live"
	GeminiLive          Operation = "gemini_live"
	ResponsesCreate     Operation = "responses_create"
	ResponsesGet        Operation = "responses_get"
	ResponsesDelete     Operation = "responses_delete"
	ResponsesInputItems Operation = "responses_input_items"
	ResponsesCancel     Operation = "responses_cancel"
	ResponsesCompact    Operation = "responses_compact"
	ResponsesCount      Operation = "responses_input_tokens"
	GeminiCountTokens   Operation = "gemini_count_tokens" // no row has it: Google is called natively
	Decisions           Operation = "decisions"
	FilesUpload         Operation = "files_upload"
	FilesList           Operation = "files_list"
	FilesGet            Operation = "files_get"
	FilesDelete         Operation = "files_delete"
	FilesContent        Operation = "files_content"
	BatchesCreate       Operation = "batches_create"
	BatchesGet          Operation = "batches_get"
	BatchesCancel       Operation = "batches_cancel"
	BatchesList         Operation = "batches_list"
	BatchesOutput       Operation = "batches_output" // the gateway's own: BatchesGet, then FilesContent
	FinetuneCreate      Operation = "finetune_create"
	FinetuneList        Operation = "finetune_list"
	FinetuneGet         Operation = "finetune_get"
	FinetuneCancel      Operation = "finetune_cancel"
	ModelsList          Operation = "models"

	// A conversation in its client's own shape, at a host that takes it beside its own
	// dialect; see Target.Native.
	NativeChat      Operation = "native_chat"
	NativeResponses Operation = "native_responses"
	NativeMessages  Operation = "native_messages"
)

// Names of the dialects that rows refer to. A row may name a dialect that the gateway does
// not translate; such a provider is reached only in its own dialect or by pass-through.
const (
	OpenAIChat        = "openai.chat"
	OpenAICompletions = "openai.completions"
	OpenAIResponses   = "openai.responses"
	OpenAI            = "openai" // OpenAI's shape of an operation that is not a conversation
	AnthropicMessages = "anthropic.messages"
	Gemini            = "gemini"
	Converse          = "converse"
	Cohere            = "cohere"
)

// Route is one operation of a provider.
type Route struct {
	Op      Operation
	Path    string // template after the base URL
	Stream  string // template when the answer is streamed; "" means Path
	Base    string // template of another base URL; a custom host still wins
	Dialect string // "" means the provider's; see Provider.DialectOf
}

// Route returns the row of op.
func (p *Provider) Route(op Operation) (Route, bool) {
	for _, r := range p.Routes {
		if r.Op == op {
			return r, true
		}
	}
	return Route{}, false
}

// Serves reports whether the provider has op.
func (p *Provider) Serves(op Operation) bool {
	_, ok := p.Route(op)
	return ok
}

// DialectOf is the dialect that the provider speaks for op; "" if it does not have the
// operation. Target.DialectOf also knows what depends on the model.
func (p *Provider) DialectOf(op Operation) string {
	r, ok := p.Route(op)
	switch {
	case !ok:
		return ""
	case r.Dialect != "":
		return r.Dialect
	case op == Messages || op == MessagesCountTokens:
		return AnthropicMessages
	case p.Dialect != OpenAIChat || op == Chat:
		return p.Dialect
	case op == Completions:
		return OpenAICompletions
	case strings.HasPrefix(string(op), "responses_"):
		return OpenAIResponses
	}
	return OpenAI
}

// without returns the routes of all operations except ops.
func without(routes []Route, ops ...Operation) []Route {
	return slices.DeleteFunc(slices.Clone(routes), func(r Route) bool { return slices.Contains(ops, r.Op) })
}

// beside returns routes and further ones.
func beside(routes []Route, more ...Route) []Route { return append(slices.Clone(routes), more...) }

// Sets of routes that many rows have.
var (
	chatOnly = []Route{
		{Op: Chat, Path: "/chat/completions"},
	}
	chatText = []Route{
		{Op: Chat, Path: "/chat/completions"},
		{Op: Completions, Path: "/completions"},
	}
	chatEmbed = []Route{
		{Op: Chat, Path: "/chat/completions"},
		{Op: Embeddings, Path: "/embeddings"},
	}
	chatTextEmbed = []Route{
		{Op: Chat, Path: "/chat/completions"},
		{Op: Completions, Path: "/completions"},
		{Op: Embeddings, Path: "/embeddings"},
	}
	chatImages = []Route{
		{Op: Chat, Path: "/chat/completions"},
		{Op: ImagesGenerate, Path: "/images/generations"},
	}
	chatResponses = []Route{
		{Op: Chat, Path: "/chat/completions"},
		{Op: ResponsesCreate, Path: "/responses"},
	}
	everyOpenAI = []Route{
		{Op: Chat, Path: "/chat/completions"},
		{Op: Completions, Path: "/completions"},
		{Op: Embeddings, Path: "/embeddings"},
		{Op: Moderations, Path: "/moderations"},
		{Op: ImagesGenerate, Path: "/images/generations"},
		{Op: ImagesEdit, Path: "/images/edits"},
		{Op: ImagesVariation, Path: "/images/variations"},
		{Op: AudioSpeech, Path: "/audio/speech"},
		{Op: AudioTranscription, Path: "/audio/transcriptions"},
		{Op: AudioTranslation, Path: "/audio/translations"},
		{Op: Realtime, Path: "/realtime?model={model}"},
		{Op: ResponsesCreate, Path: "/responses"},
		{Op: ResponsesGet, Path: "/responses/{id}"},
		{Op: ResponsesDelete, Path: "/responses/{id}"},
		{Op: ResponsesInputItems, Path: "/responses/{id}/input_items"},
		{Op: ResponsesCancel, Path: "/responses/{id}/cancel"},
		{Op: ResponsesCompact, Path: "/responses/compact"},
		{Op: ResponsesCount, Path: "/responses/input_tokens"},
		{Op: Decisions, Path: "/decisions"},
		{Op: FilesUpload, Path: "/files"},
		{Op: FilesList, Path: "/files"},
		{Op: FilesGet, Path: "/files/{id}"},
		{Op: FilesDelete, Path: "/files/{id}"},
		{Op: FilesContent, Path: "/files/{id}/content"},
		{Op: BatchesCreate, Path: "/batches"},
		{Op: BatchesGet, Path: "/batches/{id}"},
		{Op: BatchesCancel, Path: "/batches/{id}/cancel"},
		{Op: BatchesList, Path: "/batches"},
		{Op: FinetuneCreate, Path: "/fine_tuning/jobs"},
		{Op: FinetuneList, Path: "/fine_tuning/jobs"},
		{Op: FinetuneGet, Path: "/fine_tuning/jobs/{id}"},
		{Op: FinetuneCancel, Path: "/fine_tuning/jobs/{id}/cancel"},
		{Op: ModelsList, Path: "/models"},
	}
)

// Native returns the operation with which the target accepts a conversation in the caller's
// format, client. The host of Bedrock's runtime has chat completions, Responses and Messages
// besides the provider's dialect. It returns "" if none is known. A custom host may not have
// these paths, so it is called as usual. So is Bedrock for an ARN, because these paths may not
// accept ARNs.
func (t *Target) Native(client, model string) Operation {
	if t.Provider.ID != "bedrock" || t.ownHost() || strings.HasPrefix(model, "arn:") {
		return ""
	}
	op := map[string]Operation{OpenAIChat: NativeChat, OpenAIResponses: NativeResponses, AnthropicMessages: NativeMessages}[client]
	if w := wireOf(bedrockID(model)); w == nil || !slices.Contains(w.native, op) {
		return ""
	}
	return op
}

// IsNative reports whether op may be a result of Native.
func (op Operation) IsNative() bool {
	return op == NativeChat || op == NativeResponses || op == NativeMessages
}

// ReasonsByResponses returns when a model supports function tools only by Responses, on
// any host; see ToolsByResponses.
func ReasonsByResponses(model string) ByResponses {
	name, ours := strings.CutPrefix(bedrockID(model), "openai.")
	if !ours {
		return NeverByResponses
	}
	return reasons(name)
}

// HeaderRow returns the row with the headers that enable features of op's API: the
// provider's row, or that of Anthropic's API if the host serves it too.
func (t *Target) HeaderRow(op Operation) *Provider {
	if op == NativeMessages {
		return nativeMessages
	}
	return t.Provider
}

var nativeMessages = &Provider{Headers: []Header{{"anthropic-version", "{anthropic_version}"}, {"anthropic-beta", "{anthropic_beta}"}}}

var boundKeys = wire.NewKeySet("max_tokens", "max_completion_tokens")

// completionTokens renames the bound of a chat to the name that OpenAI's models accept at
// Bedrock, which answers "Unsupported parameter: 'max_tokens'". If there are two bounds,
// the one with the newer name stays.
func completionTokens(body []byte) []byte {
	var w wire.Walk
	if boundKeys.Walk(body, &w) != nil || w.Spans[0].Absent() {
		return body
	}
	edits := []wire.Edit{wire.DeleteKey(&w, 0)}
	if !w.Spans[1].Present(body) {
		edits = append(edits, boundKeys.SetKey(&w, 1, w.Spans[0].Of(body)))
	}
	return wire.Splice(make([]byte, 0, len(body)+16), body, edits...)
}

// ByResponses is the set of conversations that a model accepts only by Responses,
// although its host also has chat completions.
type ByResponses uint8

const (
	NeverByResponses          ByResponses = iota
	ByResponsesWhenEffort                 // with function tools and an effort other than none
	ByResponsesUnlessNoEffort             // with function tools, unless the effort is none
)

// reasonsByResponses are the models that reject function tools with reasoning at
// /chat/completions, by name prefix. The first one reasons only on request; the others
// also reason by default: "Function tools with reasoning_effort are not supported for
// gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead", as in
// github.com/openai/openai-openapi/issues/541 (gpt-5.4),
// github.com/charmbracelet/crush/issues/2913 and
// github.com/jeffdafoe/llm-memory-api/pull/178 (gpt-5.5, also without reasoning_effort),
// github.com/BerriAI/litellm/pull/34569 (gpt-5.6, which accepts tools only with the
// effort none).
var reasonsByResponses = []struct {
	name string
	when ByResponses
}{{"gpt-5.4", ByResponsesWhenEffort}, {"gpt-5.5", ByResponsesUnlessNoEffort}, {"gpt-5.6", ByResponsesUnlessNoEffort}}

// ToolsByResponses returns when a conversation with function tools must be sent to
// /responses. A custom host may not have that path, and is called as usual.
func (t *Target) ToolsByResponses(model string) ByResponses {
	switch t.Provider.ID {
	case "openai":
		if t.customHost() != "" {
			return NeverByResponses
		}
	case "azure-openai", "azure-ai":
		if t.customHost() != "" || t.Provider.ID == "azure-ai" && !azureHost(t.Field("azure_foundry_url")) {
			return NeverByResponses
		}
		if name := t.Field("azure_model_name"); name != "" { // the owner chooses the name of a deployment
			model = name
		}
	default:
		return NeverByResponses
	}
	if !t.Provider.Serves(ResponsesCreate) {
		return NeverByResponses
	}
	return reasons(model)
}

// reasons is the row of a model in reasonsByResponses.
func reasons(model string) ByResponses {
	for _, m := range reasonsByResponses {
		if version(model, m.name) && !strings.Contains(model, "-chat") {
			return m.when
		}
	}
	return NeverByResponses
}

// azureHost reports whether an address is one of Azure's own hosts, which have
// /responses.
func azureHost(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (strings.HasSuffix(u.Hostname(), ".services.ai.azure.com") || strings.HasSuffix(u.Hostname(), ".openai.azure.com"))
}
