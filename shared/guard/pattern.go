package guard

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of patterns and schemas.
const (
	maxPattern = 10_000  // characters
	maxSchema  = 100_000 // bytes
	// MatchTime bounds one search of a pattern, because the engine goes back and forth and
	// may need very long. The clock measures it, so it must be longer than a busy machine
	// delays a search: a text whose search is ended is not judged.
	MatchTime = 500 * time.Millisecond
)

// CompilePattern compiles a regular expression of JavaScript without flags. If a search
// takes longer than MatchTime, it ends with an error. The error for a pattern contains no
// part of it.
func CompilePattern(pattern string) (*regexp2.Regexp, error) { return compile(pattern, "") }

// CompileReplaced compiles a pattern, or /pattern/flags. global says that all matches are
// replaced, not only the first.
func CompileReplaced(text string) (re *regexp2.Regexp, global bool, err error) {
	pattern, flags := flagged(text)
	re, err = compile(pattern, flags)
	return re, strings.Contains(flags, "g"), err
}

// flagged splits /pattern/flags; any other text is a pattern without flags.
func flagged(text string) (pattern, flags string) {
	if end := strings.LastIndexByte(text, '/'); end > 0 && text[0] == '/' && strings.Trim(text[end+1:], "gimsuyd") == "" {
		return text[1:end], text[end+1:]
	}
	return text, ""
}

func compile(pattern, flags string) (*regexp2.Regexp, error) {
	if pattern == "" {
		return nil, errors.New("must not be empty")
	}
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("must have at most %d characters", maxPattern)
	}
	options := regexp2.RegexOptions(regexp2.ECMAScript)
	for flag, option := range map[string]regexp2.RegexOptions{"i": regexp2.IgnoreCase, "m": regexp2.Multiline, "s": regexp2.Singleline, "u": regexp2.Unicode} {
		if strings.Contains(flags, flag) {
			options |= option
		}
	}
	re, err := regexp2.Compile(pattern, options)
	if err != nil {
		return nil, errors.New("is no regular expression of JavaScript: " + reason(err))
	}
	re.MatchTimeout = MatchTime
	return re, nil
}

// reason is the engine's message without the pattern, which it repeats at the end.
func reason(err error) string {
	text := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	if cut := strings.Index(text, " in `"); cut > 0 {
		text = text[:cut]
	}
	return text
}

// CompileSchema compiles a JSON Schema; if it names no version, draft 2020-12. It cannot
// refer to other documents. Its patterns are those of JavaScript.
func CompileSchema(raw []byte) (*jsonschema.Schema, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("must have at most %d bytes", maxSchema)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, errors.New("is not valid JSON")
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nowhere{})
	c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		re, err := CompilePattern(pattern)
		if err != nil {
			return nil, err
		}
		return schemaPattern{re}, nil
	})
	const name = "mem:///schema.json"
	if err := c.AddResource(name, value); err != nil {
		return nil, errors.New("is no JSON Schema: " + lastLine(err))
	}
	s, err := c.Compile(name)
	if err != nil {
		return nil, errors.New("is no JSON Schema: " + lastLine(err))
	}
	return s, nil
}

// lastLine is the place of the mistake in the schema.
func lastLine(err error) string {
	var wrong *jsonschema.SchemaValidationError
	if !errors.As(err, &wrong) {
		return clip(strings.ReplaceAll(err.Error(), "mem:///schema.json", "the schema"))
	}
	lines := strings.Split(strings.TrimSpace(wrong.Err.Error()), "\n")
	return clipTo(strings.TrimLeft(lines[len(lines)-1], "- \t"), 200)
}

// nowhere loads nothing.
type nowhere struct{}

func (nowhere) Load(string) (any, error) {
	return nil, errors.New("only what stands within the schema can be referred to")
}

type schemaPattern struct{ re *regexp2.Regexp }

func (p schemaPattern) MatchString(s string) bool {
	ok, err := p.re.MatchString(s)
	return ok && err == nil
}

func (p schemaPattern) String() string { return p.re.String() }

func clip(s string) string { return clipTo(s, 64) }

func clipTo(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
