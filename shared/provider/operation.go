package provider

import (
	"slices"
	"strings"
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
