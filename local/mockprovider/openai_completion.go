package mockprovider

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// prompts reads what completions accept as prompt and embeddings as input: one text,
// several texts, one list of tokens or several.
func prompts(v value, name string, most int) (texts []string, tokens int64, e *apiError) {
	wrong := badRequest(name, "invalid_type", "Invalid type for '"+name+"': expected a string, an array of strings, an array of integers or an array of arrays of integers.")
	if v.kind == text {
		return []string{v.s}, tokensOf(v.s), nil
	}
	if v.kind != array {
		return nil, 0, wrong
	}
	if len(v.arr) == 0 {
		return nil, 0, badRequest(name, "empty_array", "Invalid '"+name+"': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	if len(v.arr) > most {
		return nil, 0, badRequest(name, "array_above_max_length", fmt.Sprintf("Invalid '%s': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", name, most, len(v.arr)))
	}
	first := v.arr[0].kind
	for _, p := range v.arr {
		if p.kind != first {
			return nil, 0, wrong
		}
		switch p.kind {
		case text:
			texts = append(texts, p.s)
			tokens += tokensOf(p.s)
		case array:
			for _, t := range p.arr {
				if _, ok := t.integer(); !ok {
					return nil, 0, wrong
				}
			}
			texts = append(texts, p.s)
			tokens += int64(len(p.arr))
		case number:
			if _, ok := p.integer(); !ok {
				return nil, 0, wrong
			}
		default:
			return nil, 0, wrong
		}
	}
	if first == number {
		return []string{v.s}, int64(len(v.arr)), nil
	}
	return texts, tokens, nil
}

// completionRequest is a valid request for a text completion.
type completionRequest struct {
	chatRequest
	prompts []string
	echo    bool
}

func checkCompletion(x *exchange, v value) (*completionRequest, *apiError) {
	if e := takeModel(x, v); e != nil {
		return nil, e
	}
	q := &completionRequest{chatRequest: chatRequest{job: job{model: x.model, st: &x.st}, n: 1}}
	prompt := v.get("prompt")
	if !prompt.given() {
		prompt = value{kind: text, s: "<|endoftext|>"}
	}
	var e *apiError
	if q.prompts, q.job.prompt, e = prompts(prompt, "prompt", 2048); e != nil {
		return nil, e
	}
	q.seed = seedOf(prompt.s)
	q.lastUser = q.prompts[len(q.prompts)-1]
	if e := steerBy(&x.st, q.lastUser); e != nil {
		return nil, e
	}
	if e := openAIError(bodies()["completion"].check(v, "")); e != nil {
		return nil, e
	}
	if n, ok := v.get("n").integer(); ok {
		q.n = int(n)
	}
	if best, ok := v.get("best_of").integer(); ok && best < int64(q.n) {
		return nil, badRequest("best_of", "", "You requested that the server return more choices than it will generate (HINT: you must set 'n' (currently "+strconv.Itoa(q.n)+") to be at most 'best_of').")
	}
	q.maxTokens = 16
	if n, ok := v.get("max_tokens").integer(); ok {
		q.maxTokens = n
	}
	q.echo = v.get("echo").yes
	if e := q.stop(v.get("stop")); e != nil {
		return nil, e
	}
	return q, q.streaming(v)
}

// completion serves POST /completions.
func completion(x *exchange) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	q, e := checkCompletion(x, v)
	if e != nil {
		return e
	}
	id, done, e := x.begin("cmpl-", q.seed, q.stream)
	if done {
		return e
	}
	c := &textResponse{q: q, x: x, id: id, created: x.s.opts.Now().Unix()}
	c.usage.Input = q.job.prompt
	for i := range q.prompts {
		for k := range q.n {
			j := q.job
			j.seed, j.lastUser = seedOf(q.prompts[i]), q.prompts[i]
			a := j.respond(k)
			out, _ := a.generated()
			c.usage.Output += out
			if q.echo {
				a.text = append([]string{q.prompts[i]}, a.text...)
			}
			c.responses = append(c.responses, a)
		}
	}
	if q.stream {
		c.stream()
		return nil
	}
	x.plain(c.id, c.body(), c.usage)
	return nil
}

type textResponse struct {
	q         *completionRequest
	x         *exchange
	id        string
	created   int64
	responses []modelOutput
	usage     Usage
}

func (c *textResponse) head() []byte {
	return fill(`{"id":$,"object":"text_completion","created":$,"model":$,"system_fingerprint":"fp_mock","choices":`, c.id, c.created, c.x.model)
}

// choice writes one choice with some of its pieces.
func (c *textResponse) choice(i int, pieces []string, finish string) json.RawMessage {
	return fill(`{"text":$,"index":$,"logprobs":null,"finish_reason":$}`, strings.Join(pieces, ""), i, orNull(finish))
}

func (c *textResponse) finish(a *modelOutput) string {
	switch {
	case c.q.st.finish != "":
		return c.q.st.finish
	case a.stop == stopLength:
		return "length"
	}
	return "stop"
}

func (c *textResponse) body() []byte {
	var choices []json.RawMessage
	for i := range c.responses {
		choices = append(choices, c.choice(i, c.responses[i].text, c.finish(&c.responses[i])))
	}
	b := append(c.head(), list(choices)...)
	if !c.q.st.noUsage {
		b = appendOpenAIUsage(append(b, `,"usage":`...), c.usage, false)
	}
	return append(b, '}')
}

func (c *textResponse) stream() {
	s := c.x.startStream(c.id, c.usage)
	send := func(i int, pieces []string, finish string) {
		b := append(c.head(), list([]json.RawMessage{c.choice(i, pieces, finish)})...)
		if c.q.includeUsage && !c.q.st.noUsage {
			b = append(b, `,"usage":null`...)
		}
		s.event("", append(b, '}'))
	}
	for i := range c.responses {
		for k, p := range c.responses[i].text {
			if !c.q.echo || k > 0 {
				s.spend(1, 0)
			}
			send(i, []string{p}, "")
		}
		send(i, nil, c.finish(&c.responses[i]))
	}
	s.finish()
	if c.q.includeUsage && !c.q.st.noUsage {
		b := appendOpenAIUsage(append(c.head(), `[],"usage":`...), c.usage, false)
		s.event("", append(b, '}'))
	}
	s.last("", []byte("[DONE]"))
}
