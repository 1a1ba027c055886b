package basic

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"gateway/shared/guard/judge"
)

// Makers are the checks of this package, by id.
func Makers() map[string]judge.Maker {
	return map[string]judge.Maker{
		"default.regexMatch":               regexMatch,
		"default.regexReplace":             regexReplace,
		"default.sentenceCount":            sentenceCount,
		"default.wordCount":                wordCount,
		"default.characterCount":           characterCount,
		"default.jsonSchema":               jsonSchema,
		"default.jsonKeys":                 jsonKeys,
		"default.contains":                 contains,
		"default.containsCode":             containsCode,
		"default.alluppercase":             letterCase(true),
		"default.alllowercase":             letterCase(false),
		"default.endsWith":                 endsWith,
		"default.notNull":                  notNull,
		"default.addPrefix":                addPrefix,
		"default.modelwhitelist":           modelList,
		"default.modelRules":               modelRules,
		"default.requiredMetadataKeys":     metadataKeys,
		"default.requiredMetadataKeyPairs": metadataPairs,
		"default.allowedRequestTypes":      requestTypes,
		"default.requestParametersCheck":   requestParameters,
	}
}

// parameters are those of a check, as JSON.
type parameters map[string]json.RawMessage

// get reads a parameter; standard where it is absent, null or of another type.
func get[T any](p parameters, name string, standard T) T {
	v, ok := read[T](p, name)
	if !ok {
		return standard
	}
	return v
}

// read reads a parameter; ok is false where it is absent, null or of another type.
func read[T any](p parameters, name string) (v T, ok bool) {
	raw := p[name]
	if len(raw) == 0 || string(raw) == "null" {
		return v, false
	}
	return v, json.Unmarshal(raw, &v) == nil
}

// object reads a parameter that is an object, or JSON text of one.
func object[T any](p parameters, name string) (v T, ok bool) {
	if text, is := read[string](p, name); is {
		return v, json.Unmarshal([]byte(text), &v) == nil
	}
	return read[T](p, name)
}

// joined is the text that a check is about: its parts, one under the other.
func joined(s *judge.Subject) string {
	switch len(s.Texts) {
	case 0:
		return ""
	case 1:
		return s.Texts[0]
	}
	var b strings.Builder
	for _, t := range s.Texts {
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

// excerpt is the beginning of a text: 100 characters.
func excerpt(text string) string {
	const most = 100
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "..."
		}
		n++
	}
	return text
}

// failed is the verdict of a check that could not judge.
func failed(message string) judge.Verdict { return judge.Failed("Error", message) }

// always gives the same verdict: that of parameters that cannot be used.
func always(v judge.Verdict) judge.Func {
	return func(context.Context, *judge.Subject) judge.Verdict { return v }
}

// utf16 counts the units that JavaScript counts.
func utf16(text string) int {
	n := 0
	for i := 0; i < len(text); i++ {
		if text[i] >= utf8.RuneSelf {
			n = 0
			for _, r := range text {
				n++
				if r > 0xffff {
					n++
				}
			}
			return n
		}
	}
	return len(text)
}
