// Package bedrock carries to Amazon Bedrock what is not said by Converse:
// conversations and texts of the first generation's models, embeddings and images
// by InvokeModel, whose bodies are the models' own, ranking by Rerank, and the
// counting of a conversation's tokens by CountTokens.
package bedrock
