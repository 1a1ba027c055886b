package plane

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/ai21"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/bedrock"
	"gateway/shared/dialect/bytez"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/embedding"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/image"
	"gateway/shared/dialect/job"
	"gateway/shared/dialect/oci"
	"gateway/shared/dialect/ocr"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/palm"
	"gateway/shared/dialect/reka"
	"gateway/shared/dialect/rerank"
	"gateway/shared/dialect/responses"
	"gateway/shared/dialect/triton"
	"gateway/shared/dialect/workersai"
)

// Dialects are the wire shapes of conversations that the gateway speaks.
func Dialects() []chat.Provider {
	return []chat.Provider{
		openai.Chat{}, openai.Completions{}, anthropic.Messages{},
		cohere.Chat{}, converse.Converse{}, gemini.Generate{},
		cohere.Generate{}, ai21.Complete{}, bedrock.Invoke{}, bytez.Chat{},
		oci.Chat{}, palm.Chat{}, palm.Text{},
		reka.Chat{}, triton.Generate{}, workersai.Run{},
		responses.Responses{},
	}
}

// Translators carry the operations that are not conversations.
func Translators() []chat.Translator {
	return append(RowTranslators(),
		bedrock.Images{}, bedrock.Rerank{}, cohere.Rerank{},
		rerank.Voyage{}, rerank.Jina{}, ocr.Mistral{}, ocr.Azure{},
		gemini.Imagen{},
		image.WorkersAI{}, image.SiliconFlow{}, image.Hyperbolic{}, image.Stability{}, image.Segmind{}, image.Fireworks{}, image.Fal{},
	)
}

// RowTranslators are the Translators that rows of batches may need: embeddings and counting
// of tokens.
func RowTranslators() []chat.Translator {
	return []chat.Translator{
		anthropic.CountTokens{}, bedrock.CountTokens{},
		bedrock.Embeddings{}, cohere.Embeddings{}, embedding.Voyage{}, embedding.Jina{}, embedding.Nomic{},
		ai21.Embeddings{}, palm.Embeddings{},
		gemini.Embeddings{}, gemini.VertexEmbeddings{}, gemini.VertexEmbedContent{},
	}
}

// Jobs carry files, batches and fine-tuning jobs of providers that have a shape of their
// own for them.
func Jobs() []chat.Jobs {
	return []chat.Jobs{job.Anthropic{}, job.Bedrock{}, job.Vertex{}, job.Mistral{}, job.Together{}, job.Fireworks{}, job.Cohere{}}
}
