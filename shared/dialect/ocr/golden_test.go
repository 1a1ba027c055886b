package ocr_test

import (
	"testing"

	"gateway/shared/dialect/ocr"
	"gateway/shared/testkit/golden"
)

func TestOperations(t *testing.T) {
	golden.Operations(t, ocr.Mistral{}, ocr.Azure{})
}
