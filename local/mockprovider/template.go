package mockprovider

import (
	"encoding/json"
	"strconv"
	"strings"
)

// template is JSON text with values in angle brackets: <name> inserts a value,
// <?condition>...<:>...</> one of two texts. A condition is a name, which holds if its value is
// not null, false, zero or empty, or name=a|b, which holds for these strings.
type template []templatePart

type templatePart struct {
	text, name, condition string
	yes, no               template
}

// parseTemplate panics if s is not well-formed: templates are constants. Line ends and the
// spaces that indent lines are removed.
func parseTemplate(s string) template {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimSpace(line))
	}
	t, rest, end := parseParts(b.String())
	if end != "" || rest != "" {
		panic("unexpected <" + end + "> in a template: " + s)
	}
	return t
}

// parseParts parses up to the tag that ends a branch, which it returns.
func parseParts(s string) (t template, rest, end string) {
	for s != "" {
		before, after, ok := strings.Cut(s, "<")
		t = append(t, templatePart{text: before})
		if !ok {
			return t, "", ""
		}
		tag, after, _ := strings.Cut(after, ">")
		switch {
		case tag == ":" || tag == "/":
			return t, after, tag
		case tag[0] == '?':
			p := templatePart{condition: tag[1:]}
			if p.yes, after, end = parseParts(after); end == ":" {
				p.no, after, end = parseParts(after)
			}
			if end != "/" {
				panic("<?" + p.condition + "> has no end")
			}
			t = append(t, p)
		default:
			t = append(t, templatePart{name: tag})
		}
		s = after
	}
	return t, "", ""
}

// fill writes the template with the values that get returns.
func (t template) fill(b []byte, get func(name string) json.RawMessage) []byte {
	for _, p := range t {
		switch {
		case p.condition != "" && holds(p.condition, get):
			b = p.yes.fill(b, get)
		case p.condition != "":
			b = p.no.fill(b, get)
		case p.name != "":
			b = append(b, get(p.name)...)
		default:
			b = append(b, p.text...)
		}
	}
	return b
}

func holds(condition string, get func(string) json.RawMessage) bool {
	name, wanted, compares := strings.Cut(condition, "=")
	got := string(get(name))
	if !compares {
		return got != "null" && got != "false" && got != "0" && got != `""` && got != ""
	}
	for w := range strings.SplitSeq(wanted, "|") {
		if got == quoted(w) {
			return true
		}
	}
	return false
}

// fill writes format with each $ replaced by the next argument as JSON; a json.RawMessage is
// inserted unchanged.
func fill(format string, args ...any) []byte {
	var b []byte
	for _, arg := range args {
		before, after, ok := strings.Cut(format, "$")
		if !ok {
			panic("too many arguments: " + format)
		}
		b, format = appendJSON(append(b, before...), arg), after
	}
	return append(b, format...)
}

func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return appendString(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case json.RawMessage:
		return append(b, v...)
	case []byte:
		return append(b, v...)
	case value:
		return append(b, v.source("null")...)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return append(b, "null"...)
	}
	return append(b, raw...)
}
