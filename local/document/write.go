package document

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Ordered is a mapping that is written in its own order.
type Ordered []Entry

// Entry is one entry of an Ordered.
type Entry struct {
	Name  string
	Value any
}

// Write returns v as YAML: nil, bool, json.Number, int, string, []any, map[string]any (in
// the order of its keys) and Ordered. Parse returns the same values.
func Write(v any) ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(encode(v)); err != nil {
		return nil, err
	}
	err := e.Close()
	return out.Bytes(), err
}

func encode(v any) *yaml.Node {
	scalar := func(tag, text string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
	}
	switch v := v.(type) {
	case bool:
		return scalar("!!bool", strconv.FormatBool(v))
	case int:
		return scalar("!!int", strconv.Itoa(v))
	case json.Number:
		return numeric(string(v))
	case string:
		return text(v)
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range v {
			n.Content = append(n.Content, encode(item))
		}
		if len(v) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case map[string]any:
		var o Ordered
		for name := range v {
			o = append(o, Entry{name, v[name]})
		}
		slices.SortFunc(o, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
		return encode(o)
	case Ordered:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, e := range v {
			n.Content = append(n.Content, text(e.Name), encode(e.Value))
		}
		if len(v) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	}
	return scalar("!!null", "null")
}

func numeric(text string) *yaml.Node {
	tag := "!!int"
	if strings.ContainsAny(text, ".eE") {
		tag = "!!float"
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
	if n.ShortTag() != tag { // such as 1e3, which YAML takes for a text without a dot
		n.Tag = "!!float"
	}
	return n
}

// text writes a text so that nothing else can be read from it.
func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if plain := (&yaml.Node{Kind: yaml.ScalarNode, Value: s}); plain.ShortTag() != "!!str" || strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' && r != '\n' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == '\ufeff'
	}) {
		n.Style = yaml.DoubleQuotedStyle
	}
	if strings.Contains(s, "\n") && (strings.HasPrefix(s, " ") || strings.HasPrefix(s, "\n") || strings.Contains(s, " \n") || strings.HasSuffix(s, " ")) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
