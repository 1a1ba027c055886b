package triton_test

import (
	"testing"

	"gateway/shared/testkit/golden"
)

func TestPairs(t *testing.T) { golden.RunPairs(t) }
