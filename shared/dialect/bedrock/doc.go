// Package bedrock implements the operations of Amazon Bedrock other than Converse:
// conversations and texts of first-generation models, embeddings and images by
// InvokeModel, with each model's own body format; ranking by Rerank; and counting a
// conversation's tokens by CountTokens.
package bedrock
