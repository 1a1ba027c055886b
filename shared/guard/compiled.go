package guard

import "sync"

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
