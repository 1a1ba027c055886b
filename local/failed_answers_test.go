package main

import (
	"testing"

	"gateway/local/mockprovider"
	"gateway/shared/pricing"
)

// An answer that ends in a failure of the model was billed with the usage it tells.
func TestFailedAnswersAreBookedByTheirUsage(t *testing.T) {
	t.Parallel()
	google, mock := startGoogle(t)
	bedrock := start(t)
	bedrock.bedrock("bedrock", bedrockKeys)
	for _, c := range []struct {
		r             *running
		bill          func() mockprovider.Bill
		model, finish string
	}{
		{google, mock.Bill, "@google/gemini-2.5-flash", "MALFORMED_FUNCTION_CALL"},
		{bedrock, bedrock.mock.Bill, "@bedrock/" + bedrockClaude, "malformed_tool_use"},
	} {
		got := c.r.call("POST", "/chat/completions", chatBody(c.model, "mock: finish="+c.finish+"\nHello", ""))
		if got.status != 502 {
			t.Errorf("%s: %d %s", c.model, got.status, got.body)
		}
		var input, output int64
		for _, rec := range c.r.records(1) {
			input, output = input+rec.Usage.N(pricing.Input), output+rec.Usage.N(pricing.Output)
			if rec.Usage.Estimated {
				t.Errorf("%s: estimated: %+v", c.model, rec)
			}
		}
		if bill := c.bill().Total; input != bill.Input || output != bill.Output || output == 0 {
			t.Errorf("%s: our books %d, %d; the bill %+v", c.model, input, output, bill)
		}
	}
}
