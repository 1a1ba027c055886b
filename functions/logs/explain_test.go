package logs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/usage"
)

func TestExplanationListsStepsInOrder(t *testing.T) {
	r := made("o", "w", "s", time.Minute)
	r.ConfigID, r.ConfigSlug, r.ConfigVersion, r.Mode, r.OptionIndex = "c", "pc-a", 7, "conditional", "config.targets[1].targets[10]"
	r.Matches = []usage.Match{{Path: "config", Condition: 2, Index: 1}}
	r.Draws = []usage.Draw{
		{Path: "config.targets[1]", Number: 1 << 31, Index: 10}, {Path: "config.targets[1].targets[10]", Index: 0, Sticky: usage.StickyReused},
		{Path: "config.targets[1].targets[2]", Number: 1 << 30, Sticky: usage.StickyHash},
	}
	r.Breakers = []usage.Breaker{{Path: "config.targets[1].targets[0]", Open: true}, {Path: "config.targets[1].targets[1]", Probe: true}, {Path: "config.targets[1].targets[3]"}}
	r.Skips = []usage.Skip{
		{Path: "config.targets[1].targets[0]", Reason: usage.SkipOpen}, {Path: "config.targets[1].targets[1]", Reason: usage.SkipProbe},
		{Path: "config.targets[1].targets[9]", Reason: usage.SkipRejected, Code: "rate_limit_exceeded", Status: 429},
	}
	r.Attempts = []usage.Attempt{
		{Provider: "openai", ProviderSlug: "main", Model: "m", OptionIndex: r.OptionIndex, Status: 500, ErrorCode: "provider_error"},
		{Provider: "openai", ProviderSlug: "main", Model: "m", OptionIndex: r.OptionIndex, Retry: 1, Wait: 2 * time.Second, WaitReason: usage.WaitNamed},
		{Provider: "anthropic", Model: "n", OptionIndex: r.OptionIndex, Retry: 2, Wait: time.Second, WaitReason: usage.WaitBackoff, Status: 200},
		{Provider: "mistral-ai", Model: "o", OptionIndex: r.OptionIndex, Wait: time.Second, WaitReason: usage.WaitHedge, Status: 200},
	}
	r.Losses, r.FinishReason, r.ClientGone = []string{"logit_bias", "answer: choices[0].message.thinking"}, "end_turn", true
	var got []string
	for _, s := range steps(&r) {
		path := ""
		if s.Path != nil {
			path = *s.Path + " "
		}
		got = append(got, s.Step+": "+path+s.Text)
	}
	want := []string{
		"config: config Config pc-a, version 7, applied; its strategy is conditional",
		"condition: config Condition 2 held, those before it did not: target 1",
		"draw: config.targets[1] Drew 0.5000 by weight: target 10",
		"breaker: config.targets[1].targets[0] The circuit breaker of this target was open",
		"skip: config.targets[1].targets[0] Skipped: its circuit breaker was open",
		"breaker: config.targets[1].targets[1] The cooldown of this target's circuit breaker was over: one request at a time may try it",
		"skip: config.targets[1].targets[1] Skipped: another request was trying it",
		"draw: config.targets[1].targets[2] The hash of the sticky fields is 0.2500: target 0",
		"breaker: config.targets[1].targets[3] The circuit breaker of this target was closed",
		"skip: config.targets[1].targets[9] Rejected by the gateway before any call: rate_limit_exceeded",
		"draw: config.targets[1].targets[10] An earlier request with the same sticky fields went to target 0",
		"cache: Not in the cache",
		"attempt: config.targets[1].targets[10] Called @main with model m: 500 provider_error",
		"attempt: config.targets[1].targets[10] Called @main again, retry 1: no response, after the time that the provider requested",
		"attempt: config.targets[1].targets[10] Called anthropic again, retry 2: 200",
		"attempt: config.targets[1].targets[10] Called mistral-ai with model o: 200, the second attempt of a hedge",
		"translation: logit_bias was not sent to the provider",
		"translation: choices[0].message.thinking of the response cannot be represented in the client's format",
		"answer: config.targets[1].targets[10] Answered 200, ended by the provider with end_turn; the client had disconnected",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
