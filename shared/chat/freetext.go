package chat

import "gateway/shared/wire"

// TextTool is the schema of a free-text tool for providers with tools that take JSON.
const TextTool = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`

// CustomTool reports whether the client's tool of this name takes free text. r may be nil.
func (r *Request) CustomTool(name string) bool {
	t := r.tool(name)
	return t != nil && t.Custom
}

// tool returns the client's tool of this name, or nil.
func (r *Request) tool(name string) *Tool {
	if r == nil {
		return nil
	}
	for i := range r.Tools {
		if t := &r.Tools[i]; t.Name == name && t.Foreign == "" {
			return t
		}
	}
	return nil
}

// WrapText returns free text as JSON arguments.
func WrapText(text string) string {
	return string(append(wire.AppendJSONString([]byte(`{"input":`), text), '}'))
}

// UnwrapText returns the free text in arguments created by WrapText or by a model. It returns
// other arguments unchanged.
func UnwrapText(args string) string {
	d := wire.NewDecoder([]byte(args))
	text, ok := "", false
	if d.Kind() == wire.KindObject {
		for key := range d.Object {
			if string(key) == "input" && d.Kind() == wire.KindString {
				text, ok = d.Str(), true
			}
		}
	}
	if !ok || d.End() != nil {
		return args
	}
	return text
}

// JoinNamespace returns the name of a tool of a namespace for providers without namespaces.
func JoinNamespace(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "__" + name
}

// SplitNamespace returns the client's namespace of a tool, and its name there. r may be nil.
func (r *Request) SplitNamespace(name string) (namespace, own string) {
	if t := r.tool(name); t != nil && t.Namespace != "" {
		return t.Namespace, name[len(JoinNamespace(t.Namespace, "")):]
	}
	return "", name
}
