package basic

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/dlclark/regexp2"

	"gateway/shared/guard"
	"gateway/shared/guard/judge"
)

// matchData is what regexMatch reports.
type matchData struct {
	Pattern     string        `json:"regexPattern"`
	Not         bool          `json:"not"`
	Verdict     bool          `json:"verdict"`
	Explanation string        `json:"explanation"`
	Details     *matchDetails `json:"matchDetails"`
	Excerpt     string        `json:"textExcerpt"`
}

type matchDetails struct {
	Matched  string            `json:"matchedText"`
	Index    int               `json:"index"` // in UTF-16 code units
	Groups   map[string]string `json:"groups"`
	Captures []string          `json:"captures"`
}

// regexMatch passes a text that matches a pattern; with not, one that does not match.
func regexMatch(raw map[string]json.RawMessage) judge.Func {
	rule, not := judge.Get(raw, "rule", ""), judge.Get(raw, "not", false)
	if rule == "" {
		return constant(failed("Missing regex pattern"))
	}
	re, err := guard.PatternOf(rule)
	if err != nil {
		return constant(failed("The pattern " + err.Error()))
	}
	return func(ctx context.Context, s *judge.Subject) judge.Verdict {
		text := s.Text()
		if text == "" {
			return judge.NoContent("Missing text to match")
		}
		m, err := re.Find(ctx, text)
		if err != nil {
			return judge.TooSlow()
		}
		d := &matchData{Pattern: rule, Not: not, Verdict: (m != nil) != not, Details: details(re, m, text), Excerpt: excerpt(text)}
		switch {
		case m == nil && not:
			d.Explanation = "The text does not match the pattern, as required"
		case m == nil:
			d.Explanation = "The text does not match the pattern"
		case not:
			d.Explanation = "The text matches the pattern, which is not allowed"
		default:
			d.Explanation = "The text matches the pattern"
		}
		return judge.Verdict{Pass: d.Verdict, Data: d}
	}
}

func details(re *guard.Regex, m *regexp2.Match, text string) *matchDetails {
	if m == nil {
		return nil
	}
	d := &matchDetails{Matched: m.String(), Captures: []string{}}
	n := 0
	for i := range text {
		if n == m.Index {
			d.Index = utf16(text[:i])
			break
		}
		n++
	}
	for i, g := range m.Groups() {
		if i == 0 {
			continue
		}
		d.Captures = append(d.Captures, g.String())
		if name := re.GroupName(i); strings.Trim(name, "0123456789") != "" {
			if d.Groups == nil {
				d.Groups = map[string]string{}
			}
			d.Groups[name] = g.String()
		}
	}
	return d
}

type replaceData struct {
	Pattern     string `json:"regexPattern"`
	Verdict     bool   `json:"verdict"`
	Explanation string `json:"explanation"`
}

// regexReplace replaces the matches of a pattern in each part: the first match, or all with the
// flag g.
func regexReplace(raw map[string]json.RawMessage) judge.Func {
	rule, by, fails := judge.Get(raw, "rule", ""), judge.Get(raw, "redactText", "[REDACTED]"), judge.Get(raw, "failOnDetection", false)
	if rule == "" {
		return constant(failed("Missing regex pattern"))
	}
	re, global, err := guard.ReplacedOf(rule)
	if err != nil {
		return constant(failed("The pattern " + err.Error()))
	}
	return func(ctx context.Context, s *judge.Subject) judge.Verdict {
		if s.Text() == "" {
			return judge.NoContent("Missing text to match")
		}
		var out []*string
		for i, text := range s.Texts {
			if text == "" {
				continue
			}
			// The replacement is taken literally: $1 in it is not a group.
			now, found, err := re.Replace(ctx, text, by, global)
			if err != nil {
				return judge.TooSlow()
			}
			if !found {
				continue
			}
			if out == nil {
				out = make([]*string, len(s.Texts))
			}
			out[i] = &now
		}
		d := &replaceData{Pattern: rule, Verdict: !(out != nil && fails), Explanation: "The pattern was not found"}
		if out != nil {
			d.Explanation = "The pattern was found and replaced"
		}
		return judge.Verdict{Pass: d.Verdict, Data: d, Texts: out}
	}
}
