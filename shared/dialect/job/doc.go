// Package job carries files, batches and fine-tuning jobs between OpenAI's shape
// and the wires of providers that have their own.
//
// A file that is uploaded stays in the workspace's room at the gateway for 30 days. What a
// provider needs of it is made when a batch or a job is created. The rows of a batch are
// conversations in OpenAI's shape, which are translated like any other, or ask for
// embeddings. They are sent in the request itself (Anthropic), written to a bucket of the
// credential (Bedrock, Vertex), or uploaded as a file or a dataset of the provider
// (Mistral, Together, Fireworks, Cohere). Rows of the output are translated back as they
// are read. A batch's endpoint, input file and metadata, which providers do not keep, are
// in a note in the room.
//
// Ids with special characters (ARNs, resource names, objects in a bucket) are written so
// that they are one segment of a path: see Plain.
package job
