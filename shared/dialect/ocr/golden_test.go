package ocr_test

import (
	"testing"

	"gateway/shared/dialect/golden"
	"gateway/shared/dialect/ocr"
)

func TestOperations(t *testing.T) {
	golden.Operations(t, ocr.Mistral{}, ocr.Azure{})
}
