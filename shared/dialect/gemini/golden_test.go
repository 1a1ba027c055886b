package gemini_test

import (
	"testing"

	"gateway/shared/dialect/gemini"
	"gateway/shared/testkit/golden"
)

func TestPairs(t *testing.T) { golden.RunPairs(t) }

func TestOperations(t *testing.T) {
	golden.Operations(t, gemini.Embeddings{}, gemini.VertexEmbeddings{}, gemini.VertexEmbedContent{}, gemini.Imagen{})
}

func TestAnswers(t *testing.T) { golden.RunResponses(t, "gemini") }
