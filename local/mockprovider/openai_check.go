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

const samplingRules = ` temperature:0..2 top_p:0..1 frequency_penalty:-2..2 presence_penalty:-2..2 n:1..128i max_tokens:1..2147483648i
	max_completion_tokens:1..2147483648i `

var chatRules = parseRules("..." + samplingRules + `seed:-9223372036854775808..9223372036854775808i stream:b logprobs:b store:b parallel_tool_calls:b
	user:s reasoning_effort:s service_tier:s verbosity:s stream_options{... include_usage:b include_obfuscation:b} metadata:o logit_bias:o response_format:o`)

var chatFields = strings.Fields(`model messages audio frequency_penalty function_call functions logit_bias logprobs
	max_completion_tokens max_tokens metadata modalities moderation n parallel_tool_calls prediction presence_penalty
	prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed
	service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options`)

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

// checkChat reads a chat completion request.
func checkChat(x *exchange, v value) (*chatRequest, *apiError) {
	if e := takeModel(x, v); e != nil {
		return nil, e
	}
	q := &chatRequest{job: job{model: x.model, st: &x.st, parallel: true}, n: 1}
	messages := v.get("messages")
	switch {
	case messages.kind == absent:
		return nil, badRequest("messages", "missing_required_parameter", "Missing required parameter: 'messages'.")
	case messages.kind != array:
		return nil, badRequest("messages", "invalid_type", "Invalid type for 'messages': expected an array of objects, but got "+messages.kind.String()+" instead.")
	case len(messages.arr) == 0:
		return nil, badRequest("messages", "empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	q.seed = seedOf(messages.s)
	if x.model == "mock-thinking" {
		q.thinking, q.effort, x.st.reasoningShown = true, 24, true
	}
	for _, check := range []func() *apiError{
		func() *apiError { return q.messages(messages.arr) },
		func() *apiError { return steerBy(&x.st, q.lastUser) },
		func() *apiError { return checkFields(x, v) },
		func() *apiError { return openAIError(chatRules.check(v, "")) },
		func() *apiError { return q.limits(v) },
		func() *apiError { return q.toolFields(v) },
		func() *apiError { return q.functionFields(v) },
		func() *apiError { return q.format(v, messages.s) },
		func() *apiError { return q.stop(v) },
		func() *apiError { return q.streaming(v) },
	} {
		if e := check(); e != nil {
			return nil, e
		}
	}
	return q, nil
}

// steerBy reads the directives in a message; a mistake in one is refused.
func steerBy(st *steering, s string) *apiError {
	if err := st.readText(s); err != nil {
		return badRequest("", "", err.Error())
	}
	return nil
}

// checkFields refuses unknown fields where that is wanted. Hosts that are compatible with
// OpenAI accept any field, OpenAI itself does not.
func checkFields(x *exchange, v value) *apiError {
	if !x.st.strictFields {
		return nil
	}
	for _, m := range v.obj {
		if !slices.Contains(chatFields, m.name) {
			return badRequest(m.name, "unknown_parameter", "Unknown parameter: '"+m.name+"'.")
		}
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
	if top := v.get("top_logprobs"); top.given() {
		n, ok := top.integer()
		if !ok || n < 0 || n > 20 {
			return badRequest("top_logprobs", "invalid_value", "Invalid value for 'top_logprobs': must be an integer between 0 and 20.")
		}
		if !q.logprobs {
			return badRequest("top_logprobs", "invalid_value", "Invalid value for 'top_logprobs': it is only allowed when 'logprobs' is true.")
		}
		q.topLogprobs = int(n)
	}
	return nil
}

func (q *chatRequest) format(v value, messages string) *apiError {
	f := v.get("response_format")
	if !f.given() {
		return nil
	}
	switch f.get("type").s {
	case "text":
	case "json_object":
		if !strings.Contains(strings.ToLower(messages), "json") {
			return badRequest("messages", "", "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
		}
		q.anyJSON = true
		q.schema = schemaInWords(v.get("messages"))
	case "json_schema":
		s := f.get("json_schema")
		if s.kind != object {
			return badRequest("response_format.json_schema", "missing_required_parameter", "Missing required parameter: 'response_format.json_schema'.")
		}
		if e := checkName(s.get("name"), "response_format.json_schema.name"); e != nil {
			return e
		}
		q.schema = s.get("schema")
		if s.get("strict").yes {
			return checkStrictSchema(q.schema, s.get("name").s)
		}
	default:
		return badRequest("response_format.type", "invalid_value", "Invalid value: '"+f.get("type").s+"'. Supported values are: 'json_object', 'json_schema', and 'text'.")
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

func (q *chatRequest) stop(v value) *apiError {
	f := v.get("stop")
	if f.kind == text {
		q.stops = []string{f.s}
		return nil
	}
	if f.given() && f.kind != array {
		return badRequest("stop", "invalid_type", "Invalid type for 'stop': expected a string or an array of strings.")
	}
	if len(f.arr) > 4 {
		return badRequest("stop", "array_above_max_length", fmt.Sprintf("Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length %d instead.", len(f.arr)))
	}
	for _, s := range f.arr {
		if s.kind != text {
			return badRequest("stop", "invalid_type", "Invalid type for 'stop': expected an array of strings.")
		}
		q.stops = append(q.stops, s.s)
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

// checkImageURL accepts addresses that a model can look at: http, https or a base64 data
// URI.
func checkImageURL(url, param string) *apiError {
	if strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		return nil
	}
	head, data, ok := strings.Cut(url, ",")
	kind, isData := strings.CutPrefix(head, "data:")
	if !ok || !isData || !strings.HasSuffix(kind, ";base64") {
		return badRequest(param, "invalid_value", "Invalid '"+param+"'. Expected a base64-encoded data URL with an image MIME type or a URL.")
	}
	switch mt, _, _ := strings.Cut(kind, ";"); mt {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
	default:
		return badRequest(param, "invalid_image_format", "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].")
	}
	if _, err := base64.StdEncoding.DecodeString(data); err != nil || data == "" {
		return badRequest(param, "invalid_base64", "Invalid base64 image_url.")
	}
	return nil
}
