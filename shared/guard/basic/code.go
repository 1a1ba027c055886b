package basic

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"gateway/shared/guard/judge"
)

// tagged maps the tags of code fences to languages.
var tagged = map[string]string{
	"sql": "SQL", "python": "Python", "py": "Python", "gyp": "Python", "typescript": "TypeScript", "ts": "TypeScript", "tsx": "TypeScript",
	"javascript": "JavaScript", "js": "JavaScript", "jsx": "JavaScript", "java": "Java", "csharp": "C#", "cs": "C#", "c#": "C#",
	"cpp": "C++", "c++": "C++", "c": "C", "ruby": "Ruby", "rb": "Ruby", "php": "PHP", "swift": "Swift", "kotlin": "Kotlin", "kt": "Kotlin",
	"go": "Go", "golang": "Go", "rust": "Rust", "rs": "Rust", "scala": "Scala", "r": "R", "perl": "Perl", "pl": "Perl",
	"shell": "Shell", "bash": "Shell", "sh": "Shell", "zsh": "Shell", "html": "HTML", "css": "CSS", "xml": "XML", "json": "JSON",
	"yaml": "YAML", "yml": "YAML", "markdown": "Markdown", "md": "Markdown", "dockerfile": "Dockerfile",
}

type codeData struct {
	Format      string   `json:"format"`
	Not         bool     `json:"not"`
	Verdict     bool     `json:"verdict"`
	Explanation string   `json:"explanation"`
	Found       []string `json:"foundFormats"`
}

// containsCode passes a response that has a fenced block in a language.
func containsCode(raw map[string]json.RawMessage) judge.Func {
	format, not := judge.Get(raw, "format", ""), judge.Get(raw, "not", false)
	if format == "" {
		return constant(failed("Missing format"))
	}
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		text := s.Text()
		if text == "" {
			return judge.Nothing("Missing text to check")
		}
		d := &codeData{Format: format, Not: not, Found: []string{}, Explanation: "There is no block of code"}
		for b := range fences(text) {
			if b.tag == "" {
				continue
			}
			name, known := tagged[strings.ToLower(b.tag)]
			if !known {
				name = b.tag
			}
			if !slices.Contains(d.Found, name) {
				d.Found = append(d.Found, name)
			}
		}
		has := slices.ContainsFunc(d.Found, func(f string) bool { return strings.EqualFold(f, format) })
		switch {
		case has:
			d.Explanation = "There is a block of " + format
		case len(d.Found) > 0:
			d.Explanation = "There is no block of " + format
		}
		d.Verdict = has != not
		return judge.Verdict{Pass: d.Verdict, Data: d}
	}
}

// fence is a block between ``` and ```.
type fence struct{ tag, body string }

// fences iterates over the blocks of a text. The tag is the rest of the opening line, if that
// is one word.
func fences(text string) func(func(fence) bool) {
	return func(yield func(fence) bool) {
		for {
			_, rest, ok := strings.Cut(text, "```")
			if !ok {
				return
			}
			body, after, ok := strings.Cut(rest, "```")
			if !ok {
				return
			}
			text = after
			f := fence{body: body}
			if tag, in, ok := strings.Cut(body, "\n"); ok {
				if tag = strings.TrimSpace(tag); !strings.ContainsAny(tag, " \t{}[]\"") {
					f = fence{tag, in}
				}
			}
			if !yield(f) {
				return
			}
		}
	}
}
