package mockprovider

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var subsetKeys = strings.Fields("type format title description nullable enum items minItems maxItems properties required minProperties maxProperties minLength maxLength pattern example anyOf propertyOrdering default minimum maximum")

// lowered is a schema with its types in lower case: the API accepts both cases.
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

// checkSubset refuses what the API's subset of JSON schema does not have.
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

var functionName = named{64, regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]*$`)}

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
			if !functionName.matches(f.get("name").s) {
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
