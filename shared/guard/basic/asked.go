package basic

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

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
			return failed("The request has no members that could be checked")
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
