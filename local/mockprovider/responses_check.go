package mockprovider

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// responseRequest is a valid request of POST /responses.
type responseRequest struct {
	job
	stream    bool
	encrypted bool // include contains reasoning.encrypted_content
	logprobs  bool
	summary   bool
	custom    map[string]bool // tools that take free text
	tier      string
}

// client_metadata is sent by Codex, and accepted.
var responseFields = strings.Fields(`background client_metadata conversation context_management include input instructions max_output_tokens max_tool_calls
	metadata model parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_retention reasoning safety_identifier
	service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user`)

// movedFields are fields of chat completions that have another name here.
var movedFields = map[string]string{"messages": "input", "max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens", "response_format": "text.format", "reasoning_effort": "reasoning.effort"}

var responseRules = parseRules(`... temperature:0..2 top_p:0..1 max_output_tokens:16..2147483648i top_logprobs:0..20i max_tool_calls:1..2147483648i
	stream:b store:b parallel_tool_calls:b background:b user:s instructions:s service_tier:s truncation=auto|disabled previous_response_id:s prompt_cache_key:s safety_identifier:s
	stream_options{include_obfuscation} metadata:o reasoning{effort=none|minimal|low|medium|high|xhigh summary=auto|concise|detailed generate_summary=auto|concise|detailed}
	text{format:o verbosity} prompt:o include:a`)

var responseIncludes = strings.Fields(`file_search_call.results web_search_call.results web_search_call.action.sources message.input_image.image_url
	computer_call_output.output.image_url code_interpreter_call.outputs reasoning.encrypted_content message.output_text.logprobs`)

// checkResponse reads a request of POST /responses.
func checkResponse(x *exchange, v value) (*responseRequest, *apiError) {
	if e := takeModel(x, v); e != nil {
		return nil, e
	}
	q := &responseRequest{job: job{model: x.model, st: &x.st, parallel: true, prompt: 3}, custom: map[string]bool{}}
	for _, check := range []func() *apiError{
		func() *apiError { return checkBreakpoints(x, x.model) },
		func() *apiError { return checkResponseFields(v) },
		func() *apiError { return openAIError(responseRules.check(v, "")) },
		func() *apiError { return checkMetadata(v) },
		func() *apiError { return remembered(x, v) },
		func() *apiError { return q.state(v) },
		func() *apiError { return q.input(v) },
		func() *apiError { return steerBy(&x.st, q.lastUser) },
		func() *apiError { return q.limits(v) },
		func() *apiError { return q.reasoning(v) },
		func() *apiError { return q.include(v) },
		func() *apiError { return q.toolFields(v) },
		func() *apiError { return q.format(v) },
		func() *apiError { return q.rest(v) },
	} {
		if e := check(); e != nil {
			return nil, e
		}
	}
	return q, nil
}

func checkResponseFields(v value) *apiError {
	for _, m := range v.obj {
		if to := movedFields[m.name]; to != "" {
			return badRequest(m.name, "unsupported_parameter", "Unsupported parameter: '"+m.name+"'. In the Responses API, this parameter has moved to '"+to+"'. Try again with the new parameter. See the API documentation for more information: https://platform.openai.com/docs/api-reference/responses/create.")
		}
		if !slices.Contains(responseFields, m.name) {
			return badRequest(m.name, "unknown_parameter", "Unknown parameter: '"+m.name+"'.")
		}
	}
	return nil
}

// state refuses saved prompts, of which there are none here, and background without store.
func (q *responseRequest) state(v value) *apiError {
	if p := v.get("prompt"); p.given() {
		return &apiError{status: http.StatusNotFound, param: "prompt", code: "prompt_not_found", message: "Prompt with id '" + p.get("id").s + "' not found."}
	}
	if v.get("background").yes && v.get("store").kind == boolean && !v.get("store").yes {
		return badRequest("background", "", "Background mode requires 'store' to be true.")
	}
	return nil
}

func missingParam(at string) *apiError {
	return badRequest(at, "missing_required_parameter", "Missing required parameter: '"+at+"'.")
}

func wrongType(at, want string, got kind) *apiError {
	return badRequest(at, "invalid_type", "Invalid type for '"+at+"': expected "+want+", but got "+got.String()+" instead.")
}

func unsupportedValue(at, got string, allowed ...string) *apiError {
	return badRequest(at, "invalid_value", "Invalid value: '"+got+"'. Supported values are: '"+strings.Join(allowed, "', '")+"'.")
}

func (q *responseRequest) limits(v value) *apiError {
	q.maxTokens, _ = v.get("max_output_tokens").integer()
	if !isReasoning(q.model) {
		return nil
	}
	for _, name := range []string{"temperature", "top_p"} {
		if v.get(name).given() {
			return badRequest(name, "unsupported_parameter", "Unsupported parameter: '"+name+"' is not supported with this model.")
		}
	}
	if q.st.reasoning == never {
		q.st.reasoning = 16
	}
	return nil
}

func (q *responseRequest) reasoning(v value) *apiError {
	for _, m := range v.get("reasoning").obj {
		if m.v.given() && !isReasoning(q.model) {
			return badRequest("reasoning."+m.name, "unsupported_parameter", "Unsupported parameter: 'reasoning."+m.name+"' is not supported with this model.")
		}
		q.summary = q.summary || m.v.given() && m.name != "effort"
	}
	return nil
}

func (q *responseRequest) include(v value) *apiError {
	f := v.get("include")
	for i, s := range f.arr {
		if !slices.Contains(responseIncludes, s.s) {
			return unsupportedValue(fmt.Sprintf("include[%d]", i), s.s, responseIncludes...)
		}
		switch s.s {
		case "reasoning.encrypted_content":
			if !isReasoning(q.model) {
				return badRequest("include", "", "Encrypted content is not supported with this model.")
			}
			q.encrypted = true
		case "message.output_text.logprobs":
			q.logprobs = true
		}
	}
	return nil
}

func (q *responseRequest) rest(v value) *apiError {
	q.stream, q.tier = v.get("stream").yes, "default"
	if v.get("stream_options").given() && !q.stream {
		return badRequest("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	return nil
}

func (q *responseRequest) toolFields(v value) *apiError {
	tools := v.get("tools")
	if tools.given() && tools.kind != array {
		return wrongType("tools", "an array of objects", tools.kind)
	}
	for i, t := range tools.arr {
		at := fmt.Sprintf("tools[%d]", i)
		switch typ := t.get("type").s; typ {
		case "function", "custom":
			if t.get("function").given() {
				return missingParam(at + ".name")
			}
			if e := checkName(t.get("name"), at+".name"); e != nil {
				return e
			}
			p := t.get("parameters")
			if typ == "custom" {
				q.custom[t.get("name").s] = true
				p = value{}
			} else if p.kind == absent {
				return missingParam(at + ".parameters")
			}
			if s := t.get("strict"); s.given() && s.kind != boolean {
				return wrongType(at+".strict", "a boolean", s.kind)
			} else if s.yes && typ == "function" {
				if e := checkStrictSchema(p, t.get("name").s); e != nil {
					return badRequest(at+".parameters", "invalid_function_parameters", strings.Replace(e.message, "response_format", "function", 1))
				}
			}
			q.tools = append(q.tools, tool{t.get("name").s, p})
			q.prompt += tokensOf(t.s)
		case "":
			return missingParam(at + ".type")
		case "web_search", "web_search_preview", "file_search", "code_interpreter", "mcp", "image_generation", "computer_use_preview", "local_shell", "shell", "apply_patch", "tool_search":
		case "namespace": // tools that the model finds by a search; it is not made to call them here
			if e := checkName(t.get("name"), at+".name"); e != nil {
				return e
			}
		default:
			return unsupportedValue(at+".type", typ, "function", "custom", "web_search", "file_search", "code_interpreter", "mcp", "image_generation")
		}
	}
	if p := v.get("parallel_tool_calls"); p.given() {
		q.parallel = p.yes
	}
	return q.choose(v.get("tool_choice"))
}

func (q *responseRequest) choose(c value) *apiError {
	switch {
	case !c.given():
		return nil
	case c.kind == text:
		switch c.s {
		case "none":
			q.choice = chooseNone
		case "auto":
		case "required":
			q.choice = chooseAny
		default:
			return unsupportedValue("tool_choice", c.s, "none", "auto", "required")
		}
		return nil
	}
	if typ := c.get("type").s; typ == "function" || typ == "custom" {
		if c.get("name").kind != text {
			return missingParam("tool_choice.name")
		}
		q.choice, q.named = chooseNamed, c.get("name").s
		if !slices.ContainsFunc(q.tools, func(t tool) bool { return t.name == q.named }) {
			return badRequest("tool_choice", "", "Tool choice 'function' not found in 'tools' parameter.")
		}
	}
	return nil
}

func (q *responseRequest) format(v value) *apiError {
	f := v.at("text.format")
	if !f.given() {
		return nil
	}
	switch typ := f.get("type").s; typ {
	case "text":
	case "json_object":
		if !strings.Contains(strings.ToLower(v.get("input").s+v.get("instructions").s), "json") {
			return badRequest("input", "", "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.")
		}
		q.anyJSON = true
	case "json_schema":
		if e := checkName(f.get("name"), "text.format.name"); e != nil {
			return e
		}
		q.schema = f.get("schema")
		if q.schema.kind != object {
			return missingParam("text.format.schema")
		}
		if f.get("strict").yes {
			return checkStrictSchema(q.schema, f.get("name").s)
		}
	default:
		return unsupportedValue("text.format.type", typ, "json_object", "json_schema", "text")
	}
	return nil
}
