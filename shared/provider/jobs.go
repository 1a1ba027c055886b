package provider

import "strings"

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

// IsJobOperation reports whether op concerns files, batches or fine-tuning jobs, for which
// providers have shapes of their own.
func IsJobOperation(op Operation) bool {
	return strings.HasPrefix(string(op), "files_") || strings.HasPrefix(string(op), "batches_") || strings.HasPrefix(string(op), "finetune_")
}

// jobRoutes returns routes the dialect and the base of a provider's jobs; base is empty
// for the provider's own base.
func jobRoutes(dialect, base string, routes []Route) []Route {
	for i := range routes {
		routes[i].Dialect, routes[i].Base = dialect, base
	}
	return routes
}

// messageBatches are Anthropic's batches. The files from which they are made stay at the
// gateway; the paths are those of the provider's own files.
var messageBatches = jobRoutes(AnthropicJobs, "", []Route{
	{Op: FilesUpload, Path: "/files"},
	{Op: FilesList, Path: "/files"},
	{Op: FilesGet, Path: "/files/{id}"},
	{Op: FilesDelete, Path: "/files/{id}"},
	{Op: FilesContent, Path: "/files/{id}/content"},
	{Op: BatchesCreate, Path: "/messages/batches"},
	{Op: BatchesGet, Path: "/messages/batches/{id}"},
	{Op: BatchesCancel, Path: "/messages/batches/{id}/cancel"},
	{Op: BatchesList, Path: "/messages/batches"},
	{Op: BatchesOutput, Path: "/messages/batches/{id}/results"},
})

// bedrockJobs are Bedrock's batches and customizations. Their files stay at the gateway
// until a job is made. Then they are written to the bucket of the credential, from which
// the results are also read; such files have no paths here.
var bedrockJobs = jobRoutes(BedrockJobs, bedrockControl, []Route{
	{Op: FilesUpload, Path: "/"},
	{Op: FilesList, Path: "/"},
	{Op: FilesGet, Path: "/"},
	{Op: FilesDelete, Path: "/"},
	{Op: FilesContent, Path: "/"},
	{Op: BatchesCreate, Path: "/model-invocation-job"},
	{Op: BatchesGet, Path: "/model-invocation-job/{id!}"},
	{Op: BatchesCancel, Path: "/model-invocation-job/{id!}/stop"},
	{Op: BatchesList, Path: "/model-invocation-jobs"},
	{Op: FinetuneCreate, Path: "/model-customization-jobs"},
	{Op: FinetuneList, Path: "/model-customization-jobs"},
	{Op: FinetuneGet, Path: "/model-customization-jobs/{id!}"},
	{Op: FinetuneCancel, Path: "/model-customization-jobs/{id!}/stop"},
})

// vertexJobs are the batches and tunings of Vertex AI. Their files are handled as for
// Bedrock, with a bucket of Cloud Storage.
var vertexJobs = jobRoutes(VertexJobs, "", []Route{
	{Op: FilesUpload, Path: "/"},
	{Op: FilesList, Path: "/"},
	{Op: FilesGet, Path: "/"},
	{Op: FilesDelete, Path: "/"},
	{Op: FilesContent, Path: "/"},
	{Op: BatchesCreate, Path: "/batchPredictionJobs"},
	{Op: BatchesGet, Path: "/batchPredictionJobs/{id}"},
	{Op: BatchesCancel, Path: "/batchPredictionJobs/{id}:cancel"},
	{Op: BatchesList, Path: "/batchPredictionJobs"},
	{Op: FinetuneCreate, Path: "/tuningJobs"},
	{Op: FinetuneList, Path: "/tuningJobs"},
	{Op: FinetuneGet, Path: "/tuningJobs/{id}"},
	{Op: FinetuneCancel, Path: "/tuningJobs/{id}:cancel"},
})

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

// mistralJobs are the batches and fine-tuning jobs of Mistral AI. The files from which they
// are made stay at the gateway; the paths are those of the provider's own files.
var mistralJobs = jobRoutes(MistralJobs, "", []Route{
	{Op: FilesUpload, Path: "/files"},
	{Op: FilesList, Path: "/files"},
	{Op: FilesGet, Path: "/files/{id}"},
	{Op: FilesDelete, Path: "/files/{id}"},
	{Op: FilesContent, Path: "/files/{id}/content"},
	{Op: BatchesCreate, Path: "/batch/jobs"},
	{Op: BatchesGet, Path: "/batch/jobs/{id}"},
	{Op: BatchesCancel, Path: "/batch/jobs/{id}/cancel"},
	{Op: BatchesList, Path: "/batch/jobs"},
	{Op: FinetuneCreate, Path: "/fine_tuning/jobs"},
	{Op: FinetuneList, Path: "/fine_tuning/jobs"},
	{Op: FinetuneGet, Path: "/fine_tuning/jobs/{id}"},
	{Op: FinetuneCancel, Path: "/fine_tuning/jobs/{id}/cancel"},
})

// togetherJobs are the same for Together AI.
var togetherJobs = jobRoutes(TogetherJobs, "", []Route{
	{Op: FilesUpload, Path: "/files/upload"},
	{Op: FilesList, Path: "/files"},
	{Op: FilesGet, Path: "/files/{id}"},
	{Op: FilesDelete, Path: "/files/{id}"},
	{Op: FilesContent, Path: "/files/{id}/content"},
	{Op: BatchesCreate, Path: "/batches"},
	{Op: BatchesGet, Path: "/batches/{id}"},
	{Op: BatchesCancel, Path: "/batches/{id}/cancel"},
	{Op: BatchesList, Path: "/batches"},
	{Op: FinetuneCreate, Path: "/fine-tunes"},
	{Op: FinetuneList, Path: "/fine-tunes"},
	{Op: FinetuneGet, Path: "/fine-tunes/{id}"},
	{Op: FinetuneCancel, Path: "/fine-tunes/{id}/cancel"},
})

// fireworksJobs are the batches and fine-tuning jobs of Fireworks AI, which read
// and write datasets of the account.
var fireworksJobs = jobRoutes(FireworksJobs, fireworksAccount, []Route{
	{Op: FilesUpload, Path: "/datasets"},
	{Op: FilesList, Path: "/datasets"},
	{Op: FilesGet, Path: "/datasets/{id}"},
	{Op: FilesDelete, Path: "/datasets/{id}"},
	{Op: FilesContent, Path: "/datasets/{id}"},
	{Op: BatchesCreate, Path: "/batchInferenceJobs"},
	{Op: BatchesGet, Path: "/batchInferenceJobs/{id}"},
	{Op: BatchesCancel, Path: "/batchInferenceJobs/{id}"},
	{Op: BatchesList, Path: "/batchInferenceJobs"},
	{Op: FinetuneCreate, Path: "/supervisedFineTuningJobs"},
	{Op: FinetuneList, Path: "/supervisedFineTuningJobs"},
	{Op: FinetuneGet, Path: "/supervisedFineTuningJobs/{id}"},
	{Op: FinetuneCancel, Path: "/supervisedFineTuningJobs/{id}"},
})

// cohereJobs are the embed jobs of Cohere, with rows that become datasets.
var cohereJobs = jobRoutes(CohereJobs, "", []Route{
	{Op: FilesUpload, Path: "/v1/datasets"},
	{Op: FilesList, Path: "/v1/datasets"},
	{Op: FilesGet, Path: "/v1/datasets/{id}"},
	{Op: FilesDelete, Path: "/v1/datasets/{id}"},
	{Op: FilesContent, Path: "/v1/datasets/{id}"},
	{Op: BatchesCreate, Path: "/v1/embed-jobs"},
	{Op: BatchesGet, Path: "/v1/embed-jobs/{id}"},
	{Op: BatchesCancel, Path: "/v1/embed-jobs/{id}/cancel"},
	{Op: BatchesList, Path: "/v1/embed-jobs"},
})
