package mockprovider

import (
	"fmt"
	"slices"
	"strings"
)

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
