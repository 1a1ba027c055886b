package chat

import "gateway/shared/wire"

// TextTool is the schema under which a tool of free text is offered to providers whose tools
// take JSON.
const TextTool = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`

// CustomTool reports whether the client's tool of this name takes free text. r may be nil.
func (r *Request) CustomTool(name string) bool {
	t := r.tool(name)
	return t != nil && t.Custom
}

// tool returns the client's tool of this name, nil if there is none.
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

// WrapText returns the arguments of a tool of free text.
func WrapText(text string) string {
	return string(append(wire.AppendJSONString([]byte(`{"input":`), text), '}'))
}

// UnwrapText returns the free text in arguments made by WrapText or by a model. Other arguments
// are returned unchanged.
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

// JoinNamespace returns the name under which a tool of a namespace is offered to providers that
// know no namespaces.
func JoinNamespace(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "__" + name
}

// SplitNamespace returns the namespace in which the client knows a tool, and its name there. r
// may be nil.
func (r *Request) SplitNamespace(name string) (namespace, own string) {
	if t := r.tool(name); t != nil && t.Namespace != "" {
		return t.Namespace, name[len(JoinNamespace(t.Namespace, "")):]
	}
	return "", name
}
