package mockprovider

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// geminiRequest is a valid generateContent request.
type geminiRequest struct {
	job
	vertex   bool
	thoughts bool // thoughts are shown
	n        int
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

var functionName = named{64, regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]*$`)}

// geminiError is the error of Google for a violation; nil for none.
func geminiError(v *violation) *apiError {
	if v == nil {
		return nil
	}
	switch at := v.at[:max(0, strings.LastIndexByte(v.at, '.'))]; v.what {
	case "unknown":
		return invalid("Invalid JSON payload received. Unknown name %q at '%s': Cannot find field.", v.at[strings.LastIndexByte(v.at, '.')+1:], at)
	case "missing":
		return invalid("* GenerateContentRequest.%s: must not be empty", v.at)
	case "one":
		return invalid("Unable to submit request because it must have exactly one data field in %s.", v.at)
	case "below", "above":
		return invalid("* GenerateContentRequest.%s: must be in the range [%v, %v].", v.at, v.rule.lo, v.rule.hi)
	}
	return invalid("Invalid value at '%s'.", v.at)
}

// checkGemini reads a request.
func checkGemini(x *exchange, v value, vertex bool) (*geminiRequest, *apiError) {
	if e := geminiError(bodies()["gemini"].check(v, "")); e != nil {
		return nil, e
	}
	for _, m := range v.obj {
		if m.name == "labels" && !vertex || vertex && (m.name == "serviceTier" || m.name == "store" || m.name == "model") {
			return nil, invalid("Invalid JSON payload received. Unknown name %q: Cannot find field.", m.name)
		}
	}
	q := &geminiRequest{job: job{model: x.model, st: &x.st, parallel: true}, vertex: vertex, n: 1}
	contents := v.get("contents")
	q.seed = seedOf(contents.s)
	q.prompt = tokensOf(v.get("systemInstruction").s) + tokensOf(v.get("tools").s)
	for _, check := range []func() *apiError{
		func() *apiError { return q.steer(contents.arr) },
		func() *apiError { return q.toolList(v.get("tools")) },
		func() *apiError { return q.contents(contents.arr) },
		func() *apiError { return q.config(v.get("generationConfig")) },
		func() *apiError { return q.thinkingConfig(v.at("generationConfig.thinkingConfig")) },
		func() *apiError { return q.toolConfig(v.at("toolConfig.functionCallingConfig")) },
	} {
		if e := check(); e != nil {
			return nil, e
		}
	}
	return q, nil
}

// steer reads the directives in the last text of the user.
func (q *geminiRequest) steer(all []value) *apiError {
	for _, c := range slices.Backward(all) {
		if s := plainText(c.get("parts")); s != "" && c.get("role").s != "model" {
			q.lastUser = s
			return steerBy(q.st, s)
		}
	}
	return nil
}

func (q *geminiRequest) config(v value) *apiError {
	if n, ok := v.get("candidateCount").integer(); ok {
		q.n = int(n)
	}
	q.maxTokens, _ = v.get("maxOutputTokens").integer()
	for _, s := range v.get("stopSequences").arr {
		q.stops = append(q.stops, s.s)
	}
	mime, schema, jsonSchema := v.get("responseMimeType").s, lowered(v.get("responseSchema")), v.get("responseJsonSchema")
	q.anyJSON, q.schema = mime == "application/json", schema
	switch {
	case v.get("logprobs").given() && !v.get("responseLogprobs").yes:
		return invalid("logprobs requires response_logprobs.")
	case q.anyJSON && len(q.tools) > 0 && generation(q.model) < 30:
		return invalid("Function calling with a response mime type: 'application/json' is unsupported")
	case (schema.given() || jsonSchema.given()) && mime == "":
		return invalid("response_schema requires response_mime_type application/json.")
	case schema.given():
		return checkSubset(schema, "generation_config.response_schema")
	case jsonSchema.given() && generation(q.model) < 25:
		return invalid("response_json_schema is not supported for this model.")
	}
	q.schema = jsonSchema
	return nil
}

func (q *geminiRequest) thinkingConfig(v value) *apiError {
	if !v.given() {
		return nil
	}
	g, level := generation(q.model), v.get("thinkingLevel").s
	n, budget := v.get("thinkingBudget").integer()
	pro := strings.Contains(q.model, "pro")
	switch {
	case g < 25, level != "" && g == 25, level == "MINIMAL" && pro:
		return invalid("Thinking level is not supported for this model.")
	case level != "" && budget:
		return invalid("You can only set only one of thinking budget and thinking level.")
	case budget && n == 0 && pro:
		return invalid("Budget 0 is invalid. This model only works in thinking mode.")
	case budget && n == 0:
		return nil
	}
	if q.effort = 12; n > 0 {
		q.effort = min(n, 24)
	}
	q.thoughts, q.thinking = v.get("includeThoughts").yes, true
	return nil
}

// contents checks the turns: results of functions follow their calls directly and are as
// many, and calls of the current turn have their signature.
func (q *geminiRequest) contents(list []value) *apiError {
	var open []string // names of the calls without a result so far
	turn := 0         // index where the current turn begins
	for i, c := range list {
		for _, p := range c.get("parts").arr {
			if c.get("role").s != "model" && p.get("functionResponse").kind == absent {
				turn = i
			}
		}
	}
	for i, c := range list {
		role := c.get("role").s
		q.prompt += 4
		q.afterTool, q.toolText = false, ""
		var calls, results []string
		for k, p := range c.get("parts").arr {
			call, result, signature := p.get("functionCall"), p.get("functionResponse"), p.get("thoughtSignature").s
			for _, m := range p.obj {
				if m.name != "thoughtSignature" && m.name != "thought" && m.name != "videoMetadata" && m.name != "mediaResolution" {
					q.prompt += tokensOf(m.v.s)
				}
			}
			switch {
			case signature != "" && signature != "skip_thought_signature_validator" && !unsealed(q.signing(p), signature):
				return invalid("Unable to submit request because Thought signature is not valid.")
			case call.given() && generation(q.model) == 30 && i > turn && len(calls) == 0 && signature == "":
				return invalid("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d.", call.get("name").s, k+1)
			case result.get("parts").given() && generation(q.model) < 30:
				return invalid("Multimodal function response is not supported for this model.")
			case call.given():
				calls = append(calls, call.get("name").s)
			case result.given():
				results = append(results, result.get("name").s)
				q.afterTool = true
				q.toolText += result.at("response.output").s
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

var subsetKeys = strings.Fields("type format title description nullable enum items minItems maxItems properties required minProperties maxProperties minLength maxLength pattern example anyOf propertyOrdering default minimum maximum")

// lowered is a schema with its types in lower case: the API accepts both cases.
func lowered(v value) value {
	out := v
	out.obj, out.arr = nil, nil
	for _, m := range v.obj {
		if m.name == "type" && m.v.kind == text {
			m.v.s = strings.ToLower(m.v.s)
		} else {
			m.v = lowered(m.v)
		}
		out.obj = append(out.obj, m)
	}
	for _, e := range v.arr {
		out.arr = append(out.arr, lowered(e))
	}
	return out
}

// checkSubset refuses what the API's subset of JSON schema does not have.
func checkSubset(v value, at string) *apiError {
	for _, m := range v.obj {
		if !slices.Contains(subsetKeys, m.name) {
			return invalid("Invalid JSON payload received. Unknown name %q at '%s': Cannot find field.", m.name, at)
		}
	}
	typ, items := v.get("type"), v.get("items")
	if typ.kind != text && v.get("anyOf").kind != array || typ.s == "array" && items.kind != object {
		return invalid("Unable to submit request because `%s` schema didn't specify the schema type field, or its items.", at)
	}
	for _, e := range v.get("enum").arr {
		if e.kind != text {
			return invalid("Invalid value at '%s.enum' (TYPE_STRING), %s", at, e.s)
		}
	}
	for _, r := range v.get("required").arr {
		if v.get("properties").get(r.s).kind == absent {
			return invalid("* GenerateContentRequest.%s.required: property is not defined", at)
		}
	}
	inner := append(slices.Clone(v.get("properties").obj), member{"items", items})
	for _, a := range v.get("anyOf").arr {
		inner = append(inner, member{"any_of", a})
	}
	for _, m := range inner {
		if m.v.kind == object {
			if e := checkSubset(m.v, at+"."+m.name); e != nil {
				return e
			}
		}
	}
	return nil
}

func (q *geminiRequest) toolList(v value) *apiError {
	for i, t := range v.arr {
		for _, f := range t.get("functionDeclarations").arr {
			schema, subset := f.get("parametersJsonSchema"), lowered(f.get("parameters"))
			switch {
			case schema.given() && subset.given():
				return invalid("parameters and parameters_json_schema are mutually exclusive.")
			case schema.given() && generation(q.model) < 25:
				return invalid("parameters_json_schema is not supported for this model.")
			case subset.given():
				if e := checkSubset(subset, fmt.Sprintf("tools[%d].parameters", i)); e != nil {
					return e
				}
				schema = subset
			}
			q.tools = append(q.tools, tool{f.get("name").s, schema})
		}
	}
	return nil
}

func (q *geminiRequest) toolConfig(c value) *apiError {
	names, mode := c.get("allowedFunctionNames").arr, c.get("mode").s
	q.choice = map[string]choiceMode{"NONE": chooseNone, "ANY": chooseAny}[mode]
	if len(names) > 0 && mode != "ANY" && mode != "VALIDATED" {
		return invalid("allowed_function_names should be set only when function_calling_config mode is ANY.")
	}
	if len(names) > 0 && mode == "ANY" {
		if q.choice, q.named = chooseNamed, names[0].s; !q.has(q.named) {
			return invalid("allowed_function_names contains a function that is not declared: %s", q.named)
		}
	}
	return nil
}
