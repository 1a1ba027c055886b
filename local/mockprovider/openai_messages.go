package mockprovider

import (
	"fmt"
	"strings"
)

// chatRequest is a valid chat completion request.
type chatRequest struct {
	job
	stream, includeUsage bool
	n                    int
	logprobs             bool
	topLogprobs          int
	legacy               bool // functions instead of tools
}

const imageTokens = 85

// messages reads the conversation: roles, contents, and that each tool call has its response
// and each response its call.
func (q *chatRequest) messages(all []value) *apiError {
	var open []string // calls that wait for a response
	q.prompt = 3
	for i, m := range all {
		at := fmt.Sprintf("messages[%d]", i)
		if m.kind != object {
			return badRequest(at, "invalid_type", "Invalid type for '"+at+"': expected an object, but got "+m.kind.String()+" instead.")
		}
		role := m.get("role")
		if role.kind == absent {
			return badRequest(at+".role", "missing_required_parameter", "Missing required parameter: '"+at+".role'.")
		}
		if role.s != "tool" && len(open) > 0 {
			return missingResults(open)
		}
		if n := m.get("name"); n.given() && (n.kind != text || strings.ContainsAny(n.s, " <|\\/>")) {
			return badRequest(at+".name", "invalid_value", "Invalid '"+at+".name': string does not match pattern. Expected a string that matches the pattern '^[^\\s<|\\\\/>]+$'.")
		}
		s, e := q.message(m, role.s, at)
		if e != nil {
			return e
		}
		q.prompt += 4
		q.afterTool = false
		switch role.s {
		case "user":
			q.lastUser, q.toolText = s, ""
		case "assistant":
			if open, e = q.calls(m, at); e != nil {
				return e
			}
		case "tool":
			id := m.get("tool_call_id")
			if id.kind != text {
				return badRequest(at+".tool_call_id", "missing_required_parameter", "Missing required parameter: '"+at+".tool_call_id'.")
			}
			was := len(open)
			for k, o := range open {
				if o == id.s {
					open = append(open[:k:k], open[k+1:]...)
					break
				}
			}
			if len(open) == was {
				if i > 0 && (all[i-1].get("role").s == "tool" || all[i-1].get("tool_calls").kind == array) {
					return badRequest(at+".tool_call_id", "", "Invalid parameter: 'tool_call_id' of '"+id.s+"' not found in 'tool_calls' of previous message.")
				}
				return badRequest(fmt.Sprintf("messages.[%d].role", i), "", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
			}
			q.afterTool, q.toolText = true, strings.TrimSpace(q.toolText+" "+s)
		case "function":
			q.afterTool, q.toolText = true, s
		}
	}
	if len(open) > 0 {
		return missingResults(open)
	}
	return nil
}

func missingResults(ids []string) *apiError {
	return badRequest("messages", "", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: "+strings.Join(ids, ", "))
}

// message checks the content of one message and returns its text.
func (q *chatRequest) message(m value, role, at string) (string, *apiError) {
	parts := ""
	mayBeNull := false
	switch role {
	case "system", "developer", "tool":
		parts = "text"
	case "user":
		parts = "text image_url input_audio file"
	case "assistant":
		parts = "text refusal"
		mayBeNull = m.get("tool_calls").given() || m.get("function_call").given() || m.get("audio").given() || m.get("refusal").given()
	case "function":
		mayBeNull = true
		if m.get("name").kind != text {
			return "", badRequest(at+".name", "missing_required_parameter", "Missing required parameter: '"+at+".name'.")
		}
	default:
		return "", badRequest(at+".role", "invalid_value", "Invalid value: '"+role+"'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.")
	}
	c := m.get("content")
	switch {
	case c.kind == text:
		q.prompt += tokensOf(c.s)
		return c.s, nil
	case c.kind == array && parts != "":
		return q.parts(c.arr, parts, at+".content")
	case !c.given() && mayBeNull:
		return "", nil
	case c.kind == absent:
		return "", badRequest(at+".content", "missing_required_parameter", "Missing required parameter: '"+at+".content'.")
	}
	return "", badRequest(at+".content", "invalid_type", "Invalid value for 'content': expected a string, got "+c.kind.String()+".")
}

func (q *chatRequest) parts(parts []value, allowed, at string) (string, *apiError) {
	if len(parts) == 0 {
		return "", badRequest(at, "empty_array", "Invalid '"+at+"': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	var b strings.Builder
	for i, p := range parts {
		at := fmt.Sprintf("%s[%d]", at, i)
		typ := p.get("type").s
		if typ == "" || !strings.Contains(" "+allowed+" ", " "+typ+" ") {
			return "", badRequest(at+".type", "invalid_value", "Invalid value: '"+typ+"'. Supported values are: '"+strings.ReplaceAll(allowed, " ", "', '")+"'.")
		}
		missing := func(name string) *apiError {
			return badRequest(at+"."+name, "missing_required_parameter", "Missing required parameter: '"+at+"."+name+"'.")
		}
		switch typ {
		case "text", "refusal":
			s := p.get(typ)
			if s.kind != text {
				return "", missing(typ)
			}
			b.WriteString(s.s)
			q.prompt += tokensOf(s.s)
		case "image_url":
			u := p.get("image_url").get("url")
			if u.kind != text {
				return "", missing("image_url")
			}
			if e := checkImageURL(u.s, at+".image_url"); e != nil {
				return "", e
			}
			q.prompt += imageTokens
		case "input_audio":
			if a := p.get("input_audio"); a.get("data").kind != text || a.get("format").s != "wav" && a.get("format").s != "mp3" {
				return "", missing("input_audio")
			}
			q.prompt += imageTokens
		case "file":
			if f := p.get("file"); f.get("file_id").kind != text && f.get("file_data").kind != text {
				return "", missing("file")
			}
			q.prompt += imageTokens
		}
	}
	return b.String(), nil
}

// calls reads the tool calls of an assistant message and returns their ids.
func (q *chatRequest) calls(m value, at string) ([]string, *apiError) {
	list := m.get("tool_calls")
	if !list.given() {
		return nil, nil
	}
	if list.kind != array || len(list.arr) == 0 {
		return nil, badRequest(at+".tool_calls", "empty_array", "Invalid '"+at+".tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	var ids []string
	for k, c := range list.arr {
		at := fmt.Sprintf("%s.tool_calls[%d]", at, k)
		f := c.get("function")
		for _, need := range []struct {
			name string
			v    value
		}{{"id", c.get("id")}, {"type", c.get("type")}, {"function.name", f.get("name")}, {"function.arguments", f.get("arguments")}} {
			if need.v.kind != text {
				return nil, badRequest(at+"."+need.name, "missing_required_parameter", "Missing required parameter: '"+at+"."+need.name+"'.")
			}
		}
		for _, id := range ids {
			if id == c.get("id").s {
				return nil, badRequest("messages", "", "Duplicate value for 'tool_call_id' of '"+id+"' in the same message.")
			}
		}
		ids = append(ids, c.get("id").s)
		q.prompt += tokensOf(f.get("name").s) + tokensOf(f.get("arguments").s)
	}
	return ids, nil
}

func checkName(name value, param string) *apiError {
	if name.kind != text {
		return badRequest(param, "missing_required_parameter", "Missing required parameter: '"+param+"'.")
	}
	if !isName(name.s, 64) {
		return badRequest(param, "invalid_value", "Invalid '"+param+"': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.")
	}
	return nil
}

func isName(s string, most int) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= most
}

func (q *chatRequest) toolFields(v value) *apiError {
	list, choice := v.get("tools"), v.get("tool_choice")
	if !list.given() {
		if choice.given() && choice.s != "none" {
			return badRequest("tool_choice", "", "'tool_choice' is only allowed when 'tools' are specified.")
		}
		if v.get("parallel_tool_calls").given() {
			return badRequest("parallel_tool_calls", "", "'parallel_tool_calls' is only allowed when 'tools' are specified.")
		}
		return nil
	}
	if list.kind != array || len(list.arr) == 0 {
		return badRequest("tools", "empty_array", "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	if len(list.arr) > 128 {
		return badRequest("tools", "array_above_max_length", fmt.Sprintf("Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length %d instead.", len(list.arr)))
	}
	for i, t := range list.arr {
		at := fmt.Sprintf("tools[%d]", i)
		if t.get("type").s != "function" {
			return badRequest(at+".type", "invalid_value", "Invalid value: '"+t.get("type").s+"'. Supported values are: 'function' and 'custom'.")
		}
		if e := q.function(t.get("function"), at+".function"); e != nil {
			return e
		}
	}
	q.prompt += tokensOf(list.s)
	if p := v.get("parallel_tool_calls"); p.given() {
		q.parallel = p.yes
	}
	return q.toolChoice(choice, "tool_choice", choice.get("function").get("name"))
}

func (q *chatRequest) function(f value, at string) *apiError {
	if f.kind != object {
		return badRequest(at, "missing_required_parameter", "Missing required parameter: '"+at+"'.")
	}
	if e := checkName(f.get("name"), at+".name"); e != nil {
		return e
	}
	p := f.get("parameters")
	if p.given() && (p.kind != object || len(p.obj) > 0 && p.get("type").s != "object") {
		return badRequest(at+".parameters", "invalid_function_parameters", "Invalid schema for function '"+f.get("name").s+"': schema must be a JSON Schema of 'type: \"object\"'.")
	}
	q.tools = append(q.tools, tool{f.get("name").s, p})
	return nil
}

func (q *chatRequest) toolChoice(choice value, param string, named value) *apiError {
	switch {
	case !choice.given() || choice.s == "auto" && choice.kind == text:
	case choice.kind == text && choice.s == "none":
		q.choice = chooseNone
	case choice.kind == text && choice.s == "required" && param == "tool_choice":
		q.choice = chooseAny
	case choice.kind == object && named.kind == text:
		q.choice, q.named = chooseNamed, named.s
		for _, t := range q.tools {
			if t.name == named.s {
				return nil
			}
		}
		return badRequest(param, "", "Invalid value for '"+param+"': no function named '"+named.s+"' was specified in the 'tools' parameter.")
	default:
		return badRequest(param, "invalid_value", "Invalid value for '"+param+"'. Supported values are: 'none', 'auto', and 'required'.")
	}
	return nil
}

// functionFields reads the old format of tools.
func (q *chatRequest) functionFields(v value) *apiError {
	list, choice := v.get("functions"), v.get("function_call")
	if !list.given() {
		if choice.given() {
			return badRequest("function_call", "", "'function_call' is only allowed when 'functions' are specified.")
		}
		return nil
	}
	if v.get("tools").given() {
		return badRequest("functions", "", "'functions' and 'tools' may not be given together.")
	}
	if list.kind != array || len(list.arr) == 0 || len(list.arr) > 128 {
		return badRequest("functions", "invalid_value", "Invalid 'functions': expected an array with 1 to 128 items.")
	}
	for i, f := range list.arr {
		if e := q.function(f, fmt.Sprintf("functions[%d]", i)); e != nil {
			return e
		}
	}
	q.legacy, q.parallel = true, false
	q.prompt += tokensOf(list.s)
	return q.toolChoice(choice, "function_call", choice.get("name"))
}
