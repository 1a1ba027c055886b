package image_test

import (
	"testing"

	"gateway/shared/dialect/golden"
	"gateway/shared/dialect/image"
)

func TestOperations(t *testing.T) {
	golden.Operations(t, image.WorkersAI{}, image.SiliconFlow{}, image.Hyperbolic{}, image.Stability{}, image.Segmind{}, image.Fireworks{})
}
