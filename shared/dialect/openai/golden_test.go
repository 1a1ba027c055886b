package openai_test

import (
	"testing"

	"gateway/shared/testkit/golden"
)

func TestPairs(t *testing.T) { golden.Pairs(t) }

func TestAnswers(t *testing.T) { golden.Answers(t, "openai") }
