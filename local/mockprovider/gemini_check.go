package mockprovider

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// geminiRequest is a generateContent request that has been found good.
type geminiRequest struct {
	job
	vertex   bool
	thoughts bool // are shown
	n        int
	logprobs bool
	top      int
}

// generation is what a model of Gemini takes.
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

// known refuses members that an object of the API does not have.
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
func (x *exchange) checkGemini(v value, vertex bool) (*geminiRequest, *apiError) {
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

// steer reads the directives of the last text of the user.
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

var partData = []string{"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"}

// contents checks the turns: results of functions follow their calls at once, as
// many as there were, and calls of this turn carry their signature.
func (q *geminiRequest) contents(list value) *apiError {
	if list.kind != array || len(list.arr) == 0 {
		return invalid("* GenerateContentRequest.contents: contents is not specified")
	}
	var open []string // names of the calls that wait for results
	turn := 0         // where the current turn begins
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

// part checks one part: one kind of data, and a signature that was made for it.
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

// signing is what a signature of a part vouches for: the host and the part.
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

var subsetKeys = strings.Fields("type format title description nullable enum items minItems maxItems properties required minProperties maxProperties minLength maxLength pattern example anyOf propertyOrdering default minimum maximum")

// lowered is a schema with its types in lower case: the API takes both.
func lowered(v value) value {
	out := v
	out.obj = nil
	for _, m := range v.obj {
		if m.name == "type" && m.v.kind == text {
			m.v.s = strings.ToLower(m.v.s)
		} else {
			m.v = lowered(m.v)
		}
		out.obj = append(out.obj, m)
	}
	out.arr = nil
	for _, e := range v.arr {
		out.arr = append(out.arr, lowered(e))
	}
	return out
}

// checkSubset refuses what the subset of JSON schema does not have.
func checkSubset(v value, at string) *apiError {
	if e := known(v, at, subsetKeys...); e != nil {
		return e
	}
	if t := v.get("type"); t.kind != text && v.get("anyOf").kind != array {
		return invalid("Unable to submit request because `%s` schema didn't specify the schema type field.", at)
	}
	if v.get("type").s == "array" && v.get("items").kind != object {
		return invalid("* GenerateContentRequest.%s.items: missing field.", at)
	}
	for _, e := range v.get("enum").arr {
		if e.kind != text {
			return invalid("Invalid value at '%s.enum' (TYPE_STRING), %s", at, e.s)
		}
	}
	for _, p := range v.get("properties").obj {
		if e := checkSubset(p.v, at+".properties["+p.name+"]"); e != nil {
			return e
		}
	}
	for _, r := range v.get("required").arr {
		if v.get("properties").get(r.s).kind == absent {
			return invalid("* GenerateContentRequest.%s.required: property is not defined", at)
		}
	}
	for i, a := range v.get("anyOf").arr {
		if e := checkSubset(a, fmt.Sprintf("%s.any_of[%d]", at, i)); e != nil {
			return e
		}
	}
	if items := v.get("items"); items.kind == object {
		return checkSubset(items, at+".items")
	}
	return nil
}

var functionName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)

func (q *geminiRequest) toolList(v value) *apiError {
	if e := typed(v, "tools", array); e != nil {
		return e
	}
	for i, t := range v.arr {
		at := fmt.Sprintf("tools[%d]", i)
		if e := known(t, at, "functionDeclarations", "googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext", "googleMaps", "computerUse", "fileSearch", "enterpriseWebSearch"); e != nil {
			return e
		}
		for k, f := range t.get("functionDeclarations").arr {
			at := fmt.Sprintf("%s.function_declarations[%d]", at, k)
			if e := known(f, at, "name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema", "behavior"); e != nil {
				return e
			}
			if !functionName.MatchString(f.get("name").s) {
				return invalid("* GenerateContentRequest.%s.name: [FieldViolations] Invalid function name. Must start with a letter or an underscore.", at)
			}
			schema := f.get("parametersJsonSchema")
			if p := lowered(f.get("parameters")); p.kind != absent {
				if schema.kind != absent {
					return invalid("parameters and parameters_json_schema are mutually exclusive.")
				}
				if e := checkSubset(p, at+".parameters"); e != nil {
					return e
				}
				schema = p
			} else if schema.kind != absent && generation(q.model) < 25 {
				return invalid("parameters_json_schema is not supported for this model.")
			}
			q.tools = append(q.tools, tool{f.get("name").s, schema})
		}
	}
	return nil
}

func (q *geminiRequest) toolConfig(v value) *apiError {
	if e := known(v, "tool_config", "functionCallingConfig", "retrievalConfig"); e != nil {
		return e
	}
	c := v.get("functionCallingConfig")
	if e := known(c, "tool_config.function_calling_config", "mode", "allowedFunctionNames"); e != nil {
		return e
	}
	names := c.get("allowedFunctionNames").arr
	switch mode := c.get("mode").s; mode {
	case "", "AUTO", "VALIDATED":
	case "NONE":
		q.choice = chooseNone
	case "ANY":
		q.choice = chooseAny
		if len(names) > 0 {
			q.choice, q.named = chooseNamed, names[0].s
			if !slices.ContainsFunc(q.tools, func(t tool) bool { return t.name == q.named }) {
				return invalid("allowed_function_names contains a function that is not declared: %s", q.named)
			}
		}
	default:
		return invalid("Invalid value at 'tool_config.function_calling_config.mode', %q", mode)
	}
	if len(names) > 0 && c.get("mode").s != "ANY" && c.get("mode").s != "VALIDATED" {
		return invalid("allowed_function_names should be set only when function_calling_config mode is ANY.")
	}
	return nil
}

var configFields = strings.Fields(`temperature topP topK candidateCount maxOutputTokens stopSequences presencePenalty frequencyPenalty seed
	responseLogprobs logprobs responseMimeType responseSchema responseJsonSchema thinkingConfig responseModalities imageConfig speechConfig mediaResolution`)

func (q *geminiRequest) config(v value) *apiError {
	const at = "generation_config"
	if e := known(v, at, configFields...); e != nil {
		return e
	}
	for _, b := range []bound{{"temperature", 0, 2, false}, {"topP", 0, 1, false}, {"topK", 1, 1000, true}, {"candidateCount", 1, 8, true}, {"maxOutputTokens", 1, 1 << 20, true},
		{"presencePenalty", -2, 2, false}, {"frequencyPenalty", -2, 2, false}, {"seed", -1 << 31, 1 << 31, true}, {"logprobs", 0, 20, true}} {
		f := v.get(b.name)
		_, whole := f.integer()
		if f.given() && (f.kind != number || b.integer && !whole || f.float() < b.lo || f.float() > b.hi) {
			return invalid("* GenerateContentRequest.%s.%s: %s must be in the range [%v, %v].", at, b.name, b.name, b.lo, b.hi)
		}
	}
	if n, ok := v.get("candidateCount").integer(); ok {
		q.n = int(n)
	}
	q.maxTokens, _ = v.get("maxOutputTokens").integer()
	stops := v.get("stopSequences").arr
	if len(stops) > 5 {
		return invalid("* GenerateContentRequest.%s.stop_sequences: the number of stop sequences must be at most 5.", at)
	}
	for _, s := range stops {
		q.stops = append(q.stops, s.s)
	}
	q.logprobs = v.get("responseLogprobs").yes
	if n, ok := v.get("logprobs").integer(); ok {
		if q.top = int(n); !q.logprobs {
			return invalid("logprobs requires response_logprobs.")
		}
	}
	mime := v.get("responseMimeType").s
	switch mime {
	case "", "text/plain", "application/json", "text/x.enum":
	default:
		return invalid("* GenerateContentRequest.%s.response_mime_type: allowed mimetypes are `text/plain`, `application/json`, `text/x.enum`.", at)
	}
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
	if e := known(v, "generation_config.thinking_config", "thinkingBudget", "thinkingLevel", "includeThoughts"); e != nil {
		return e
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
