package provider

// Dialects of files, batches and fine-tuning jobs that are not OpenAI's.
const (
	AnthropicJobs = "anthropic.jobs"
	BedrockJobs   = "bedrock.jobs"
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

// bedrockJobs are Bedrock's batches and customizations. Their files stay at the
// gateway until a job is made; then they are written to the bucket of the
// credential, from which the results are read: files have no address here.
var bedrockJobs = []Route{
	{Op: FilesUpload, Path: "/", Base: bedrockControl, Dialect: BedrockJobs},
	{Op: FilesList, Path: "/", Base: bedrockControl, Dialect: BedrockJobs},
	{Op: FilesGet, Path: "/", Base: bedrockControl, Dialect: BedrockJobs},
	{Op: FilesDelete, Path: "/", Base: bedrockControl, Dialect: BedrockJobs},
	{Op: FilesContent, Path: "/", Base: bedrockControl, Dialect: BedrockJobs},
	{Op: BatchesCreate, Path: "/model-invocation-job", Base: bedrockControl, Dialect: BedrockJobs},
	{Op: BatchesGet, Path: "/model-invocation-job/{id!}", Base: bedrockControl, Dialect: BedrockJobs},
	{Op: BatchesCancel, Path: "/model-invocation-job/{id!}/stop", Base: bedrockControl, Dialect: BedrockJobs},
	{Op: BatchesList, Path: "/model-invocation-jobs", Base: bedrockControl, Dialect: BedrockJobs},
	{Op: FinetuneCreate, Path: "/model-customization-jobs", Base: bedrockControl, Dialect: BedrockJobs},
	{Op: FinetuneList, Path: "/model-customization-jobs", Base: bedrockControl, Dialect: BedrockJobs},
	{Op: FinetuneGet, Path: "/model-customization-jobs/{id!}", Base: bedrockControl, Dialect: BedrockJobs},
	{Op: FinetuneCancel, Path: "/model-customization-jobs/{id!}/stop", Base: bedrockControl, Dialect: BedrockJobs},
}
