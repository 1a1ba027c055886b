package docs

import "gateway/shared/admin"

// jobResponse is a response that describes a stored object or a job.
func jobResponse(kind string, members map[string]admin.Schema) admin.Schema {
	members["id"], members["object"] = text, constant(kind)
	return object([]string{"id", "object"}, members)
}

var (
	counts    = object(nil, map[string]admin.Schema{"total": integer, "completed": integer, "failed": integer})
	texts     = admin.Schema{"type": "object", "additionalProperties": text, "maxProperties": 16}
	maybeTime = admin.Schema{"type": []string{"integer", "null"}, "description": "Unix seconds."}
	rowHeader = admin.Schema{"type": "string", "description": "As the header of requests."}
)

// runOptions are the headers for the rows of a batch that the gateway runs.
var runOptions = object(nil, map[string]admin.Schema{
	"x-gateway-virtual-key": rowHeader, "x-gateway-provider": rowHeader, "x-gateway-config": oneOf(text, open), "x-gateway-metadata": oneOf(text, open),
	"x-gateway-provider-model": rowHeader, "x-gateway-aws-s3-bucket": rowHeader, "x-gateway-vertex-storage-bucket-name": rowHeader,
})

var (
	batchResponse = jobResponse("batch", map[string]admin.Schema{
		"endpoint": text, "input_file_id": text, "completion_window": text, "status": text, "output_file_id": maybe, "error_file_id": maybe, "errors": oneOf(open, null),
		"request_counts": counts, "metadata": oneOf(open, null), "created_at": maybeTime, "completed_at": maybeTime, "expires_at": maybeTime,
	})
	fileResponse = jobResponse("file", map[string]admin.Schema{
		"bytes": integer, "created_at": maybeTime, "expires_at": maybeTime, "filename": text, "purpose": text, "status": text,
	})
	tuningResponse = jobResponse("fine_tuning.job", map[string]admin.Schema{
		"model": text, "status": text, "fine_tuned_model": maybe, "training_file": text, "validation_file": maybe, "result_files": list(text), "trained_tokens": admin.Schema{"type": []string{"integer", "null"}},
		"error": oneOf(open, null), "created_at": maybeTime, "finished_at": maybeTime,
	})
)

// jobBodies are the bodies of files, jobs and operations that are not conversations, by the
// endpoint of a route.
var jobBodies = map[string]body{
	"createSpeech": {
		doc: "Convert text to speech, in OpenAI's format; the response is an audio file.",
		request: request(nil, map[string]admin.Schema{
			"model": model, "input": text, "voice": oneOf(admin.Schema{"type": "string", "example": "alloy"}, open), "instructions": text, "response_format": text, "speed": {"type": "number"}, "stream_format": text,
		}),
		response: open,
	},
	"ocr": {
		doc: "Read the text of a document.",
		request: request(nil, map[string]admin.Schema{
			"model": model, "document": {"type": "object", "additionalProperties": true, "example": map[string]any{"type": "document_url", "document_url": "https://example.com/invoice.pdf"}},
		}),
		response: open,
	},
	"moderate": {
		doc:      "Moderate text and images, in OpenAI's format.",
		request:  request([]string{"input"}, map[string]admin.Schema{"model": model, "input": oneOf(text, list(oneOf(text, open)))}),
		response: object([]string{"results"}, map[string]admin.Schema{"id": text, "model": text, "results": list(open)}),
	},
	"imageGenerate": {
		doc: "Create images, in OpenAI's format.", streams: true,
		request: request([]string{"prompt"}, map[string]admin.Schema{
			"model": model, "prompt": text, "n": within("integer", 1, 10), "size": text, "quality": text, "style": text, "user": text, "stream": boolean,
			"response_format": {"type": "string", "enum": []any{"url", "b64_json", nil}}, "partial_images": within("integer", 0, 3), "output_compression": within("integer", 0, 100),
		}),
		response: object([]string{"data"}, map[string]admin.Schema{
			"created": integer, "data": list(object(nil, map[string]admin.Schema{"url": text, "b64_json": text, "revised_prompt": text})), "usage": open,
		}),
	},
	"rerank": {
		doc: "Rank documents by relevance to a query.",
		request: request([]string{"query", "documents"}, map[string]admin.Schema{
			"model": model, "query": oneOf(text, open), "documents": {"type": "array", "minItems": 1, "items": oneOf(text, open)}, "top_n": {"type": "integer", "minimum": 1},
			"return_documents": boolean, "max_tokens_per_doc": {"type": "integer", "minimum": 1},
		}),
		response: object([]string{"results"}, map[string]admin.Schema{
			"id": text, "model": text, "usage": open, "results": list(object([]string{"index", "relevance_score"}, map[string]admin.Schema{
				"index": integer, "relevance_score": {"type": "number"}, "document": oneOf(text, open),
			})),
		}),
	},
	"createBatch": {
		doc: "Start a batch of the rows of a file. With x-gateway-provider: gateway the gateway runs it: with completion_window 24h by a provider's batch, with immediate row by row.",
		request: request([]string{"input_file_id", "endpoint", "completion_window"}, map[string]admin.Schema{
			"input_file_id": text, "endpoint": {"type": "string", "description": "Endpoint of the rows, such as /v1/chat/completions."}, "completion_window": {"type": "string", "description": "24h; immediate if the gateway runs the rows."},
			"metadata": texts, "output_expires_after": object(nil, map[string]admin.Schema{"anchor": constant("created_at"), "seconds": integer}),
			"gateway_options":  runOptions,
			"provider_options": open,
			"model":            {"type": "string", "description": "Model of all rows, for Bedrock and Vertex AI."}, "role_arn": text, "job_name": text, "output_data_config": oneOf(text, open),
		}),
		response: batchResponse,
	},
	"retrieveBatch": {doc: "Read a batch. The first read after its end records the usage of its rows.", response: batchResponse},
	"cancelBatch":   {doc: "Stop a batch.", response: batchResponse},
	"uploadFile": {
		doc: "Upload a file to the provider or, with x-gateway-provider: gateway, to the gateway.",
		request: object([]string{"file", "purpose"}, map[string]admin.Schema{
			"file": {"type": "string", "format": "binary"}, "purpose": {"type": "string", "description": "Such as batch or fine-tune."},
			"expires_after[anchor]": constant("created_at"), "expires_after[seconds]": integer,
		}),
		response: fileResponse,
	},
	"retrieveFile": {doc: "Read the metadata of a file.", response: fileResponse},
	"createFinetune": {
		doc: "Start a fine-tuning job.",
		request: request([]string{"training_file"}, map[string]admin.Schema{
			"model": model, "training_file": text, "validation_file": text, "suffix": text, "seed": integer, "hyperparameters": open, "method": open, "metadata": texts,
			"integrations": {"type": "array", "items": open}, "job_name": text, "role_arn": text, "output_file": text,
		}),
		response: tuningResponse,
	},
	"retrieveFinetune": {doc: "Read a fine-tuning job.", response: tuningResponse},
	"cancelFinetune":   {doc: "Stop a fine-tuning job.", response: tuningResponse},
}
