package chat

import "slices"

// Member is a field of Request with its path in a client's body.
type Member struct {
	Field string // of Request
	// Path is the path in chat completions, which encoders report; Named converts it to the
	// client's. It is empty for fields that no client writes.
	Path string
	// said reports whether the client set the field. It is nil for fields with subfields and
	// for fields that concern the entire request: each encoder handles those.
	said func(r *Request) bool
}

// Members lists all fields of Request. A test checks that it is complete, and that no encoder
// drops a field silently.
var Members = []Member{
	{"Temperature", "temperature", func(r *Request) bool { return r.Temperature.Set }},
	{"TopP", "top_p", func(r *Request) bool { return r.TopP.Set }},
	{"TopK", "top_k", func(r *Request) bool { return r.TopK.Set }},
	{"FrequencyPenalty", "frequency_penalty", func(r *Request) bool { return r.FrequencyPenalty.Set }},
	{"PresencePenalty", "presence_penalty", func(r *Request) bool { return r.PresencePenalty.Set }},
	{"Seed", "seed", func(r *Request) bool { return r.Seed.Set }},
	{"LogitBias", "logit_bias", func(r *Request) bool { return r.LogitBias != nil }},
	{"Stop", "stop", func(r *Request) bool { return len(r.Stop) > 0 }},
	{"User", "user", func(r *Request) bool { return r.User != "" }},
	{"ServiceTier", "service_tier", func(r *Request) bool { return r.ServiceTier != "" }},

	{"Model", "model", nil},
	{"Messages", "messages", nil},
	{"Tools", "tools", nil},
	{"ToolChoice", "tool_choice", nil},
	{"Parallel", "parallel_tool_calls", nil},
	{"Format", "response_format", nil},
	{"Reasoning", "reasoning_effort", nil},
	{"MaxTokens", "max_tokens", nil},
	{"N", "n", nil},
	{"Logprobs", "logprobs", nil},
	{"TopLogprobs", "top_logprobs", nil},
	{"Stream", "stream", nil},
	{"IncludeUsage", "stream_options", nil},
	{"Completion", "suffix", nil},
	{"Extra", "extra", nil}, // by their own names
	{"Unread", "messages", nil},
	{"Guessed", "response_format.type", nil},

	{"Dialect", "", nil},
	{"MaxTokensField", "", nil},
	{"Legacy", "", nil},
	{"Renamed", "", nil},
	{"HiddenAnswer", "", nil},
	{"UnboundJSON", "", nil},
	{"Recall", "", nil},
	{"Fits", "", nil},
	{"Breakpoints", "", nil}, // how Messages are marked
}

// Lose reports, with reason, the fields that the client set and that are not in carried, which
// contains paths of Members. An encoder that calls it also reports fields that are added later.
func (r *Request) Lose(loss *Loss, reason string, carried ...string) {
	for i := range Members {
		m := &Members[i]
		if m.said != nil && m.said(r) && !slices.Contains(carried, m.Path) {
			loss.Add(m.Path, reason)
		}
	}
}
