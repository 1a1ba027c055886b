package mockprovider

import (
	"fmt"
	"slices"
	"strings"
)

// geminiRequest is a valid generateContent request.
type geminiRequest struct {
	job
	vertex   bool
	thoughts bool // thoughts are shown
	n        int
	logprobs bool
	top      int
}

// generation are the fields that a model of Gemini accepts.
func generation(model string) int {
	switch {
	case strings.HasPrefix(model, "gemini-1."):
		return 10
	case strings.HasPrefix(model, "gemini-2.0"):
		return 20
	case strings.HasPrefix(model, "gemini-2.5"):
		return 25
	}
	return 30
}

// known refuses fields that the API's object does not have.
func known(v value, at string, names ...string) *apiError {
	for _, m := range v.obj {
		if !slices.Contains(names, m.name) {
			if at != "" {
				at = " at '" + at + "'"
			}
			return invalid("Invalid JSON payload received. Unknown name %q%s: Cannot find field.", m.name, at)
		}
	}
	return nil
}

// typed refuses a value of a wrong type.
func typed(v value, at string, k kind) *apiError {
	if v.given() && v.kind != k {
		return invalid("Invalid value at '%s', expected %s.", at, k)
	}
	return nil
}

var geminiFields = strings.Fields("contents systemInstruction tools toolConfig safetySettings generationConfig cachedContent")

// checkGemini reads a request.
func checkGemini(x *exchange, v value, vertex bool) (*geminiRequest, *apiError) {
	fields := append([]string{}, geminiFields...)
	if vertex {
		fields = append(fields, "labels")
	} else {
		fields = append(fields, "serviceTier", "store", "model")
	}
	if e := known(v, "", fields...); e != nil {
		return nil, e
	}
	q := &geminiRequest{job: job{model: x.model, st: &x.st, parallel: true}, vertex: vertex, n: 1}
	contents := v.get("contents")
	q.seed = seedOf(contents.s)
	q.prompt = tokensOf(v.get("systemInstruction").s) + tokensOf(v.get("tools").s)
	for _, check := range []func() *apiError{
		func() *apiError { return q.steer(contents.arr) },
		func() *apiError { return q.system(v.get("systemInstruction")) },
		func() *apiError { return q.toolList(v.get("tools")) },
		func() *apiError { return q.contents(contents) },
		func() *apiError { return q.config(v.get("generationConfig")) },
		func() *apiError { return q.toolConfig(v.get("toolConfig")) },
	} {
		if e := check(); e != nil {
			return nil, e
		}
	}
	return q, nil
}

// steer reads the directives in the last text of the user.
func (q *geminiRequest) steer(all []value) *apiError {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].get("role").s == "model" {
			continue
		}
		for _, p := range all[i].get("parts").arr {
			q.lastUser += p.get("text").s
		}
		if q.lastUser != "" {
			return steerBy(q.st, q.lastUser)
		}
	}
	return nil
}

func (q *geminiRequest) system(v value) *apiError {
	if e := known(v, "system_instruction", "parts", "role"); e != nil {
		return e
	}
	for i, p := range v.get("parts").arr {
		if p.get("text").kind != text {
			return invalid("Invalid value at 'system_instruction.parts[%d]': only text is supported.", i)
		}
	}
	return nil
}

var configRules = parseRules(`temperature:0..2 topP:0..1 topK:1..1000i candidateCount:1..8i maxOutputTokens:1..1048576i stopSequences<5 presencePenalty:-2..2 frequencyPenalty:-2..2
	seed:-2147483648..2147483648i responseLogprobs logprobs:0..20i responseMimeType=text/plain|application/json|text/x.enum responseSchema responseJsonSchema
	thinkingConfig{thinkingBudget thinkingLevel includeThoughts} responseModalities imageConfig speechConfig mediaResolution`)

// geminiError is the error of Google for a violation; nil for none. in is the path of the object.
func geminiError(v *violation, in string) *apiError {
	switch {
	case v == nil:
		return nil
	case v.what == "unknown":
		in += v.at[:max(0, strings.LastIndexByte(v.at, '.'))]
		return known(value{obj: []member{{v.at[strings.LastIndexByte(v.at, '.')+1:], v.got}}}, in)
	case v.rule.ranged:
		return invalid("* GenerateContentRequest.%s.%s: %s must be in the range [%v, %v].", in, v.at, v.at, v.rule.lo, v.rule.hi)
	case v.what == "long":
		return invalid("* GenerateContentRequest.%s.%s: the number of entries must be at most %d.", in, v.at, v.rule.most)
	case v.what == "value":
		return invalid("* GenerateContentRequest.%s.%s: allowed are `%s`.", in, v.at, strings.Join(v.rule.values, "`, `"))
	}
	return invalid("Invalid value at '%s.%s'.", in, v.at)
}

func (q *geminiRequest) config(v value) *apiError {
	const at = "generation_config"
	if e := geminiError(configRules.check(v, ""), at); e != nil {
		return e
	}
	if n, ok := v.get("candidateCount").integer(); ok {
		q.n = int(n)
	}
	q.maxTokens, _ = v.get("maxOutputTokens").integer()
	for _, s := range v.get("stopSequences").arr {
		q.stops = append(q.stops, s.s)
	}
	q.logprobs = v.get("responseLogprobs").yes
	if n, ok := v.get("logprobs").integer(); ok {
		if q.top = int(n); !q.logprobs {
			return invalid("logprobs requires response_logprobs.")
		}
	}
	mime := v.get("responseMimeType").s
	if mime == "application/json" && len(q.tools) > 0 && generation(q.model) < 30 {
		return invalid("Function calling with a response mime type: 'application/json' is unsupported")
	}
	q.anyJSON = mime == "application/json"
	schema, jsonSchema := lowered(v.get("responseSchema")), v.get("responseJsonSchema")
	if (schema.given() || jsonSchema.given()) && mime == "" {
		return invalid("response_schema requires response_mime_type application/json.")
	}
	if schema.given() {
		if e := checkSubset(schema, at+".response_schema"); e != nil {
			return e
		}
		q.schema = schema
	} else if q.schema = jsonSchema; jsonSchema.given() && generation(q.model) < 25 {
		return invalid("response_json_schema is not supported for this model.")
	}
	return q.thinkingConfig(v.get("thinkingConfig"))
}

func (q *geminiRequest) thinkingConfig(v value) *apiError {
	if !v.given() {
		return nil
	}
	g, budget, level := generation(q.model), v.get("thinkingBudget"), v.get("thinkingLevel").s
	switch {
	case g < 25:
		return invalid("Thinking is not enabled for models/%s", q.model)
	case level != "" && g == 25:
		return invalid("Thinking level is not supported for this model.")
	case level != "" && budget.given():
		return invalid("You can only set only one of thinking budget and thinking level.")
	case level != "" && !slices.Contains([]string{"MINIMAL", "LOW", "MEDIUM", "HIGH"}, level),
		level == "MINIMAL" && strings.Contains(q.model, "pro"):
		return invalid("Thinking level %s is not supported for this model.", level)
	}
	q.effort = 12
	if budget.given() {
		n, ok := budget.integer()
		switch {
		case !ok || n < -1 || n > 32768:
			return invalid("The thinking budget %s is invalid. Please choose a value between 0 and 24576.", budget.s)
		case n == 0 && strings.Contains(q.model, "pro"):
			return invalid("Budget 0 is invalid. This model only works in thinking mode.")
		case n == 0:
			return nil
		case n > 0:
			q.effort = min(n, 24)
		}
	}
	q.thoughts = v.get("includeThoughts").yes
	q.thinking = true
	return nil
}

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
		if e := firstFault(known(f, at+".function_call", "id", "name", "args"), typed(f.get("args"), at+".function_call.args", object)); e != nil {
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
