package image_test

import (
	"testing"

	"gateway/shared/dialect/image"
	"gateway/shared/testkit/golden"
)

func TestOperations(t *testing.T) {
	golden.Operations(t, image.WorkersAI{}, image.SiliconFlow{}, image.Hyperbolic{}, image.Stability{}, image.Segmind{}, image.Fireworks{})
}
