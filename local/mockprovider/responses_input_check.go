package mockprovider

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// input reads the conversation, and checks that each call has its output and each output
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

// checkItem refuses fields that an item of its type may not have.
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
	content := ""
	switch c.kind {
	case text:
		content = c.s
		q.prompt += tokensOf(content)
	case array:
		var e *apiError
		if content, e = q.parts(c.arr, parts, at+".content"); e != nil {
			return e
		}
	case absent, null:
		return missingParam(at + ".content")
	default:
		return wrongType(at+".content", "a string or an array of objects", c.kind)
	}
	if role.s == "user" {
		q.lastUser, q.toolText = content, ""
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
	content := out.s
	switch out.kind {
	case text:
		q.prompt += tokensOf(content)
	case array:
		var e *apiError
		if content, e = q.parts(out.arr, []string{"input_text", "input_image", "input_file"}, at+".output"); e != nil {
			return "", e
		}
	default:
		return "", missingParam(at + ".output")
	}
	q.afterTool, q.toolText = true, strings.TrimSpace(q.toolText+" "+content)
	return id.s, nil
}

// signReasoning is what the signature of encrypted reasoning covers.
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
