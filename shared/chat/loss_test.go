package chat

import (
	"strings"
	"testing"

	"gateway/shared/fault"
)

// A client that relies on the exact shape is rejected only for what it would miss in the
// response, and the rejection names only that: removing what is lost without harm would not help.
func TestStrictLossNamesMissingParts(t *testing.T) {
	loss := Loss{StrictResponse: true}
	loss.Add("seed", "not accepted")
	loss.Add("logprobs", "not accepted")
	loss.AddResponse("logprobs", "not accepted")
	f := fault.From(loss.Err())
	if f.Code != fault.TranslationLoss || f.Field != "logprobs" || !strings.Contains(f.Message, "logprobs") || strings.Contains(f.Message, "seed") {
		t.Errorf("%s %q: %s", f.Code, f.Field, f.Message)
	}
	if got := loss.Header(); got != "dropped=seed (not accepted), logprobs (not accepted)" {
		t.Errorf("the report is %q", got)
	}
	loss.Strict = true
	if f := fault.From(loss.Err()); f.Field != "seed" || !strings.Contains(f.Message, "logprobs") {
		t.Errorf("%q: %s", f.Field, f.Message)
	}
}
