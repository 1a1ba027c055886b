package provider

// Dialects of files, batches and fine-tuning jobs that are not OpenAI's.
const (
	AnthropicJobs = "anthropic.jobs"
	BedrockJobs   = "bedrock.jobs"
	VertexJobs    = "vertex.jobs"
)

// messageBatches are Anthropic's batches. The files that they are made of stay at
// the gateway; the paths are those of the provider's own files.
var messageBatches = []Route{
	{Op: FilesUpload, Path: "/files", Dialect: AnthropicJobs},
	{Op: FilesList, Path: "/files", Dialect: AnthropicJobs},
	{Op: FilesGet, Path: "/files/{id}", Dialect: AnthropicJobs},
	{Op: FilesDelete, Path: "/files/{id}", Dialect: AnthropicJobs},
	{Op: FilesContent, Path: "/files/{id}/content", Dialect: AnthropicJobs},
	{Op: BatchesCreate, Path: "/messages/batches", Dialect: AnthropicJobs},
	{Op: BatchesGet, Path: "/messages/batches/{id}", Dialect: AnthropicJobs},
	{Op: BatchesCancel, Path: "/messages/batches/{id}/cancel", Dialect: AnthropicJobs},
	{Op: BatchesList, Path: "/messages/batches", Dialect: AnthropicJobs},
	{Op: BatchesOutput, Path: "/messages/batches/{id}/results", Dialect: AnthropicJobs},
}
