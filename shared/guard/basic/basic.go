// Package basic implements the checks that need only the request or the response: patterns,
// counts, words, JSON, code, letters, and request properties other than text. The data of their
// verdicts is part of the API.
package basic

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode"
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

type containsData struct {
	Explanation string   `json:"explanation"`
	Found       []string `json:"foundWords"`
	Missing     []string `json:"missingWords"`
	Operator    string   `json:"operator"`
	Verdict     bool     `json:"verdict"`
}

// contains passes a text with any, all or none of its words. It is case-sensitive and matches
// within longer words. An empty list is judged: every text has all and none of its words.
func contains(raw map[string]json.RawMessage) judge.Func {
	list, ok := judge.Read[[]string](raw, "words")
	operator := judge.Get(raw, "operator", "any")
	if !ok {
		return constant(failed("Missing words to look for"))
	}
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		text := s.Text()
		d := &containsData{Found: []string{}, Missing: []string{}, Operator: operator}
		for _, w := range list {
			if strings.Contains(text, w) {
				d.Found = append(d.Found, w)
			} else {
				d.Missing = append(d.Missing, w)
			}
		}
		d.Verdict, d.Explanation = quantify(operator, len(d.Found), len(d.Missing), "words")
		return judge.Verdict{Pass: d.Verdict, Data: d}
	}
}

// operators are the values of the parameter operator.
var operators = []string{"any", "all", "none"}

const badOperator = "The operator must be any, all or none"

// quantify evaluates an operator. An unknown one fails.
func quantify(operator string, found, missing int, of string) (bool, string) {
	var pass bool
	switch operator {
	case "any":
		pass = found > 0
	case "all":
		pass = missing == 0
	case "none":
		pass = found == 0
	default:
		return false, badOperator
	}
	state := "is met"
	if !pass {
		state = "is not met"
	}
	return pass, "The rule " + operator + " of the " + of + " " + state
}

type suffixData struct {
	Suffix      string `json:"suffix"`
	Not         bool   `json:"not"`
	Verdict     bool   `json:"verdict"`
	Explanation string `json:"explanation"`
	Excerpt     string `json:"textExcerpt"`
}

// endsWith passes a text that ends with a suffix, optionally followed by a period.
func endsWith(raw map[string]json.RawMessage) judge.Func {
	suffix, not := judge.Get(raw, "suffix", ""), judge.Get(raw, "not", false)
	if suffix == "" {
		return constant(failed("Missing suffix"))
	}
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		text := s.Text()
		if text == "" {
			return judge.NoContent("Missing text to check")
		}
		ends := strings.HasSuffix(text, suffix) || strings.HasSuffix(text, suffix+".")
		d := &suffixData{Suffix: suffix, Not: not, Verdict: ends != not, Explanation: "The text does not end with the suffix", Excerpt: excerpt(text)}
		if ends {
			d.Explanation = "The text ends with the suffix"
		}
		return judge.Verdict{Pass: d.Verdict, Data: d}
	}
}

type caseData struct {
	Not         bool   `json:"not"`
	Verdict     bool   `json:"verdict"`
	Explanation string `json:"explanation"`
	Excerpt     string `json:"textExcerpt"`
}

// letterCase passes a text with letters A to Z of only one case; other alphabets are
// ignored.
func letterCase(upper bool) judge.Maker {
	first, last, name := byte('a'), byte('z'), "upper"
	if !upper {
		first, last, name = 'A', 'Z', "lower"
	}
	return func(raw map[string]json.RawMessage) judge.Func {
		not := judge.Get(raw, "not", false)
		return func(_ context.Context, s *judge.Subject) judge.Verdict {
			text := s.Text()
			if text == "" {
				return judge.NoContent("Missing text to check")
			}
			all := true
			for i := 0; i < len(text) && all; i++ {
				all = text[i] < first || text[i] > last
			}
			d := &caseData{Not: not, Verdict: all != not, Explanation: "The text is all " + name + " case", Excerpt: excerpt(text)}
			if !all {
				d.Explanation = "The text is not all " + name + " case"
			}
			return judge.Verdict{Pass: d.Verdict, Data: d}
		}
	}
}

type nullData struct {
	Not         bool   `json:"not"`
	Verdict     bool   `json:"verdict"`
	Explanation string `json:"explanation"`
}

// notNull passes a response that has a text or calls tools.
func notNull(raw map[string]json.RawMessage) judge.Func {
	not := judge.Get(raw, "not", false)
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		if s.ToolCalls {
			return judge.Verdict{Pass: true, Data: &nullData{not, true, "The response calls tools: the check is skipped"}}
		}
		is := strings.TrimSpace(s.Text()) != ""
		d := &nullData{not, is != not, "The response has content"}
		if !is {
			d.Explanation = "The response is empty"
		}
		return judge.Verdict{Pass: d.Verdict, Data: d}
	}
}

// between is a check that counts something and compares the count with two limits.
type between struct {
	least, most string // parameters
	standard    float64
	name, many  string // names of the count, in the data and in messages
	empty       bool   // an empty text counts as 0
	whole       bool   // the limits are integers
	count       func(text string) int
}

func sentenceCount(raw map[string]json.RawMessage) judge.Func {
	return between{"minSentences", "maxSentences", 99_999, "sentenceCount", "sentences", true, false, sentences}.make(raw)
}

func wordCount(raw map[string]json.RawMessage) judge.Func {
	return between{"minWords", "maxWords", 99_999, "wordCount", "words", false, true, words}.make(raw)
}

func characterCount(raw map[string]json.RawMessage) judge.Func {
	return between{"minCharacters", "maxCharacters", 9_999_999, "characterCount", "characters", false, true, utf16}.make(raw)
}

func (b between) make(raw map[string]json.RawMessage) judge.Func {
	least, lok := b.bound(raw, b.least, 0)
	most, mok := b.bound(raw, b.most, b.standard)
	if !lok || !mok {
		return constant(failed(fmt.Sprintf("%s and %s must be numbers", b.least, b.most)))
	}
	not := judge.Get(raw, "not", false)
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		text := s.Text()
		if text == "" && !b.empty {
			return judge.NoContent("Missing text to analyze")
		}
		n := b.count(text)
		in := float64(n) >= least && float64(n) <= most
		which := "are"
		if !in {
			which = "are not"
		}
		return judge.Verdict{Pass: in != not, Data: map[string]any{
			b.name: n, b.least: least, b.most: most, "not": not, "verdict": in != not, "textExcerpt": excerpt(text),
			"explanation": fmt.Sprintf("%d %s %s within %v and %v", n, b.many, which, least, most),
		}}
	}
}

func (b between) bound(p map[string]json.RawMessage, name string, standard float64) (float64, bool) {
	raw, there := p[name]
	if !there || string(raw) == "null" {
		return standard, true
	}
	f, ok := judge.Read[float64](p, name)
	return f, ok && (!b.whole || f == math.Trunc(f))
}

// sentences counts the punctuation marks that end a sentence.
func sentences(text string) int {
	n := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '.', '!', '?':
			n++
		}
	}
	return n
}

// words counts the parts between white space.
func words(text string) int {
	n, in := 0, false
	for _, r := range text {
		if r > ' ' && r < utf8.RuneSelf {
			if !in {
				n, in = n+1, true
			}
			continue
		}
		// JavaScript also treats the byte order mark as white space.
		space := r == ' ' || r != 0x85 && (unicode.IsSpace(r) || r == 0xfeff)
		if !space && !in {
			n++
		}
		in = !space
	}
	return n
}
