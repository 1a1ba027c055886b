// Package bedrock carries operations that are no conversations to Amazon Bedrock:
// embeddings and images by InvokeModel, whose bodies are the models' own, ranking
// by Rerank, and the counting of a conversation's tokens by CountTokens.
package bedrock
