package mockprovider

import (
	"fmt"
	"strconv"
	"strings"
)

// ociJob is a valid request for a chat of Oracle's service.
type ociJob struct {
	job
	x      *exchange
	stream bool
	usage  bool // in a stream
}

var (
	ociRules        = parseRules("compartmentId!!:s servingMode!{servingType!=ON_DEMAND modelId!!:s} chatRequest!:o")
	ociGenericRules = parseRules("apiFormat!=GENERIC messages!![]{role!=SYSTEM|DEVELOPER|USER|ASSISTANT|TOOL content[]{... type!=TEXT|IMAGE|AUDIO} name toolCalls toolCallId refusal audio annotations reasoningContent} isStream streamOptions numGenerations seed isEcho topK topP temperature frequencyPenalty presencePenalty stop logProbs maxTokens maxCompletionTokens logitBias toolChoice{... type!=AUTO|NONE|REQUIRED|FUNCTION} tools[]{type!=FUNCTION name!:s description parameters:o} isParallelToolCalls responseFormat{... type!=TEXT|JSON_OBJECT|JSON_SCHEMA jsonSchema{name! description schema!:o isStrict}} reasoningEffort verbosity metadata prediction webSearchOptions serviceTier")
)

// ociChat serves the formats GENERIC and COHERE.
func ociChat(x *exchange) *apiError {
	v, e := strictBody(x, ociRules)
	if e != nil {
		return e
	}
	serving, r := v.get("servingMode"), v.get("chatRequest")
	x.model = serving.get("modelId").s
	q := &ociJob{x: x, job: job{model: x.model, st: &x.st, seed: seedOf(r.get("messages").s + r.get("chatHistory").s + r.get("message").s), prompt: tokensOf(r.s), parallel: true}}
	q.stream, q.usage = r.get("isStream").yes, r.get("streamOptions").get("isIncludeUsage").yes
	if e := q.generic(r); e != nil {
		return e
	}
	if e := steerBy(&x.st, q.lastUser); e != nil {
		return e
	}
	if done, e := opened(x, q.seed); done || e != nil {
		return e
	}
	q.answered()
	return nil
}

// generic checks a request of the format GENERIC.
func (q *ociJob) generic(r value) *apiError {
	if e := wireError(ociGenericRules.check(r, "")); e != nil {
		return e
	}
	q.maxTokens, _ = r.get("maxTokens").integer()
	if e := q.messages(r.get("messages")); e != nil {
		return e
	}
	if e := q.toolList(r); e != nil {
		return e
	}
	return q.format(r.get("responseFormat"))
}

// messages checks the turns: roles are in capitals, contents are lists, and each result of
// a tool has the id of a call.
func (q *ociJob) messages(list value) *apiError {
	called := map[string]bool{}
	for i, m := range list.arr {
		role, content := m.get("role").s, m.get("content")
		q.afterTool = role == "TOOL"
		calls := m.get("toolCalls").arr
		if content.kind != array && !(role == "ASSISTANT" && len(calls) > 0) {
			return wireBad("messages[%d].content must be a list", i)
		}
		switch role {
		case "USER":
			q.lastUser = plainText(content)
		case "ASSISTANT":
			for _, c := range calls {
				if _, err := parseJSON(c.get("arguments").s); err != nil || c.get("type").s != "FUNCTION" || c.get("name").s == "" || c.get("id").s == "" {
					return wireBad("messages[%d].toolCalls has a call without type, id, name or arguments", i)
				}
				called[c.get("id").s] = true
			}
		case "TOOL":
			if !called[m.get("toolCallId").s] {
				return wireBad("messages[%d].toolCallId names no call", i)
			}
			q.toolText = plainText(content)
		}
	}
	return nil
}

func (q *ociJob) toolList(r value) *apiError {
	for _, t := range r.get("tools").arr {
		q.tools = append(q.tools, tool{t.get("name").s, t.get("parameters")})
	}
	if p := r.get("isParallelToolCalls"); p.kind == boolean {
		q.parallel = p.yes
	}
	choice := r.get("toolChoice")
	switch kind := choice.get("type").s; {
	case !choice.given() || kind == "AUTO":
	case len(q.tools) == 0:
		return wireBad("toolChoice needs tools")
	case kind == "NONE":
		q.choice = chooseNone
	case kind == "REQUIRED":
		q.choice = chooseAny
	case kind == "FUNCTION" && choice.get("name").s != "":
		q.choice, q.named = chooseNamed, choice.get("name").s
	default:
		return wireBad("toolChoice.type %q is not known", kind)
	}
	return nil
}

func (q *ociJob) format(f value) *apiError {
	switch f.get("type").s {
	case "JSON_OBJECT":
		q.anyJSON = true
	case "JSON_SCHEMA":
		s := f.get("jsonSchema")
		if !s.given() {
			return wireBad("responseFormat.jsonSchema is required")
		}
		q.schema = s.get("schema")
	}
	return nil
}

// answered writes the response, complete or as events.
func (q *ociJob) answered() {
	a := q.respond(0)
	out, hidden := a.generated()
	u := Usage{Input: q.prompt, Output: out, Reasoning: hidden}
	usage := fmt.Sprintf(`"usage":{"promptTokens":%d,"completionTokens":%d,"totalTokens":%d`, u.Input, out+hidden, u.Input+out+hidden)
	if hidden > 0 {
		usage += fmt.Sprintf(`,"completionTokensDetails":{"reasoningTokens":%d}`, hidden)
	}
	usage += "}"
	if q.st.noUsage {
		usage = `"usage":null`
	}
	if q.stream {
		q.streamed(&a, u, usage)
		return
	}
	q.x.plain("mock", []byte(`{"modelId":`+quoted(q.model)+`,"modelVersion":"1.0","chatResponse":{"apiFormat":"GENERIC","timeCreated":"2026-01-01T00:00:00.000Z","choices":[{"index":0,"message":`+q.message(&a)+`,"finishReason":`+quoted(q.finish(&a))+`}],`+usage+`}}`), u)
}

// finish is the finish reason, in the words of the format.
func (q *ociJob) finish(a *modelOutput) string {
	switch {
	case q.st.finish != "":
		return q.st.finish
	}
	return [...]string{"stop", "length", "stop", "tool_calls", "content_filter"}[a.stop]
}

func (q *ociJob) message(a *modelOutput) string {
	if len(a.calls) == 0 {
		return `{"role":"ASSISTANT","content":[{"type":"TEXT","text":` + audioText(a) + `}]}`
	}
	var calls []string
	for i := range a.calls {
		calls = append(calls, `{"type":"FUNCTION","id":`+quoted(q.callID(i))+`,"name":`+quoted(a.calls[i].name)+`,"arguments":`+quoted(a.calls[i].args)+`}`)
	}
	return `{"role":"ASSISTANT","content":null,"toolCalls":[` + strings.Join(calls, ",") + `]}`
}

func (q *ociJob) callID(i int) string {
	return "chatcmpl-tool-" + strconv.FormatUint(uint64(q.seed), 36) + strconv.Itoa(i)
}

// streamed sends events without names. The first event of a call has its name, and the next
// ones have pieces of its arguments.
func (q *ociJob) streamed(a *modelOutput, u Usage, usage string) {
	s := q.x.startStream("mock", u)
	for _, p := range a.text {
		s.spend(1, 0)
		s.event("", []byte(`{"index":0,"message":{"role":"ASSISTANT","content":[{"type":"TEXT","text":`+quoted(p)+`}]},"pad":"aa"}`))
	}
	for i := range a.calls {
		s.spend(1, 0)
		s.event("", []byte(`{"index":0,"message":{"role":"ASSISTANT","toolCalls":[{"type":"FUNCTION","id":`+quoted(q.callID(i))+`,"name":`+quoted(a.calls[i].name)+`}]},"pad":"a"}`))
		for _, p := range a.calls[i].pieces {
			s.spend(1, 0)
			s.event("", []byte(`{"index":0,"message":{"role":"ASSISTANT","toolCalls":[{"type":"FUNCTION","arguments":`+quoted(p)+`}]},"pad":"aaa"}`))
		}
	}
	s.finish()
	s.event("", []byte(`{"message":{"role":"ASSISTANT"},"finishReason":`+quoted(q.finish(a))+`}`))
	if q.usage {
		s.event("", []byte(`{`+usage+`}`))
	}
	s.end()
}
