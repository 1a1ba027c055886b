// Package bedrock carries the operations of Amazon Bedrock that are not Converse:
// conversations and texts of the first generation's models, embeddings and images by
// InvokeModel, whose bodies are the models' own; ranking by Rerank; and counting a
// conversation's tokens by CountTokens.
package bedrock
