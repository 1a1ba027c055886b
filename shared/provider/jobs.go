package provider

// Dialects of files, batches and fine-tuning jobs that are not OpenAI's.
const (
	AnthropicJobs = "anthropic.jobs"
	BedrockJobs   = "bedrock.jobs"
	VertexJobs    = "vertex.jobs"
	MistralJobs   = "mistral.jobs"
	TogetherJobs  = "together.jobs"
	FireworksJobs = "fireworks.jobs"
	CohereJobs    = "cohere.jobs"
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

// vertexJobs are the batches and tunings of Vertex AI, whose files go the way of
// Bedrock's, to a bucket of Cloud Storage.
var vertexJobs = []Route{
	{Op: FilesUpload, Path: "/", Dialect: VertexJobs},
	{Op: FilesList, Path: "/", Dialect: VertexJobs},
	{Op: FilesGet, Path: "/", Dialect: VertexJobs},
	{Op: FilesDelete, Path: "/", Dialect: VertexJobs},
	{Op: FilesContent, Path: "/", Dialect: VertexJobs},
	{Op: BatchesCreate, Path: "/batchPredictionJobs", Dialect: VertexJobs},
	{Op: BatchesGet, Path: "/batchPredictionJobs/{id}", Dialect: VertexJobs},
	{Op: BatchesCancel, Path: "/batchPredictionJobs/{id}:cancel", Dialect: VertexJobs},
	{Op: BatchesList, Path: "/batchPredictionJobs", Dialect: VertexJobs},
	{Op: FinetuneCreate, Path: "/tuningJobs", Dialect: VertexJobs},
	{Op: FinetuneList, Path: "/tuningJobs", Dialect: VertexJobs},
	{Op: FinetuneGet, Path: "/tuningJobs/{id}", Dialect: VertexJobs},
	{Op: FinetuneCancel, Path: "/tuningJobs/{id}:cancel", Dialect: VertexJobs},
}

// openAIJobs are files and batches in OpenAI's own shape.
var openAIJobs = []Route{
	{Op: FilesUpload, Path: "/files"},
	{Op: FilesList, Path: "/files"},
	{Op: FilesGet, Path: "/files/{id}"},
	{Op: FilesDelete, Path: "/files/{id}"},
	{Op: FilesContent, Path: "/files/{id}/content"},
	{Op: BatchesCreate, Path: "/batches"},
	{Op: BatchesGet, Path: "/batches/{id}"},
	{Op: BatchesCancel, Path: "/batches/{id}/cancel"},
	{Op: BatchesList, Path: "/batches"},
}

// mistralJobs are the batches and fine-tuning jobs of Mistral AI. The files that
// they are made of stay at the gateway; the paths are those of the provider's own.
var mistralJobs = []Route{
	{Op: FilesUpload, Path: "/files", Dialect: MistralJobs},
	{Op: FilesList, Path: "/files", Dialect: MistralJobs},
	{Op: FilesGet, Path: "/files/{id}", Dialect: MistralJobs},
	{Op: FilesDelete, Path: "/files/{id}", Dialect: MistralJobs},
	{Op: FilesContent, Path: "/files/{id}/content", Dialect: MistralJobs},
	{Op: BatchesCreate, Path: "/batch/jobs", Dialect: MistralJobs},
	{Op: BatchesGet, Path: "/batch/jobs/{id}", Dialect: MistralJobs},
	{Op: BatchesCancel, Path: "/batch/jobs/{id}/cancel", Dialect: MistralJobs},
	{Op: BatchesList, Path: "/batch/jobs", Dialect: MistralJobs},
	{Op: FinetuneCreate, Path: "/fine_tuning/jobs", Dialect: MistralJobs},
	{Op: FinetuneList, Path: "/fine_tuning/jobs", Dialect: MistralJobs},
	{Op: FinetuneGet, Path: "/fine_tuning/jobs/{id}", Dialect: MistralJobs},
	{Op: FinetuneCancel, Path: "/fine_tuning/jobs/{id}/cancel", Dialect: MistralJobs},
}

// togetherJobs are those of Together AI, likewise.
var togetherJobs = []Route{
	{Op: FilesUpload, Path: "/files/upload", Dialect: TogetherJobs},
	{Op: FilesList, Path: "/files", Dialect: TogetherJobs},
	{Op: FilesGet, Path: "/files/{id}", Dialect: TogetherJobs},
	{Op: FilesDelete, Path: "/files/{id}", Dialect: TogetherJobs},
	{Op: FilesContent, Path: "/files/{id}/content", Dialect: TogetherJobs},
	{Op: BatchesCreate, Path: "/batches", Dialect: TogetherJobs},
	{Op: BatchesGet, Path: "/batches/{id}", Dialect: TogetherJobs},
	{Op: BatchesCancel, Path: "/batches/{id}/cancel", Dialect: TogetherJobs},
	{Op: BatchesList, Path: "/batches", Dialect: TogetherJobs},
	{Op: FinetuneCreate, Path: "/fine-tunes", Dialect: TogetherJobs},
	{Op: FinetuneList, Path: "/fine-tunes", Dialect: TogetherJobs},
	{Op: FinetuneGet, Path: "/fine-tunes/{id}", Dialect: TogetherJobs},
	{Op: FinetuneCancel, Path: "/fine-tunes/{id}/cancel", Dialect: TogetherJobs},
}

// fireworksJobs are the batches and fine-tuning jobs of Fireworks AI, which read
// and write datasets of the account.
var fireworksJobs = []Route{
	{Op: FilesUpload, Path: "/datasets", Base: fireworksAccount, Dialect: FireworksJobs},
	{Op: FilesList, Path: "/datasets", Base: fireworksAccount, Dialect: FireworksJobs},
	{Op: FilesGet, Path: "/datasets/{id}", Base: fireworksAccount, Dialect: FireworksJobs},
	{Op: FilesDelete, Path: "/datasets/{id}", Base: fireworksAccount, Dialect: FireworksJobs},
	{Op: FilesContent, Path: "/datasets/{id}", Base: fireworksAccount, Dialect: FireworksJobs},
	{Op: BatchesCreate, Path: "/batchInferenceJobs", Base: fireworksAccount, Dialect: FireworksJobs},
	{Op: BatchesGet, Path: "/batchInferenceJobs/{id}", Base: fireworksAccount, Dialect: FireworksJobs},
	{Op: BatchesCancel, Path: "/batchInferenceJobs/{id}", Base: fireworksAccount, Dialect: FireworksJobs},
	{Op: BatchesList, Path: "/batchInferenceJobs", Base: fireworksAccount, Dialect: FireworksJobs},
	{Op: FinetuneCreate, Path: "/supervisedFineTuningJobs", Base: fireworksAccount, Dialect: FireworksJobs},
	{Op: FinetuneList, Path: "/supervisedFineTuningJobs", Base: fireworksAccount, Dialect: FireworksJobs},
	{Op: FinetuneGet, Path: "/supervisedFineTuningJobs/{id}", Base: fireworksAccount, Dialect: FireworksJobs},
	{Op: FinetuneCancel, Path: "/supervisedFineTuningJobs/{id}", Base: fireworksAccount, Dialect: FireworksJobs},
}

// cohereJobs are the embed jobs of Cohere, whose rows become datasets.
var cohereJobs = []Route{
	{Op: FilesUpload, Path: "/v1/datasets", Dialect: CohereJobs},
	{Op: FilesList, Path: "/v1/datasets", Dialect: CohereJobs},
	{Op: FilesGet, Path: "/v1/datasets/{id}", Dialect: CohereJobs},
	{Op: FilesDelete, Path: "/v1/datasets/{id}", Dialect: CohereJobs},
	{Op: FilesContent, Path: "/v1/datasets/{id}", Dialect: CohereJobs},
	{Op: BatchesCreate, Path: "/v1/embed-jobs", Dialect: CohereJobs},
	{Op: BatchesGet, Path: "/v1/embed-jobs/{id}", Dialect: CohereJobs},
	{Op: BatchesCancel, Path: "/v1/embed-jobs/{id}/cancel", Dialect: CohereJobs},
	{Op: BatchesList, Path: "/v1/embed-jobs", Dialect: CohereJobs},
}
