package mockprovider

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// responseRequest is a request of POST /responses that has been found good.
type responseRequest struct {
	job
	stream    bool
	encrypted bool // include names reasoning.encrypted_content
	logprobs  bool
	summary   bool
	custom    map[string]bool // tools of free text
	tier      string
}

var responseFields = strings.Fields(`background conversation context_management include input instructions max_output_tokens max_tool_calls
	metadata model parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_retention reasoning safety_identifier
	service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user`)

// movedFields are members of chat completions that go by another name here.
var movedFields = map[string]string{"messages": "input", "max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens", "response_format": "text.format", "reasoning_effort": "reasoning.effort"}

var responseBounds = []bound{
	{"temperature", 0, 2, false}, {"top_p", 0, 1, false}, {"max_output_tokens", 16, 1 << 31, true}, {"top_logprobs", 0, 20, true}, {"max_tool_calls", 1, 1 << 31, true},
}

var responseIncludes = strings.Fields(`file_search_call.results web_search_call.results web_search_call.action.sources message.input_image.image_url
	computer_call_output.output.image_url code_interpreter_call.outputs reasoning.encrypted_content message.output_text.logprobs`)

// checkResponse reads a request of POST /responses.
func (x *exchange) checkResponse(v value) (*responseRequest, *apiError) {
	if e := x.takeModel(v); e != nil {
		return nil, e
	}
	q := &responseRequest{job: job{model: x.model, st: &x.st, parallel: true, prompt: 3}, custom: map[string]bool{}}
	for _, check := range []func() *apiError{
		func() *apiError { return checkResponseFields(v) },
		func() *apiError { return checkBounds(v, responseBounds) },
		func() *apiError {
			return checkKinds(v, boolean, "stream", "store", "parallel_tool_calls", "background")
		},
		func() *apiError {
			return checkKinds(v, text, "user", "instructions", "service_tier", "truncation", "previous_response_id", "prompt_cache_key", "safety_identifier")
		},
		func() *apiError {
			return checkKinds(v, object, "stream_options", "metadata", "reasoning", "text", "prompt")
		},
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

// state refuses what refers to something kept: this provider keeps nothing.
func (q *responseRequest) state(v value) *apiError {
	if id := v.get("previous_response_id"); id.given() {
		return badRequest("previous_response_id", "previous_response_not_found", "Previous response with id '"+id.s+"' not found.")
	}
	if c := v.get("conversation"); c.given() {
		return &apiError{status: http.StatusNotFound, message: "Conversation with id '" + c.s + c.get("id").s + "' not found."}
	}
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

// input reads the conversation: that each call has its output and each output
// its call.
func (q *responseRequest) input(v value) *apiError {
	q.prompt += tokensOf(v.get("instructions").s)
	in := v.get("input")
	switch in.kind {
	case text:
		q.seed, q.lastUser = seedOf(in.s), in.s
		q.prompt += 4 + tokensOf(in.s)
		return nil
	case array:
	case absent, null:
		return missingParam("input")
	default:
		return wrongType("input", "a string or an array of objects", in.kind)
	}
	if len(in.arr) == 0 {
		return badRequest("input", "empty_array", "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	q.seed = seedOf(in.s)
	var open []string
	known := map[string]bool{}
	for i, item := range in.arr {
		at := fmt.Sprintf("input[%d]", i)
		if item.kind != object {
			return wrongType(at, "an object", item.kind)
		}
		q.prompt += 4
		q.afterTool = false
		typ := item.get("type").s
		if typ == "" && item.get("role").given() {
			typ = "message"
		}
		var e *apiError
		switch typ {
		case "message":
			e = q.message(item, at)
		case "function_call", "custom_tool_call":
			var id string
			if id, e = q.call(item, typ, at); e == nil && known[id] {
				e = badRequest(at+".call_id", "", "Duplicate call_id '"+id+"' in input.")
			}
			known[id] = true
			open = append(open, id)
		case "function_call_output", "custom_tool_call_output":
			var id string
			if id, e = q.output(item, at); e == nil && !known[id] {
				e = badRequest("input", "", "No tool call found for function call output with call_id "+id+".")
			}
			open = slices.DeleteFunc(open, func(o string) bool { return o == id })
		case "reasoning":
			e = checkReasoningItem(item, at)
		case "item_reference":
			e = &apiError{status: http.StatusNotFound, param: "input", message: "Item with id '" + item.get("id").s + "' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."}
		default:
			e = unsupportedValue(at+".type", typ, "message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning", "item_reference")
		}
		if e != nil {
			return e
		}
	}
	if len(open) > 0 {
		return badRequest("input", "", "No tool output found for function call "+open[0]+".")
	}
	return nil
}

// only what an item of a type may hold.
func checkItem(item value, at, prefix string, allowed ...string) *apiError {
	for _, m := range item.obj {
		if m.name != "type" && m.name != "id" && m.name != "status" && !slices.Contains(allowed, m.name) {
			return badRequest(at+"."+m.name, "unknown_parameter", "Unknown parameter: '"+at+"."+m.name+"'.")
		}
	}
	if id := item.get("id"); id.given() && !strings.HasPrefix(id.s, prefix) {
		return badRequest(at+".id", "invalid_value", "Invalid '"+at+".id': '"+id.s+"'. Expected an ID that begins with '"+prefix+"'.")
	}
	return nil
}

func (q *responseRequest) message(m value, at string) *apiError {
	if e := checkItem(m, at, "msg", "role", "content", "phase"); e != nil {
		return e
	}
	role := m.get("role")
	var parts []string
	switch role.s {
	case "user", "system", "developer":
		parts = []string{"input_text", "input_image", "input_file"}
	case "assistant":
		parts = []string{"output_text", "refusal"}
	default:
		if !role.given() {
			return missingParam(at + ".role")
		}
		return unsupportedValue(at+".role", role.s, "assistant", "system", "developer", "user")
	}
	c := m.get("content")
	said := ""
	switch c.kind {
	case text:
		said = c.s
		q.prompt += tokensOf(said)
	case array:
		var e *apiError
		if said, e = q.parts(c.arr, parts, at+".content"); e != nil {
			return e
		}
	case absent, null:
		return missingParam(at + ".content")
	default:
		return wrongType(at+".content", "a string or an array of objects", c.kind)
	}
	if role.s == "user" {
		q.lastUser, q.toolText = said, ""
	}
	return nil
}

func (q *responseRequest) parts(parts []value, allowed []string, at string) (string, *apiError) {
	var b strings.Builder
	for i, p := range parts {
		at := fmt.Sprintf("%s[%d]", at, i)
		typ := p.get("type").s
		if !slices.Contains(allowed, typ) {
			return "", unsupportedValue(at+".type", typ, allowed...)
		}
		switch typ {
		case "input_text", "output_text", "refusal":
			name := "text"
			if typ == "refusal" {
				name = typ
			}
			if p.get(name).kind != text {
				return "", missingParam(at + "." + name)
			}
			b.WriteString(p.get(name).s)
			q.prompt += tokensOf(p.get(name).s)
		case "input_image":
			q.prompt += imageTokens
			url := p.get("image_url")
			if url.kind == object {
				return "", wrongType(at+".image_url", "an image URL", url.kind)
			}
			if d := p.get("detail"); d.given() && !slices.Contains([]string{"low", "high", "auto", "original"}, d.s) {
				return "", unsupportedValue(at+".detail", d.s, "low", "high", "auto")
			}
			if !p.get("file_id").given() {
				if e := checkImageURL(url.s, at+".image_url"); e != nil {
					return "", e
				}
			}
		case "input_file":
			q.prompt += imageTokens
			if d := p.get("file_data"); d.given() && (!strings.HasPrefix(d.s, "data:") || !p.get("filename").given()) {
				return "", badRequest(at+".file_data", "invalid_value", "Invalid '"+at+".file_data'. Expected a base64-encoded data URL with a file name.")
			} else if !d.given() && !p.get("file_id").given() && !p.get("file_url").given() {
				return "", missingParam(at + ".file_id")
			}
		}
	}
	return b.String(), nil
}

func (q *responseRequest) call(item value, typ, at string) (string, *apiError) {
	prefix, args := "fc", "arguments"
	if typ == "custom_tool_call" {
		prefix, args = "ctc", "input"
	}
	if e := checkItem(item, at, prefix, "call_id", "name", args); e != nil {
		return "", e
	}
	for _, name := range []string{"call_id", "name", args} {
		if f := item.get(name); f.kind != text || name != args && f.s == "" {
			return "", missingParam(at + "." + name)
		}
	}
	if len(item.get("call_id").s) > 64 {
		return "", badRequest(at+".call_id", "string_above_max_length", "Invalid '"+at+".call_id': string too long. Expected a string with maximum length 64.")
	}
	q.prompt += tokensOf(item.get(args).s)
	return item.get("call_id").s, nil
}

func (q *responseRequest) output(item value, at string) (string, *apiError) {
	if e := checkItem(item, at, "", "call_id", "output"); e != nil {
		return "", e
	}
	id, out := item.get("call_id"), item.get("output")
	if id.kind != text {
		return "", missingParam(at + ".call_id")
	}
	said := out.s
	switch out.kind {
	case text:
		q.prompt += tokensOf(said)
	case array:
		var e *apiError
		if said, e = q.parts(out.arr, []string{"input_text", "input_image", "input_file"}, at+".output"); e != nil {
			return "", e
		}
	default:
		return "", missingParam(at + ".output")
	}
	q.afterTool, q.toolText = true, strings.TrimSpace(q.toolText+" "+said)
	return id.s, nil
}

// signReasoning is what an encrypted content vouches for.
const signReasoning = "reasoning:"

// checkReasoningItem refuses reasoning that this provider did not make.
func checkReasoningItem(item value, at string) *apiError {
	if e := checkItem(item, at, "rs", "summary", "content", "encrypted_content"); e != nil {
		return e
	}
	if item.get("summary").kind != array {
		return missingParam(at + ".summary")
	}
	enc := item.get("encrypted_content")
	if !enc.given() {
		return &apiError{status: http.StatusNotFound, param: "input", message: "Item with id '" + item.get("id").s + "' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."}
	}
	if !unsealed(signReasoning, enc.s) {
		return badRequest("", "invalid_encrypted_content", "The encrypted content "+clip(enc.s, 12)+"... could not be verified. Reason: Encrypted content could not be decrypted or parsed.")
	}
	return nil
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
	r := v.get("reasoning")
	for _, m := range r.obj {
		if m.name != "effort" && m.name != "summary" && m.name != "generate_summary" {
			return badRequest("reasoning."+m.name, "unknown_parameter", "Unknown parameter: 'reasoning."+m.name+"'.")
		}
		if !m.v.given() {
			continue
		}
		if !isReasoning(q.model) {
			return badRequest("reasoning."+m.name, "unsupported_parameter", "Unsupported parameter: 'reasoning."+m.name+"' is not supported with this model.")
		}
		allowed := []string{"none", "minimal", "low", "medium", "high", "xhigh"}
		if m.name != "effort" {
			allowed = []string{"auto", "concise", "detailed"}
			q.summary = true
		}
		if !slices.Contains(allowed, m.v.s) {
			return unsupportedValue("reasoning."+m.name, m.v.s, allowed...)
		}
	}
	return nil
}

func (q *responseRequest) include(v value) *apiError {
	f := v.get("include")
	if f.given() && f.kind != array {
		return wrongType("include", "an array of strings", f.kind)
	}
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
		case "web_search", "web_search_preview", "file_search", "code_interpreter", "mcp", "image_generation", "computer_use_preview", "local_shell":
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
	t := v.get("text")
	for _, m := range t.obj {
		if m.name != "format" && m.name != "verbosity" {
			return badRequest("text."+m.name, "unknown_parameter", "Unknown parameter: 'text."+m.name+"'.")
		}
	}
	f := t.get("format")
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

func (q *responseRequest) rest(v value) *apiError {
	q.stream = v.get("stream").yes
	q.tier = "default"
	o := v.get("stream_options")
	if o.given() && !q.stream {
		return badRequest("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	for _, m := range o.obj {
		if m.name != "include_obfuscation" {
			return badRequest("stream_options."+m.name, "unknown_parameter", "Unknown parameter: 'stream_options."+m.name+"'.")
		}
	}
	if t := v.get("truncation"); t.given() && t.s != "auto" && t.s != "disabled" {
		return unsupportedValue("truncation", t.s, "auto", "disabled")
	}
	meta := v.get("metadata")
	if len(meta.obj) > 16 {
		return badRequest("metadata", "object_above_max_properties", "Invalid 'metadata': too many properties. Expected an object with at most 16 properties.")
	}
	for _, m := range meta.obj {
		if m.v.kind != text {
			return wrongType("metadata."+m.name, "a string", m.v.kind)
		}
	}
	return nil
}
