package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of patterns and schemas.
const (
	maxPattern = 10_000  // characters
	maxSchema  = 100_000 // bytes
	// MatchTime is the time limit of one search, because the engine backtracks. It is wall
	// time, so it must exceed scheduling delays on a busy machine: after a timeout the text is
	// not judged.
	MatchTime = 500 * time.Millisecond
	// shortTime is the time limit of a search that begins when less than MatchTime is left. The
	// engine cannot be interrupted, and its clock ticks every 100 ms.
	shortTime = 20 * time.Millisecond
)

// Regex is a compiled JavaScript regular expression. A search ends after MatchTime, or earlier
// with its context, and then returns ErrTime. It is safe for concurrent use.
type Regex struct {
	full  *regexp2.Regexp
	short func() *regexp2.Regexp // the same with shortTime; rarely needed
	slow  func() *regexp2.Regexp // the same without a limit, for a patient budget
}

// String returns the source of the pattern.
func (p *Regex) String() string { return p.full.String() }

// GroupName returns the name of a group, or its number if it has no name.
func (p *Regex) GroupName(i int) string { return p.full.GroupNameFromNumber(i) }

// engine returns the engine for one search under ctx.
func (p *Regex) engine(ctx context.Context) (*regexp2.Regexp, error) {
	if ctx.Err() != nil {
		return nil, ErrTime
	}
	if at, ok := ctx.Deadline(); ok {
		switch left := time.Until(at); {
		case left < MatchTime:
			return p.short(), nil
		case left > LocalTime && ctx.Value(patientKey{}) != nil: // no request has so much
			return p.slow(), nil
		}
	}
	return p.full, nil
}

// Match reports whether the pattern is found in text.
func (p *Regex) Match(ctx context.Context, text string) (bool, error) {
	re, err := p.engine(ctx)
	if err != nil {
		return false, err
	}
	found, err := re.MatchString(text)
	if err != nil {
		return false, ErrTime
	}
	return found, nil
}

// Find returns the first match in text, or nil.
func (p *Regex) Find(ctx context.Context, text string) (*regexp2.Match, error) {
	return p.find(ctx, []rune(text), nil)
}

// find returns the match after the given one, or the first match for nil.
func (p *Regex) find(ctx context.Context, text []rune, after *regexp2.Match) (*regexp2.Match, error) {
	re, err := p.engine(ctx)
	if err != nil {
		return nil, err
	}
	var m *regexp2.Match
	if after == nil {
		m, err = re.FindRunesMatch(text)
	} else {
		m, err = re.FindNextMatch(after)
	}
	if err != nil {
		return nil, ErrTime
	}
	return m, nil
}

// Replace replaces the first match in text, or all matches, by a literal text. found reports
// whether there was one. The context limits all searches together.
func (p *Regex) Replace(ctx context.Context, text, by string, all bool) (now string, found bool, err error) {
	runes := []rune(text)
	m, err := p.find(ctx, runes, nil)
	if m == nil || err != nil {
		return text, false, err
	}
	var b strings.Builder
	from := 0
	for m != nil {
		b.WriteString(string(runes[from:m.Index]))
		b.WriteString(by)
		from = m.Index + m.Length
		if !all {
			break
		}
		if m, err = p.find(ctx, runes, m); err != nil {
			return text, false, err
		}
	}
	b.WriteString(string(runes[from:]))
	return b.String(), true, nil
}

// CompilePattern compiles a JavaScript regular expression without flags. Errors do not contain
// the pattern.
func CompilePattern(pattern string) (*Regex, error) { return compile(pattern, "") }

// CompileReplaced compiles a pattern, or /pattern/flags. global is set if all matches are
// replaced.
func CompileReplaced(text string) (re *Regex, global bool, err error) {
	pattern, flags := splitFlags(text)
	re, err = compile(pattern, flags)
	return re, strings.Contains(flags, "g"), err
}

// splitFlags splits /pattern/flags; any other text is a pattern without flags.
func splitFlags(text string) (pattern, flags string) {
	if end := strings.LastIndexByte(text, '/'); end > 0 && text[0] == '/' && strings.Trim(text[end+1:], "gimsuyd") == "" {
		return text[1:end], text[end+1:]
	}
	return text, ""
}

func compile(pattern, flags string) (*Regex, error) {
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
		return nil, errors.New("is not a regular expression of JavaScript: " + patternError(err))
	}
	re.MatchTimeout = MatchTime
	within := func(limit time.Duration) func() *regexp2.Regexp {
		return sync.OnceValue(func() *regexp2.Regexp {
			re := regexp2.MustCompile(pattern, options)
			re.MatchTimeout = limit
			return re
		})
	}
	return &Regex{full: re, short: within(shortTime), slow: within(regexp2.DefaultMatchTimeout)}, nil
}

// patternError returns the engine's message without the pattern at its end.
func patternError(err error) string {
	text := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	if cut := strings.Index(text, " in `"); cut > 0 {
		text = text[:cut]
	}
	return text
}

// JSONSchema is a compiled JSON Schema. It is safe for concurrent use.
type JSONSchema struct {
	text []byte
	mu   sync.Mutex
	free []*compiledSchema // idle instances
}

// compiledSchema is a schema with patterns that search under the context of the current
// validation.
type compiledSchema struct {
	*jsonschema.Schema
	ctx context.Context
	err error // of a search
}

// CompileSchema compiles a JSON Schema, by default of draft 2020-12. It cannot refer to other
// documents. Its patterns are JavaScript regular expressions.
func CompileSchema(raw []byte) (*JSONSchema, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("must have at most %d bytes", maxSchema)
	}
	c, err := compileSchema(raw)
	if err != nil {
		return nil, err
	}
	return &JSONSchema{text: raw, free: []*compiledSchema{c}}, nil
}

// Validate returns an error that describes where v does not match the schema. It returns
// ErrTime if the patterns of the schema take too long, individually or together.
func (s *JSONSchema) Validate(ctx context.Context, v any) error {
	c, err := s.take()
	if err != nil {
		return err
	}
	c.ctx, c.err = ctx, nil
	err = c.Schema.Validate(v)
	if c.err != nil {
		err = c.err
	}
	c.ctx = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, c)
	return err
}

func (s *JSONSchema) take() (*compiledSchema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		c := s.free[n-1]
		s.free = s.free[:n-1]
		return c, nil
	}
	return compileSchema(s.text)
}

func compileSchema(raw []byte) (*compiledSchema, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, errors.New("is not valid JSON")
	}
	out := new(compiledSchema)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		re, err := CompilePattern(pattern)
		if err != nil {
			return nil, err
		}
		return schemaPattern{re, out}, nil
	})
	const name = "mem:///schema.json"
	if err := c.AddResource(name, value); err != nil {
		return nil, errors.New("is not a JSON Schema: " + schemaLocation(err))
	}
	if out.Schema, err = c.Compile(name); err != nil {
		return nil, errors.New("is not a JSON Schema: " + schemaLocation(err))
	}
	return out, nil
}

// schemaLocation returns the location of the fault in the schema.
func schemaLocation(err error) string {
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		return "it refers to " + clip(strings.TrimPrefix(load.URL, "mem:///")) + ", but other documents are not loaded; put them into $defs"
	}
	var wrong *jsonschema.SchemaValidationError
	if !errors.As(err, &wrong) {
		return clip(strings.ReplaceAll(err.Error(), "mem:///schema.json", "the schema"))
	}
	lines := strings.Split(strings.TrimSpace(wrong.Err.Error()), "\n")
	return clipTo(strings.TrimLeft(lines[len(lines)-1], "- \t"), 200)
}

// noLoader is a loader that loads nothing.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("no other documents are loaded")
}

type schemaPattern struct {
	*Regex
	of *compiledSchema
}

// MatchString implements jsonschema.Regexp. After a search timed out, it starts no other.
func (p schemaPattern) MatchString(s string) bool {
	if p.of.err != nil || p.of.ctx == nil {
		return false
	}
	ok, err := p.Match(p.of.ctx, s)
	p.of.err = err
	return ok
}

func clip(s string) string { return clipTo(s, 64) }

func clipTo(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

// MatchSchema reports whether a JSON value matches a JSON schema. It returns true for a schema that
// cannot be compiled or has patterns that take too long: the provider has accepted the request
// with it.
func MatchSchema(ctx context.Context, schema, value []byte) bool {
	s, err := CompileSchema(schema)
	if err != nil {
		return true
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return false
	}
	switch s.Validate(ctx, v).(type) {
	case nil:
		return true
	case *jsonschema.ValidationError:
		return false
	}
	return true // ErrTime, or the request has ended
}

// maxCompiled is the number of cached patterns and schemas. Configs in requests can contain any
// number of new ones.
const maxCompiled = 512

// compiled caches compiled texts. When it is full, it is cleared.
type compiled[T any] struct {
	mu    sync.Mutex
	known map[string]T
}

func (c *compiled[T]) get(text string, compile func() (T, error)) (T, error) {
	c.mu.Lock()
	v, ok := c.known[text]
	c.mu.Unlock()
	if ok {
		return v, nil
	}
	v, err := compile()
	if err != nil {
		return v, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxCompiled {
		c.known = make(map[string]T)
	}
	c.known[text] = v
	return v, nil
}

type replacing struct {
	re     *Regex
	global bool
}

var (
	patterns  compiled[*Regex]
	replaced  compiled[replacing]
	compiling compiled[*JSONSchema]
)

// PatternOf is CompilePattern with a cache.
func PatternOf(text string) (*Regex, error) {
	return patterns.get(text, func() (*Regex, error) { return CompilePattern(text) })
}

// ReplacedOf is CompileReplaced with a cache.
func ReplacedOf(text string) (re *Regex, global bool, err error) {
	r, err := replaced.get(text, func() (replacing, error) {
		re, global, err := CompileReplaced(text)
		return replacing{re, global}, err
	})
	return r.re, r.global, err
}

// SchemaOf is CompileSchema with a cache.
func SchemaOf(raw []byte) (*JSONSchema, error) {
	return compiling.get(string(raw), func() (*JSONSchema, error) { return CompileSchema(raw) })
}
