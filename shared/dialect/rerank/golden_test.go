package rerank_test

import (
	"testing"

	"gateway/shared/dialect/golden"
	"gateway/shared/dialect/rerank"
)

func TestOperations(t *testing.T) {
	golden.Operations(t, rerank.Voyage{}, rerank.Jina{})
}
