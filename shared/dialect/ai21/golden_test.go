package ai21_test

import (
	"testing"

	"gateway/shared/dialect/golden"
)

func TestPairs(t *testing.T) { golden.Pairs(t) }
