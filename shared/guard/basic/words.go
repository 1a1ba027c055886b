package basic

import (
	"context"
	"encoding/json"
	"strings"

	"gateway/shared/guard/judge"
)

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
			return judge.Nothing("Missing text to check")
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
				return judge.Nothing("Missing text to check")
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
			return judge.Verdict{Pass: true, Data: &nullData{not, true, "The answer calls tools: the check is skipped"}}
		}
		is := strings.TrimSpace(s.Text()) != ""
		d := &nullData{not, is != not, "The answer has content"}
		if !is {
			d.Explanation = "The answer is empty"
		}
		return judge.Verdict{Pass: d.Verdict, Data: d}
	}
}
