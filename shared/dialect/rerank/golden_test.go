package rerank_test

import (
	"testing"

	"gateway/shared/dialect/rerank"
	"gateway/shared/testkit/golden"
)

func TestOperations(t *testing.T) {
	golden.Operations(t, rerank.Voyage{}, rerank.Jina{})
}
