package mockprovider

import (
	"fmt"
	"slices"
)

var partData = []string{"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"}

// contents checks the turns: results of functions follow their calls directly and are as
// many, and calls of the current turn have their signature.
func (q *geminiRequest) contents(list value) *apiError {
	if list.kind != array || len(list.arr) == 0 {
		return invalid("* GenerateContentRequest.contents: contents is not specified")
	}
	var open []string // names of the calls without a result so far
	turn := 0         // index where the current turn begins
	for i, c := range list.arr {
		for _, p := range c.get("parts").arr {
			if c.get("role").s != "model" && p.get("functionResponse").kind == absent {
				turn = i
			}
		}
	}
	for i, c := range list.arr {
		at := fmt.Sprintf("contents[%d]", i)
		if e := known(c, at, "role", "parts"); e != nil {
			return e
		}
		role := c.get("role").s
		if role != "user" && role != "model" && c.get("role").kind != absent {
			return invalid("Please use a valid role: user, model.")
		}
		parts := c.get("parts")
		if parts.kind != array || len(parts.arr) == 0 {
			return invalid("* GenerateContentRequest.%s.parts: contents.parts must not be empty.", at)
		}
		q.prompt += 4
		q.afterTool, q.toolText = false, ""
		var calls, results []string
		for k, p := range parts.arr {
			if e := q.part(p, fmt.Sprintf("%s.parts[%d]", at, k), i); e != nil {
				return e
			}
			if f := p.get("functionCall"); f.kind == object {
				if generation(q.model) == 30 && i > turn && len(calls) == 0 && p.get("thoughtSignature").s == "" {
					return invalid("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d.", f.get("name").s, k+1)
				}
				calls = append(calls, f.get("name").s)
			}
			if f := p.get("functionResponse"); f.kind == object {
				results = append(results, f.get("name").s)
				q.afterTool = true
				q.toolText += f.get("response").get("output").s
			}
		}
		switch {
		case len(calls) > 0 && role != "model", len(results) > 0 && role == "model":
			return invalid("Please use a valid role: user, model.")
		case len(results) > 0 && !slices.Equal(results, open), len(open) > 0 && len(results) == 0:
			return invalid("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
		}
		open = calls
	}
	return nil
}

// part checks one part: it has one kind of data, and a signature that was made for it.
func (q *geminiRequest) part(p value, at string, turn int) *apiError {
	if e := known(p, at, append([]string{"thought", "thoughtSignature", "videoMetadata", "mediaResolution"}, partData...)...); e != nil {
		return e
	}
	n := 0
	for _, name := range partData {
		if p.get(name).kind != absent {
			n++
			q.prompt += tokensOf(p.get(name).s)
		}
	}
	if n != 1 {
		return invalid("Unable to submit request because it must have exactly one data field in %s, found %d.", at, n)
	}
	if d := p.get("inlineData"); d.kind != absent {
		if e := known(d, at+".inline_data", "mimeType", "data", "displayName"); e != nil {
			return e
		}
		if d.get("mimeType").s == "" || d.get("data").s == "" {
			return invalid("Unable to submit request because %s.inline_data needs mimeType and data.", at)
		}
	}
	if d := p.get("fileData"); d.kind != absent {
		if e := known(d, at+".file_data", "mimeType", "fileUri", "displayName"); e != nil {
			return e
		}
	}
	if f := p.get("functionCall"); f.kind != absent {
		if e := known(f, at+".function_call", "id", "name", "args"); e != nil {
			return e
		}
		if e := typed(f.get("args"), at+".function_call.args", object); e != nil {
			return e
		}
	}
	if f := p.get("functionResponse"); f.kind != absent {
		if e := known(f, at+".function_response", "id", "name", "response", "parts"); e != nil {
			return e
		}
		if f.get("name").s == "" || f.get("response").kind != object {
			return invalid("Invalid value at '%s.function_response.response' (type.googleapis.com/google.protobuf.Struct)", at)
		}
		if f.get("parts").given() && generation(q.model) < 30 {
			return invalid("Multimodal function response is not supported for this model.")
		}
	}
	if s := p.get("thoughtSignature").s; s != "" && s != "skip_thought_signature_validator" && !unsealed(q.signing(p), s) {
		return invalid("Unable to submit request because Thought signature is not valid.")
	}
	return nil
}

// signing is what the signature of a part covers: the host and the part.
func (q *geminiRequest) signing(p value) string {
	host := "aistudio"
	if q.vertex {
		host = "vertex"
	}
	what := "text"
	if f := p.get("functionCall"); f.kind == object {
		what = "call:" + f.get("name").s
	}
	return "gemini:" + host + ":" + what + ":"
}
