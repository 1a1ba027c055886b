package judge

import (
	"encoding/json"
	"strings"
)

// Get returns a parameter, or standard if it is absent, null or of another type.
func Get[T any](p map[string]json.RawMessage, name string, standard T) T {
	v, ok := Read[T](p, name)
	if !ok {
		return standard
	}
	return v
}

// Read returns a parameter. ok is false if it is absent, null or of another type.
func Read[T any](p map[string]json.RawMessage, name string) (v T, ok bool) {
	raw := p[name]
	if len(raw) == 0 || string(raw) == "null" {
		return v, false
	}
	return v, json.Unmarshal(raw, &v) == nil
}

// Object returns a parameter that is an object or its JSON text.
func Object[T any](p map[string]json.RawMessage, name string) (v T, ok bool) {
	if text, is := Read[string](p, name); is {
		return v, json.Unmarshal([]byte(text), &v) == nil
	}
	return Read[T](p, name)
}

// List returns a parameter that is a list of strings or one string.
func List(p map[string]json.RawMessage, name string) []string {
	if one := Get(p, name, ""); one != "" {
		return []string{one}
	}
	return Get(p, name, []string(nil))
}

// Text returns all texts of the subject, each on a new line.
func (s *Subject) Text() string { return Joined(s.Texts) }

// Joined returns the texts that are not empty, each on a new line.
func Joined(texts []string) string {
	switch len(texts) {
	case 0:
		return ""
	case 1:
		return texts[0]
	}
	var b strings.Builder
	for _, t := range texts {
		if t == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(t)
	}
	return b.String()
}
