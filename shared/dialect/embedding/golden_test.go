package embedding_test

import (
	"testing"

	"gateway/shared/dialect/embedding"
	"gateway/shared/testkit/golden"
)

func TestOperations(t *testing.T) {
	golden.Operations(t, embedding.Voyage{}, embedding.Jina{}, embedding.Nomic{})
}
