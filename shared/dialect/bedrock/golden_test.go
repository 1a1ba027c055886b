package bedrock_test

import (
	"testing"

	"gateway/shared/dialect/bedrock"
	"gateway/shared/testkit/golden"
)

func TestPairs(t *testing.T) { golden.RunPairs(t) }

func TestOperations(t *testing.T) {
	golden.Operations(t, bedrock.Embeddings{}, bedrock.Images{}, bedrock.Rerank{}, bedrock.CountTokens{})
}
