package basic

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"gateway/shared/guard/judge"
)

// toolRules and paramRules are the parameters of requestParametersCheck.
type toolRules struct {
	BlockedTypes []string `json:"blockedTypes"`
	AllowedTypes []string `json:"allowedTypes"`
	BlockedNames []string `json:"blockedFunctionNames"`
	AllowedNames []string `json:"allowedFunctionNames"`
}

type paramRules struct {
	BlockedKeys []string             `json:"blockedKeys"`
	AllowedKeys []string             `json:"allowedKeys"`
	Values      map[string]valueRule `json:"values"`
}

type valueRule struct {
	Blocked []json.RawMessage `json:"blockedValues"`
	Allowed []json.RawMessage `json:"allowedValues"`
}

type parametersData struct {
	Tools       []blockedTool  `json:"blockedToolsFound"`
	Params      []blockedParam `json:"blockedParamsFound"`
	Verdict     bool           `json:"verdict"`
	Explanation string         `json:"explanation"`
}

type blockedTool struct {
	Type    string   `json:"type"`
	Name    string   `json:"name,omitempty"`
	Reasons []string `json:"reasons"`
}

type blockedParam struct {
	Param   string          `json:"param"`
	Value   json.RawMessage `json:"value,omitempty"`
	Reasons []string        `json:"reasons"`
}

// requestParameters passes a request with allowed tools, top-level fields and values. An empty
// list of allowed entries allows all. A rule about the value of an absent field is satisfied.
func requestParameters(raw map[string]json.RawMessage) judge.Func {
	tools, _ := judge.Object[toolRules](raw, "tools")
	params, _ := judge.Object[paramRules](raw, "params")
	if both(tools.BlockedTypes, tools.AllowedTypes) || both(tools.BlockedNames, tools.AllowedNames) || both(params.BlockedKeys, params.AllowedKeys) || params.conflict() {
		return constant(failed("The same entry is both allowed and blocked"))
	}
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		var body map[string]json.RawMessage
		if json.Unmarshal(s.Request, &body) != nil {
			return failed("The request has no fields that could be checked")
		}
		d := &parametersData{Tools: tools.found(body["tools"]), Params: params.found(body)}
		d.Verdict, d.Explanation = len(d.Tools)+len(d.Params) == 0, "All tools and parameters are allowed"
		if !d.Verdict {
			d.Explanation = "The request has tools or parameters that are not allowed"
		}
		return judge.Verdict{Pass: d.Verdict, Data: d}
	}
}

// blockedTools is requestParameters with only the rules for tools, at the top level.
func blockedTools(raw map[string]json.RawMessage) judge.Func {
	tools, err := json.Marshal(raw)
	if err != nil {
		return constant(failed("The parameters cannot be read"))
	}
	return requestParameters(map[string]json.RawMessage{"tools": tools})
}

func both(a, b []string) bool {
	return slices.ContainsFunc(a, func(e string) bool { return slices.Contains(b, e) })
}

func (r *paramRules) conflict() bool {
	for _, v := range r.Values {
		if slices.ContainsFunc(v.Blocked, func(e json.RawMessage) bool { return has(v.Allowed, e) }) {
			return true
		}
	}
	return false
}

// has reports whether a list of primitive values contains v, comparing type and value.
func has(list []json.RawMessage, v json.RawMessage) bool {
	return slices.ContainsFunc(list, func(e json.RawMessage) bool { return same(e, v) })
}

func same(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	switch x.(type) {
	case string, float64, bool, nil:
		switch y.(type) {
		case string, float64, bool, nil:
			return x == y
		}
	}
	return false
}

func (r *toolRules) found(raw json.RawMessage) []blockedTool {
	out := []blockedTool{}
	var tools []struct {
		Type, Name string
		Function   struct{ Name string }
	}
	if json.Unmarshal(raw, &tools) != nil {
		return out
	}
	for _, t := range tools {
		kind, name := t.Type, t.Function.Name
		if kind == "" {
			kind = "function" // the type is optional in messages
		}
		if name == "" {
			name = t.Name
		}
		if name == "" {
			name = kind
		}
		var reasons []string
		add := func(bad bool, reason string) {
			if bad {
				reasons = append(reasons, reason)
			}
		}
		add(slices.Contains(r.BlockedTypes, kind), "type_blocked")
		add(slices.Contains(r.BlockedNames, name), "name_blocked")
		add(len(r.AllowedTypes) > 0 && !slices.Contains(r.AllowedTypes, kind), "type_not_allowed")
		add(len(r.AllowedNames) > 0 && !slices.Contains(r.AllowedNames, name), "name_not_allowed")
		if len(reasons) > 0 {
			out = append(out, blockedTool{kind, name, reasons})
		}
	}
	return out
}

func (r *paramRules) found(body map[string]json.RawMessage) []blockedParam {
	out := []blockedParam{}
	for _, key := range slices.Sorted(maps.Keys(body)) {
		var reasons []string
		add := func(bad bool, reason string) {
			if bad {
				reasons = append(reasons, reason)
			}
		}
		add(slices.Contains(r.BlockedKeys, key), "key_blocked")
		add(len(r.AllowedKeys) > 0 && !slices.Contains(r.AllowedKeys, key), "key_not_allowed")
		rule, ruled := r.Values[key]
		add(ruled && has(rule.Blocked, body[key]), "value_blocked")
		add(ruled && len(rule.Allowed) > 0 && !has(rule.Allowed, body[key]), "value_not_allowed")
		if len(reasons) == 0 {
			continue
		}
		b := blockedParam{Param: key, Reasons: reasons}
		if ruled && len(body[key]) <= 256 {
			b.Value = body[key]
		}
		out = append(out, b)
	}
	return out
}

// tagged maps the tags of code fences to languages.
var tagged = map[string]string{
	"sql": "SQL", "python": "Python", "py": "Python", "gyp": "Python", "typescript": "TypeScript", "ts": "TypeScript", "tsx": "TypeScript",
	"javascript": "JavaScript", "js": "JavaScript", "jsx": "JavaScript", "java": "Java", "csharp": "C#", "cs": "C#", "c#": "C#",
	"cpp": "C++", "c++": "C++", "c": "C", "ruby": "Ruby", "rb": "Ruby", "php": "PHP", "swift": "Swift", "kotlin": "Kotlin", "kt": "Kotlin",
	"go": "Go", "golang": "Go", "rust": "Rust", "rs": "Rust", "scala": "Scala", "r": "R", "perl": "Perl", "pl": "Perl",
	"shell": "Shell", "bash": "Shell", "sh": "Shell", "zsh": "Shell", "html": "HTML", "css": "CSS", "xml": "XML", "json": "JSON",
	"yaml": "YAML", "yml": "YAML", "markdown": "Markdown", "md": "Markdown", "dockerfile": "Dockerfile",
}

type codeData struct {
	Format      string   `json:"format"`
	Not         bool     `json:"not"`
	Verdict     bool     `json:"verdict"`
	Explanation string   `json:"explanation"`
	Found       []string `json:"foundFormats"`
}

// containsCode passes a response that has a fenced block in a language.
func containsCode(raw map[string]json.RawMessage) judge.Func {
	format, not := judge.Get(raw, "format", ""), judge.Get(raw, "not", false)
	if format == "" {
		return constant(failed("Missing format"))
	}
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		text := s.Text()
		if text == "" {
			return judge.NoContent("Missing text to check")
		}
		d := &codeData{Format: format, Not: not, Found: []string{}, Explanation: "There is no block of code"}
		for b := range fences(text) {
			if b.tag == "" {
				continue
			}
			name, known := tagged[strings.ToLower(b.tag)]
			if !known {
				name = b.tag
			}
			if !slices.Contains(d.Found, name) {
				d.Found = append(d.Found, name)
			}
		}
		has := slices.ContainsFunc(d.Found, func(f string) bool { return strings.EqualFold(f, format) })
		switch {
		case has:
			d.Explanation = "There is a block of " + format
		case len(d.Found) > 0:
			d.Explanation = "There is no block of " + format
		}
		d.Verdict = has != not
		return judge.Verdict{Pass: d.Verdict, Data: d}
	}
}

// fence is a block between ``` and ```.
type fence struct{ tag, body string }

// fences iterates over the blocks of a text. The tag is the rest of the opening line, if that
// is one word.
func fences(text string) func(func(fence) bool) {
	return func(yield func(fence) bool) {
		for {
			_, rest, ok := strings.Cut(text, "```")
			if !ok {
				return
			}
			body, after, ok := strings.Cut(rest, "```")
			if !ok {
				return
			}
			text = after
			f := fence{body: body}
			if tag, in, ok := strings.Cut(body, "\n"); ok {
				if tag = strings.TrimSpace(tag); !strings.ContainsAny(tag, " \t{}[]\"") {
					f = fence{tag, in}
				}
			}
			if !yield(f) {
				return
			}
		}
	}
}
