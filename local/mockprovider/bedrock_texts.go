package mockprovider

import (
	"fmt"
	"net/http"
	"strings"
)

// firstText reports whether a model of Bedrock generates text only by InvokeModel.
func firstText(model string) bool {
	return strings.Contains(model, "cohere.command-text") || strings.Contains(model, "cohere.command-light-text") || strings.Contains(model, "ai21.j2-")
}

// bedrockWithin refuses a number out of bounds, with the service's message.
func bedrockWithin(v value, name string, low, high float64) *apiError {
	n := v.get(name)
	if !n.given() {
		return nil
	}
	if n.kind != number || n.float() < low || n.float() > high {
		return bedrockInvalid(fmt.Sprintf("Malformed input request: #/%s: %s is not between %g and %g, please reformat your input and try again.", name, n.s, low, high))
	}
	return nil
}

// commandInvoked answers one of Cohere's first Command models.
func commandInvoked(x *exchange, v value, stream bool) *apiError {
	if e := extraneous(v, "prompt", "temperature", "p", "k", "max_tokens", "stop_sequences", "return_likelihoods", "stream", "num_generations", "logit_bias", "truncate"); e != nil {
		return e
	}
	for _, e := range []*apiError{bedrockWithin(v, "temperature", 0, 5), bedrockWithin(v, "p", 0, 1), bedrockWithin(v, "k", 0, 500), bedrockWithin(v, "max_tokens", 1, 4096), bedrockWithin(v, "num_generations", 1, 5)} {
		if e != nil {
			return e
		}
	}
	answers := 1
	if n, ok := v.get("num_generations").integer(); ok {
		answers = int(n)
	}
	list, u, e := invokedResponses(x, v.get("prompt"), v.get("max_tokens"), answers, stream)
	if e != nil || list == nil {
		return e
	}
	id := x.newID("", 1)
	if !stream {
		counted(x, u)
		x.plain(id, commandWhole(x, id, list), u)
		return nil
	}
	s := startBinary(x, id, u)
	s.invoke = true
	if !v.get("stream").yes { // then the response is a single piece
		x.row.close(http.StatusOK, u, x.gone(), "")
		whole := commandWhole(x, id, list)
		s.event("chunk", append(whole[:len(whole)-1], ","+metrics(x, u)+"}"...))
		return nil
	}
	for i := range list {
		for _, p := range list[i].text {
			s.output++
			if !s.event("chunk", fmt.Appendf(nil, `{"text":%s,"is_finished":false,"index":%d}`, quoted(p), i)) {
				return nil
			}
		}
	}
	if x.st.noDone {
		return nil
	}
	x.row.close(http.StatusOK, u, x.gone(), "")
	for i := range list {
		end := fmt.Sprintf(`{"is_finished":true,"index":%d,"finish_reason":%s`, i, quoted(commandFinish(x, &list[i])))
		if i == len(list)-1 && !x.st.noUsage {
			end += "," + metrics(x, u)
		}
		if !s.event("chunk", []byte(end+"}")) {
			return nil
		}
	}
	return nil
}

func commandFinish(x *exchange, a *modelOutput) string {
	if x.st.finish != "" {
		return x.st.finish
	}
	return [...]string{"COMPLETE", "MAX_TOKENS", "COMPLETE", "COMPLETE", "ERROR_TOXIC"}[a.stop]
}

func commandWhole(x *exchange, id string, list []modelOutput) []byte {
	b := []byte(`{"id":` + quoted(id) + `,"prompt":"","generations":[`)
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"id":%s,"text":%s,"finish_reason":%s}`, quoted(id), audioText(&list[i]), quoted(commandFinish(x, &list[i])))
	}
	return append(b, `]}`...)
}

// jurassicInvoked answers one of AI21's Jurassic-2 models, which do not stream.
func jurassicInvoked(x *exchange, v value) *apiError {
	if e := extraneous(v, "prompt", "temperature", "topP", "maxTokens", "stopSequences", "countPenalty", "presencePenalty", "frequencyPenalty"); e != nil {
		return e
	}
	for _, e := range []*apiError{bedrockWithin(v, "temperature", 0, 1), bedrockWithin(v, "topP", 0, 1), bedrockWithin(v, "maxTokens", 0, 8191), bedrockWithin(v.get("presencePenalty"), "scale", 0, 5), bedrockWithin(v.get("frequencyPenalty"), "scale", 0, 500)} {
		if e != nil {
			return e
		}
	}
	list, u, e := invokedResponses(x, v.get("prompt"), v.get("maxTokens"), 1, false)
	if e != nil || list == nil {
		return e
	}
	tokens := func(n int64) string { return "[" + strings.TrimSuffix(strings.Repeat("{},", int(n)), ",") + "]" }
	reason := [...]string{"endoftext", "length", "stop", "endoftext", "endoftext"}[list[0].stop]
	counted(x, u)
	x.plain("mock", []byte(`{"id":1234,"prompt":{"text":"","tokens":`+tokens(u.Input)+`},"completions":[{"data":{"text":`+audioText(&list[0])+`,"tokens":`+tokens(u.Output)+`},"finishReason":{"reason":`+quoted(reason)+`}}]}`), u)
	return nil
}

// invokedResponses makes the responses to a prompt; it returns none when the request has
// already been answered.
func invokedResponses(x *exchange, prompt, maxTokens value, n int, stream bool) ([]modelOutput, Usage, *apiError) {
	if prompt.kind != text || prompt.s == "" {
		return nil, Usage{}, bedrockInvalid("Malformed input request: #/prompt: expected minLength: 1, actual: 0, please reformat your input and try again.")
	}
	last := prompt.s
	if i := strings.LastIndex(last, "User: "); i >= 0 {
		last = strings.TrimSuffix(last[i+len("User: "):], "\nAssistant:")
	}
	if e := steerBy(&x.st, last); e != nil {
		return nil, Usage{}, e
	}
	j := job{model: x.model, st: &x.st, seed: seedOf(prompt.s), prompt: tokensOf(prompt.s), lastUser: last}
	j.maxTokens, _ = maxTokens.integer()
	if _, done, e := x.begin("aws-", j.seed, stream); done {
		return nil, Usage{}, e
	}
	u := Usage{Input: j.prompt}
	list := make([]modelOutput, n)
	for i := range list {
		list[i] = j.respond(i)
		out, _ := list[i].generated()
		u.Output += out
	}
	return list, u, nil
}

// counted sets the headers in which the service reports its counts.
func counted(x *exchange, u Usage) {
	if x.st.noUsage {
		return
	}
	h := x.w.Header()
	h["X-Amzn-Bedrock-Input-Token-Count"] = []string{itoa(u.Input)}
	h["X-Amzn-Bedrock-Output-Token-Count"] = []string{itoa(u.Output)}
}

func metrics(x *exchange, u Usage) string {
	return `"amazon-bedrock-invocationMetrics":{"inputTokenCount":` + itoa(u.Input) + `,"outputTokenCount":` + itoa(u.Output) + `,"invocationLatency":1,"firstByteLatency":1}`
}
