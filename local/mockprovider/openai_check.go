package mockprovider

import (
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// parseBody reads the JSON object of a request.
func parseBody(x *exchange) (value, *apiError) {
	ct, _, _ := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	if ct != "application/json" {
		if x.anthropic {
			return value{}, badRequest("", "", "Content-Type must be application/json")
		}
		return value{}, &apiError{status: http.StatusUnsupportedMediaType, code: "unsupported_content_type", message: fmt.Sprintf(
			"Unsupported content type: '%s'. This API method only accepts 'application/json' requests, but you specified the header 'Content-Type: %s'. Please try again with a supported content type.", ct, ct)}
	}
	v, err := parseJSON(string(x.body))
	if err == nil && v.kind != object {
		err = &badJSON{what: "not an object"}
	}
	if err != nil {
		if x.anthropic {
			return v, badRequest("", "", "The request body is not valid JSON: "+err.Error())
		}
		return v, badRequest("", "", "We could not parse the JSON body of your request ("+err.Error()+"). The OpenAI API expects a JSON payload.")
	}
	return v, nil
}

func article(word string) string {
	if strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

// isReasoning reports whether a model is a reasoning model.
func isReasoning(model string) bool {
	if model == "mock-reasoning" {
		return true
	}
	for _, p := range []string{"o1", "o3", "o4", "gpt-5"} {
		if model == p || strings.HasPrefix(model, p+"-") || strings.HasPrefix(model, p+".") {
			return !strings.Contains(model, "chat")
		}
	}
	return false
}

// takeModel reads the model, and the directives in its name.
func takeModel(x *exchange, v value) *apiError {
	m := v.get("model")
	if m.kind != text || m.s == "" {
		if x.anthropic {
			return badRequest("", "", "model: Field required")
		}
		return badRequest("", "", "you must provide a model parameter")
	}
	name, err := splitModel(m.s, &x.st)
	if err != nil {
		return badRequest("model", "", err.Error())
	}
	x.model = name
	if name == "mock-missing" || strings.Contains(name, "does-not-exist") {
		if x.anthropic {
			return &apiError{status: http.StatusNotFound, message: "model: " + name}
		}
		return &apiError{status: http.StatusNotFound, code: "model_not_found", message: "The model `" + name + "` does not exist or you do not have access to it."}
	}
	return nil
}

// chatRequest is a valid chat completion request.
type chatRequest struct {
	job
	stream, includeUsage bool
	n                    int
	logprobs             bool
	topLogprobs          int
	legacy               bool // functions instead of tools
}

// imageTokens is what a picture or a file costs.
const imageTokens = 85

// checkChat reads a chat completion request.
func checkChat(x *exchange, v value) (*chatRequest, *apiError) {
	if e := takeModel(x, v); e != nil {
		return nil, e
	}
	q := &chatRequest{job: job{model: x.model, st: &x.st, parallel: true}, n: 1}
	messages := v.get("messages")
	q.seed = seedOf(messages.s)
	q.thinking, q.effort = x.model == "mock-thinking", 24
	for _, check := range []func() *apiError{
		func() *apiError { return openAIError(bodies()["chat"].check(v, "")) },
		func() *apiError { return q.messages(messages.arr) },
		func() *apiError { return steerBy(&x.st, q.lastUser) },
		func() *apiError { return q.limits(v) },
		func() *apiError { return q.toolFields(v) },
		func() *apiError { return q.format(v.get("response_format"), messages) },
		func() *apiError { return q.stop(v.get("stop")) },
		func() *apiError { return q.streaming(v) },
	} {
		if e := check(); e != nil {
			return nil, e
		}
	}
	return q, nil
}

// messages reads the conversation: that each tool call has its response and each response its
// call.
func (q *chatRequest) messages(all []value) *apiError {
	var open []string // calls that wait for a response
	q.prompt = 3
	for i, m := range all {
		at := fmt.Sprintf("messages[%d]", i)
		role, c := m.get("role").s, m.get("content")
		calls := m.get("tool_calls").arr
		switch {
		case role != "tool" && len(open) > 0:
			return missingResults(open)
		case c.kind == array && len(c.arr) == 0, m.get("tool_calls").kind == array && len(calls) == 0:
			return badRequest(at+".content", "empty_array", "Invalid '"+at+".content': empty array. Expected an array with minimum length 1, but got an empty array instead.")
		case role == "assistant" && !c.given() && len(calls) == 0 && !m.get("function_call").given() && !m.get("audio").given() && !m.get("refusal").given():
			return missingParam(at + ".content")
		}
		q.prompt += 4 + partTokens(c)
		q.afterTool = role == "tool" || role == "function"
		switch role {
		case "user":
			q.lastUser, q.toolText = plainText(c), ""
		case "assistant":
			for _, call := range calls {
				open = append(open, call.get("id").s)
				q.prompt += tokensOf(call.at("function.name").s) + tokensOf(call.at("function.arguments").s)
			}
		case "tool":
			id := m.get("tool_call_id").s
			k := slices.Index(open, id)
			if k < 0 {
				return badRequest(at+".tool_call_id", "", "Invalid parameter: 'tool_call_id' of '"+id+"' not found in 'tool_calls' of previous message.")
			}
			open = slices.Delete(open, k, k+1)
			q.toolText = strings.TrimSpace(q.toolText + " " + plainText(c))
		case "function":
			q.toolText = c.s
		}
	}
	if len(open) > 0 {
		return missingResults(open)
	}
	return nil
}

// partTokens counts the tokens of a content.
func partTokens(c value) (n int64) {
	if c.kind == text {
		return tokensOf(c.s)
	}
	for _, p := range c.arr {
		if said := p.get("text").s + p.get("refusal").s; p.get("text").given() || p.get("refusal").given() {
			n += tokensOf(said)
		} else {
			n += imageTokens
		}
	}
	return n
}

func missingResults(ids []string) *apiError {
	return badRequest("messages", "", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: "+strings.Join(ids, ", "))
}

func isName(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// toolFields reads tools, or functions, their old format.
func (q *chatRequest) toolFields(v value) *apiError {
	list, choice := v.get("tools"), v.get("tool_choice")
	name := "tool_choice"
	if functions := v.get("functions"); functions.given() || v.get("function_call").given() {
		if list.given() {
			return badRequest("functions", "", "'functions' and 'tools' may not be given together.")
		}
		list, choice, name, q.legacy = functions, v.get("function_call"), "function_call", true
	}
	parallel := v.get("parallel_tool_calls")
	if !list.given() {
		if choice.given() && choice.s != "none" || parallel.given() {
			return badRequest(name, "", "'"+name+"' and 'parallel_tool_calls' are only allowed when 'tools' are specified.")
		}
		return nil
	}
	if len(list.arr) == 0 {
		return badRequest("tools", "empty_array", "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	for _, t := range list.arr {
		if !q.legacy {
			t = t.get("function")
		}
		q.tools = append(q.tools, tool{t.get("name").s, t.get("parameters")})
	}
	q.prompt += tokensOf(list.s)
	q.parallel = !q.legacy && (!parallel.given() || parallel.yes)
	named := choice.get("function").get("name").s + choice.get("name").s
	mode, known := map[string]choiceMode{"auto": chooseAuto, "none": chooseNone, "required": chooseAny}[choice.s]
	switch q.choice = mode; {
	case !choice.given() || choice.kind == text && known && (mode != chooseAny || !q.legacy):
		return nil
	case choice.kind == object && q.has(named):
		q.choice, q.named = chooseNamed, named
		return nil
	case choice.kind == object:
		return badRequest(name, "", "Invalid value for '"+name+"': no function named '"+named+"' was specified in the 'tools' parameter.")
	}
	return unsupportedValue(name, choice.s, "none", "auto", "required")
}

// steerBy reads the directives in a message; a mistake in one is refused.
func steerBy(st *steering, s string) *apiError {
	if err := st.readText(s); err != nil {
		return badRequest("", "", err.Error())
	}
	return nil
}

// limits reads n, the limits of tokens and the log probabilities, and refuses what
// reasoning models refuse.
func (q *chatRequest) limits(v value) *apiError {
	if n, ok := v.get("n").integer(); ok {
		q.n = int(n)
	}
	old, now := v.get("max_tokens"), v.get("max_completion_tokens")
	if old.given() && now.given() {
		return badRequest("max_tokens", "invalid_parameter_combination", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	if isReasoning(q.model) {
		if old.given() {
			return badRequest("max_tokens", "unsupported_parameter", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
		}
		for _, name := range []string{"temperature", "top_p"} {
			if f := v.get(name); f.given() && f.float() != 1 {
				return badRequest(name, "unsupported_value", "Unsupported value: '"+name+"' does not support "+f.s+" with this model. Only the default (1) value is supported.")
			}
		}
		if q.st.reasoning == never {
			q.st.reasoning = 16
		}
	}
	q.maxTokens, _ = old.integer()
	if n, ok := now.integer(); ok {
		q.maxTokens = n
	}
	q.logprobs = v.get("logprobs").yes
	n, ok := v.get("top_logprobs").integer()
	if q.topLogprobs = int(n); ok && !q.logprobs {
		return badRequest("top_logprobs", "invalid_value", "Invalid value for 'top_logprobs': it is only allowed when 'logprobs' is true.")
	}
	return nil
}

func (q *chatRequest) format(f, messages value) *apiError {
	switch f.get("type").s {
	case "json_object":
		if !strings.Contains(strings.ToLower(messages.s), "json") {
			return badRequest("messages", "", "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
		}
		q.anyJSON, q.schema = true, schemaInWords(messages)
	case "json_schema":
		s := f.get("json_schema")
		if q.schema = s.get("schema"); s.get("strict").yes {
			return checkStrictSchema(q.schema, s.get("name").s)
		}
	}
	return nil
}

// schemaInWords returns the JSON schema that a system message prescribes, or the zero value. A
// model follows such an instruction.
func schemaInWords(messages value) value {
	for _, m := range messages.arr {
		if _, schema, ok := strings.Cut(m.get("content").s, "match this JSON schema: "); ok && m.get("role").s == "system" {
			if v, err := parseJSON(schema); err == nil {
				return v
			}
		}
	}
	return value{}
}

// checkStrictSchema checks that the root of a strict schema stays within the documented
// subset.
func checkStrictSchema(s value, name string) *apiError {
	fail := func(what string) *apiError {
		return badRequest("response_format", "", "Invalid schema for response_format '"+name+"': In context=(), "+what)
	}
	if s.get("type").s != "object" {
		return fail("schema must have type 'object'.")
	}
	if f := s.get("additionalProperties"); f.kind != boolean || f.yes {
		return fail("'additionalProperties' is required to be supplied and to be false.")
	}
	for _, p := range s.get("properties").obj {
		if !requires(s, p.name) {
			return fail("'required' is required to be supplied and to be an array including every key in properties. Missing '" + p.name + "'.")
		}
	}
	return nil
}

func (q *chatRequest) stop(f value) *apiError {
	if f.kind == text {
		q.stops = []string{f.s}
	}
	for _, s := range f.arr {
		q.stops = append(q.stops, s.s)
	}
	if len(q.stops) > 4 {
		return badRequest("stop", "array_above_max_length", fmt.Sprintf("Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length %d instead.", len(q.stops)))
	}
	return nil
}

func (q *chatRequest) streaming(v value) *apiError {
	q.stream = v.get("stream").yes
	o := v.get("stream_options")
	if !o.given() {
		return nil
	}
	if !q.stream {
		return badRequest("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	q.includeUsage = o.get("include_usage").yes
	return nil
}

func isURL(s string) bool { return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://") }

func isBase64(s string) bool {
	raw, err := base64.StdEncoding.DecodeString(s)
	return err == nil && len(raw) > 0
}

// isImage reports whether s is an address that a model can look at: http, https or a base64
// data URI.
func isImage(s string) bool {
	head, data, _ := strings.Cut(s, ";base64,")
	return isURL(s) || slices.Contains([]string{"data:image/jpeg", "data:image/png", "data:image/gif", "data:image/webp"}, head) && isBase64(data)
}
