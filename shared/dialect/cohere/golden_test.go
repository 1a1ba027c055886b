package cohere_test

import (
	"testing"

	"gateway/shared/dialect/cohere"
	"gateway/shared/testkit/golden"
)

func TestPairs(t *testing.T) { golden.RunPairs(t) }

func TestOperations(t *testing.T) {
	golden.Operations(t, cohere.Embeddings{}, cohere.Rerank{})
}
