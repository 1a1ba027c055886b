package openai_test

import (
	"testing"

	"gateway/shared/testkit/golden"
)

func TestPairs(t *testing.T) { golden.RunPairs(t) }

func TestAnswers(t *testing.T) { golden.RunResponses(t, "openai") }
