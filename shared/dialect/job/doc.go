// Package job translates files, batches and fine-tuning jobs between OpenAI's format and
// providers with other formats.
//
// The gateway stores an uploaded file for the workspace for 30 days. The form that a
// provider needs is created with a batch or a job. The rows of a batch are conversations
// in OpenAI's format, which are translated like any other, or embedding requests. They
// are sent in the request itself (Anthropic), written to a bucket of the credential
// (Bedrock, Vertex), or uploaded as a file or a dataset of the provider (Mistral,
// Together, Fireworks, Cohere). Rows of the output are translated back as they are read.
// A batch's endpoint, input file and metadata, which providers do not store, are in a
// note of the workspace.
//
// Ids with special characters (ARNs, resource names, objects in a bucket) are encoded as
// one segment of a path: see EscapeSegment.
package job
