package basic

import (
	"context"
	"unicode/utf8"

	"gateway/shared/guard/judge"
)

// Makers returns the checks of this package by id.
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
		"default.blockedTools":             blockedTools,
	}
}

// excerpt returns the first 100 characters of a text.
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

// failed returns the verdict of a check that could not decide.
func failed(message string) judge.Verdict { return judge.Failed("Error", message) }

// constant returns a check with a constant verdict, for invalid parameters.
func constant(v judge.Verdict) judge.Func {
	return func(context.Context, *judge.Subject) judge.Verdict { return v }
}

// utf16 returns the length of a text in UTF-16 code units, as JavaScript counts.
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
