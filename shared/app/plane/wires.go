package plane

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/bedrock"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/embedding"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/ocr"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/rerank"
	"gateway/shared/dialect/responses"
)

// Dialects are the wire shapes of conversations that the gateway speaks.
func Dialects() []chat.Dialect {
	return []chat.Dialect{
		openai.Chat{}, openai.Completions{}, anthropic.Messages{},
		cohere.Chat{}, converse.Converse{}, gemini.Generate{},
		responses.Responses{},
	}
}

// Translators carry the operations that are no conversations.
func Translators() []chat.Translator {
	return []chat.Translator{
		anthropic.CountTokens{},
		bedrock.Embeddings{}, bedrock.Images{}, bedrock.Rerank{}, bedrock.CountTokens{},
		cohere.Embeddings{}, cohere.Rerank{}, embedding.Voyage{}, embedding.Jina{}, embedding.Nomic{},
		rerank.Voyage{}, rerank.Jina{}, ocr.Mistral{}, ocr.Azure{},
		gemini.Embeddings{}, gemini.VertexEmbeddings{}, gemini.Imagen{},
	}
}
