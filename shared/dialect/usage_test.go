package dialect_test

import (
	"encoding/json"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/testkit/golden"
)

// tokenCounts is the usage of a response in no client's own words. Absent is -1.
type tokenCounts struct {
	prompt, completion        int64 // with all that was cached, with reasoning
	cached, written, reasoned int64
}

// usages are what providers tell, and what it means.
var usages = map[string]map[string]struct {
	usage string
	want  tokenCounts
}{
	"anthropic": {
		"plain":      {`{"input_tokens":10,"output_tokens":5}`, tokenCounts{10, 5, 0, 0, 0}},
		"cached":     {`{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":30,"output_tokens":5}`, tokenCounts{140, 5, 100, 30, 0}},
		"two ttls":   {`{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":10},"output_tokens":5}`, tokenCounts{140, 5, 100, 30, 0}},
		"all cached": {`{"input_tokens":0,"cache_read_input_tokens":100,"output_tokens":5}`, tokenCounts{100, 5, 100, 0, 0}},
		"nothing":    {`{"input_tokens":0,"output_tokens":0}`, tokenCounts{0, 0, 0, 0, 0}},
	},
	"converse": {
		"plain":    {`{"inputTokens":10,"outputTokens":5,"totalTokens":15}`, tokenCounts{10, 5, 0, 0, 0}},
		"cached":   {`{"inputTokens":10,"outputTokens":5,"totalTokens":145,"cacheReadInputTokens":100,"cacheWriteInputTokens":30}`, tokenCounts{140, 5, 100, 30, 0}},
		"two ttls": {`{"inputTokens":10,"outputTokens":5,"totalTokens":145,"cacheReadInputTokens":100,"cacheWriteInputTokens":30,"cacheDetails":[{"ttl":"1h","inputTokens":10},{"ttl":"5m","inputTokens":20}]}`, tokenCounts{140, 5, 100, 30, 0}},
		"nothing":  {`{"inputTokens":0,"outputTokens":0,"totalTokens":0}`, tokenCounts{0, 0, 0, 0, 0}},
	},
	"gemini": {
		"plain":      {`{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}`, tokenCounts{10, 5, 0, 0, 0}},
		"cached":     {`{"promptTokenCount":110,"cachedContentTokenCount":100,"candidatesTokenCount":5,"totalTokenCount":115}`, tokenCounts{110, 5, 100, 0, 0}},
		"thoughts":   {`{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":7,"totalTokenCount":22}`, tokenCounts{10, 12, 0, 0, 7}},
		"tools":      {`{"promptTokenCount":10,"toolUsePromptTokenCount":4,"candidatesTokenCount":5,"totalTokenCount":19}`, tokenCounts{14, 5, 0, 0, 0}},
		"no answer":  {`{"promptTokenCount":10,"totalTokenCount":10}`, tokenCounts{10, 0, 0, 0, 0}},
		"modalities": {`{"promptTokenCount":110,"cachedContentTokenCount":60,"candidatesTokenCount":5,"totalTokenCount":115,"promptTokensDetails":[{"modality":"TEXT","tokenCount":90},{"modality":"AUDIO","tokenCount":20}],"cacheTokensDetails":[{"modality":"TEXT","tokenCount":50},{"modality":"AUDIO","tokenCount":10}]}`, tokenCounts{110, 5, 60, 0, 0}},
	},
	"openai": {
		"plain":      {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`, tokenCounts{10, 5, 0, 0, 0}},
		"cached":     {`{"prompt_tokens":110,"completion_tokens":5,"total_tokens":115,"prompt_tokens_details":{"cached_tokens":100}}`, tokenCounts{110, 5, 100, 0, 0}},
		"reasoning":  {`{"prompt_tokens":10,"completion_tokens":12,"total_tokens":22,"completion_tokens_details":{"reasoning_tokens":7}}`, tokenCounts{10, 12, 0, 0, 7}},
		"text parts": {`{"prompt_tokens":110,"completion_tokens":5,"total_tokens":115,"prompt_tokens_details":{"text_tokens":110,"cached_tokens":100,"audio_tokens":0,"image_tokens":0}}`, tokenCounts{110, 5, 100, 0, 0}},
		"nothing":    {`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`, tokenCounts{0, 0, 0, 0, 0}},
	},
	"cohere": {
		"plain":   {`{"billed_units":{"input_tokens":10,"output_tokens":5},"tokens":{"input_tokens":10,"output_tokens":5}}`, tokenCounts{10, 5, 0, 0, 0}},
		"nothing": {`{"billed_units":{"input_tokens":0,"output_tokens":0},"tokens":{"input_tokens":0,"output_tokens":0}}`, tokenCounts{0, 0, 0, 0, 0}},
	},
}

// TestUsageOfEveryPair compares what providers report of their tokens with what each client
// reads, whole and streamed. For OpenAI clients cached tokens are within the prompt, for
// messages clients they are beside the input; reasoning is within the completion; no token
// counts twice.
func TestUsageOfEveryPair(t *testing.T) {
	readers := map[string]func(*testing.T, []byte) tokenCounts{"openai": openAIUsage, "anthropic": messagesUsage, "responses": responsesUsage}
	for provider, cases := range usages {
		for name, c := range cases {
			for client, read := range readers {
				if client == provider {
					continue
				}
				t.Run(client+"-"+provider+"/"+name, func(t *testing.T) {
					s := &script{text: "Hi", stop: map[string]string{"anthropic": "end_turn", "converse": "end_turn", "gemini": "STOP", "cohere": "COMPLETE", "openai": "stop"}[provider], usage: c.usage}
					o := &chat.Options{Strict: true, IncludeUsage: true, ID: "gw-1", Model: "m", Created: 1}
					whole, streamed := play(t, client, provider, s, 0, chat.Traits{}, o)
					want := c.want
					if client == "anthropic" {
						want.reasoned = 0 // the shape has no field for it
					} else {
						want.written = 0
					}
					if got := read(t, whole.plain); got != want {
						t.Errorf("whole: %+v, want %+v\n%s", got, want, whole.plain)
					}
					var joined tokenCounts
					for _, e := range golden.Events(t, streamed.plain) {
						if e.Data != "[DONE]" {
							if got := read(t, []byte(e.Data)); got.prompt >= 0 {
								joined = got
							}
						}
					}
					if joined != want {
						t.Errorf("streamed: %+v, want %+v\n%s", joined, want, streamed.plain)
					}
					for _, m := range []chat.Meter{whole.meter, streamed.meter} {
						if in, out := m.Usage.InputTokens(), m.Usage.OutputTokens(); in != c.want.prompt || out != c.want.completion {
							t.Errorf("the books get %d in and %d out, want %+v", in, out, c.want)
						}
						if m.ReportedTotal != 0 {
							t.Errorf("a total of %d is taken for another than the sum", m.ReportedTotal)
						}
					}
				})
			}
		}
	}
}

func openAIUsage(t *testing.T, raw []byte) tokenCounts {
	t.Helper()
	var a struct {
		Usage *struct {
			PromptTokens     int64 `json:"prompt_tokens"`
			CompletionTokens int64 `json:"completion_tokens"`
			TotalTokens      int64 `json:"total_tokens"`
			Prompt           struct {
				Cached int64 `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
			Completion struct {
				Reasoning int64 `json:"reasoning_tokens"`
			} `json:"completion_tokens_details"`
		}
	}
	unmarshal(t, raw, &a)
	u := a.Usage
	if u == nil {
		return tokenCounts{prompt: -1}
	}
	if u.TotalTokens != u.PromptTokens+u.CompletionTokens {
		t.Errorf("the total is not the sum: %s", raw)
	}
	return tokenCounts{prompt: u.PromptTokens, completion: u.CompletionTokens, cached: u.Prompt.Cached, reasoned: u.Completion.Reasoning}
}

func messagesUsage(t *testing.T, raw []byte) tokenCounts {
	t.Helper()
	var a struct {
		Type  string
		Usage *struct {
			Input   int64  `json:"input_tokens"`
			Read    int64  `json:"cache_read_input_tokens"`
			Written int64  `json:"cache_creation_input_tokens"`
			Output  *int64 `json:"output_tokens"`
			Parts   *struct {
				Short int64 `json:"ephemeral_5m_input_tokens"`
				Long  int64 `json:"ephemeral_1h_input_tokens"`
			} `json:"cache_creation"`
		}
	}
	unmarshal(t, raw, &a)
	u := a.Usage
	if u == nil || u.Output == nil {
		return tokenCounts{prompt: -1}
	}
	if u.Parts != nil && u.Parts.Short+u.Parts.Long != u.Written {
		t.Errorf("what was written for each time is not the sum: %s", raw)
	}
	return tokenCounts{prompt: u.Input + u.Read + u.Written, completion: *u.Output, cached: u.Read, written: u.Written}
}

func responsesUsage(t *testing.T, raw []byte) tokenCounts {
	t.Helper()
	type answer struct {
		Usage *struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
			Total  int64 `json:"total_tokens"`
			In     struct {
				Cached int64 `json:"cached_tokens"`
			} `json:"input_tokens_details"`
			Out struct {
				Reasoning int64 `json:"reasoning_tokens"`
			} `json:"output_tokens_details"`
		}
	}
	var a struct {
		answer
		Response json.RawMessage
	}
	unmarshal(t, raw, &a)
	if a.Response != nil {
		unmarshal(t, a.Response, &a.answer)
	}
	u := a.answer.Usage
	if u == nil {
		return tokenCounts{prompt: -1}
	}
	if u.Total != u.Input+u.Output {
		t.Errorf("the total is not the sum: %s", raw)
	}
	return tokenCounts{prompt: u.Input, completion: u.Output, cached: u.In.Cached, reasoned: u.Out.Reasoning}
}

// TestUnreportedUsage: usage that no provider reported is unknown, which is different
// from none, so that accounting estimate it.
func TestUnreportedUsage(t *testing.T) {
	for provider, stop := range loopStops {
		for _, client := range []string{"openai", "anthropic", "responses"} {
			if client == provider {
				continue
			}
			s := &script{text: "Hi", calls: []string{"{}"}, stop: stop}
			whole, streamed := play(t, client, loopWire(provider), s, 0, chat.Traits{}, &chat.Options{Strict: true, ID: "gw-1", Model: "m", Created: 1})
			for _, m := range []chat.Meter{whole.meter, streamed.meter} {
				if m.Usage.IsReported() {
					t.Errorf("%s-%s: usage is taken for known: %+v", client, loopWire(provider), m.Usage)
				}
			}
			if streamed.meter.OutputEstimate() == 0 {
				t.Errorf("%s-%s: nothing to estimate from", client, provider)
			}
		}
	}
}
