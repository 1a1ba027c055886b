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
}

// checkResponse reads a request of POST /responses.
func checkResponse(x *exchange, v value) (*responseRequest, *apiError) {
	if e := takeModel(x, v); e != nil {
		return nil, e
	}
	q := &responseRequest{job: job{model: x.model, st: &x.st, parallel: true, prompt: 3}, custom: map[string]bool{}, stream: v.get("stream").yes}
	for _, check := range []func() *apiError{
		func() *apiError { return openAIError(bodies()["response"].check(v, "")) },
		func() *apiError { return checkMetadata(v) },
		func() *apiError { return remembered(x, v) },
		func() *apiError { return q.state(v) },
		func() *apiError { return q.input(v) },
		func() *apiError { return steerBy(&x.st, q.lastUser) },
		func() *apiError { return q.reasoning(v) },
		func() *apiError { return q.toolFields(v) },
		func() *apiError { return q.format(v) },
	} {
		if e := check(); e != nil {
			return nil, e
		}
	}
	return q, nil
}

// state refuses saved prompts, of which there are none here, and what needs another field.
func (q *responseRequest) state(v value) *apiError {
	switch p, store := v.get("prompt"), v.get("store"); {
	case p.given():
		return &apiError{status: http.StatusNotFound, param: "prompt", code: "prompt_not_found", message: "Prompt with id '" + p.get("id").s + "' not found."}
	case v.get("background").yes && store.kind == boolean && !store.yes:
		return badRequest("background", "", "Background mode requires 'store' to be true.")
	case v.get("stream_options").given() && !q.stream:
		return badRequest("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
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

// reasoning reads limits, and what only reasoning models accept or refuse.
func (q *responseRequest) reasoning(v value) *apiError {
	q.maxTokens, _ = v.get("max_output_tokens").integer()
	include := v.get("include").s
	q.logprobs, q.encrypted = strings.Contains(include, "message.output_text.logprobs"), strings.Contains(include, "reasoning.encrypted_content")
	for _, m := range v.get("reasoning").obj {
		q.summary = q.summary || m.v.given() && m.name != "effort"
	}
	if isReasoning(q.model) {
		if q.st.reasoning == never {
			q.st.reasoning = 16
		}
		for _, name := range samplingFields[:2] {
			if v.get(name).given() {
				return badRequest(name, "unsupported_parameter", "Unsupported parameter: '"+name+"' is not supported with this model.")
			}
		}
		return nil
	}
	if v.at("reasoning.effort").given() || q.summary || q.encrypted {
		return badRequest("reasoning.effort", "unsupported_parameter", "Unsupported parameter: 'reasoning.effort' is not supported with this model.")
	}
	return nil
}

func (q *responseRequest) toolFields(v value) *apiError {
	for i, t := range v.get("tools").arr {
		at, name, p := fmt.Sprintf("tools[%d]", i), t.get("name").s, t.get("parameters")
		switch t.get("type").s {
		case "custom":
			q.custom[name], p = true, value{}
		case "function":
			if p.kind == absent {
				return missingParam(at + ".parameters")
			}
			if e := checkStrictSchema(p, name); e != nil && t.get("strict").yes {
				return badRequest(at+".parameters", "invalid_function_parameters", strings.Replace(e.message, "response_format", "function", 1))
			}
		default:
			continue // tools that the model is not made to call here
		}
		q.tools = append(q.tools, tool{name, p})
		q.prompt += tokensOf(t.s)
	}
	if p := v.get("parallel_tool_calls"); p.given() {
		q.parallel = p.yes
	}
	c := v.get("tool_choice")
	if typ := c.get("type").s; typ == "function" || typ == "custom" {
		if q.choice, q.named = chooseNamed, c.get("name").s; !q.has(q.named) {
			return badRequest("tool_choice", "", "Tool choice 'function' not found in 'tools' parameter.")
		}
	}
	if c.kind == text {
		var known bool
		if q.choice, known = map[string]choiceMode{"none": chooseNone, "auto": chooseAuto, "required": chooseAny}[c.s]; !known {
			return unsupportedValue("tool_choice", c.s, "none", "auto", "required")
		}
	}
	return nil
}

func (q *responseRequest) format(v value) *apiError {
	f := v.at("text.format")
	switch f.get("type").s {
	case "json_object":
		if !strings.Contains(strings.ToLower(v.get("input").s+v.get("instructions").s), "json") {
			return badRequest("input", "", "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.")
		}
		q.anyJSON = true
	case "json_schema":
		if q.schema = f.get("schema"); f.get("strict").yes {
			return checkStrictSchema(q.schema, f.get("name").s)
		}
	}
	return nil
}

// signReasoning is what the signature of encrypted reasoning covers.
const signReasoning = "reasoning:"

// input reads the conversation, and checks that each call has its output and each output
// its call.
func (q *responseRequest) input(v value) *apiError {
	in := v.get("input")
	q.seed = seedOf(in.s)
	q.prompt += tokensOf(v.get("instructions").s)
	if in.kind == text {
		q.lastUser = in.s
		q.prompt += 4 + tokensOf(in.s)
	}
	var open []string
	known := map[string]bool{}
	for i, item := range in.arr {
		at, id := fmt.Sprintf("input[%d]", i), item.get("call_id").s
		q.prompt += 4
		q.afterTool = false
		switch item.get("type").s {
		case "", "message":
			q.prompt += partTokens(item.get("content"))
			if item.get("role").s == "user" {
				q.lastUser, q.toolText = responseText(item.get("content")), ""
			}
		case "function_call", "custom_tool_call":
			if known[id] {
				return badRequest(at+".call_id", "", "Duplicate call_id '"+id+"' in input.")
			}
			known[id] = true
			open = append(open, id)
			q.prompt += tokensOf(item.get("arguments").s + item.get("input").s)
		case "function_call_output", "custom_tool_call_output":
			if !known[id] {
				return badRequest("input", "", "No tool call found for function call output with call_id "+id+".")
			}
			open = slices.DeleteFunc(open, func(o string) bool { return o == id })
			q.prompt += partTokens(item.get("output"))
			q.afterTool, q.toolText = true, strings.TrimSpace(q.toolText+" "+responseText(item.get("output")))
		default: // reasoning that this provider made, or a reference
			enc := item.get("encrypted_content")
			if !enc.given() {
				return &apiError{status: http.StatusNotFound, param: "input", message: "Item with id '" + item.get("id").s + "' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."}
			}
			if !unsealed(signReasoning, enc.s) {
				return badRequest("", "invalid_encrypted_content", "The encrypted content "+clip(enc.s, 12)+"... could not be verified. Reason: Encrypted content could not be decrypted or parsed.")
			}
		}
	}
	if len(open) > 0 {
		return badRequest("input", "", "No tool output found for function call "+open[0]+".")
	}
	return nil
}

// responseText joins the texts of a content.
func responseText(c value) string {
	s := ""
	if c.kind == text {
		s = c.s
	}
	for _, p := range c.arr {
		s += p.get("text").s + p.get("refusal").s
	}
	return s
}
