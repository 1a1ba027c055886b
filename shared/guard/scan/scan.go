// Package scan implements the checks that need no vendor, by the scanners in its subpackages.
// They use lists, patterns and rules on this machine. The comment of each scanner describes
// what it finds and misses.
package scan

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"gateway/shared/guard"
	"gateway/shared/guard/judge"
	"gateway/shared/guard/scan/attack"
	"gateway/shared/guard/scan/harm"
	"gateway/shared/guard/scan/invisible"
	"gateway/shared/guard/scan/langdetect"
	"gateway/shared/guard/scan/leak"
	"gateway/shared/guard/scan/mask"
	"gateway/shared/guard/scan/pii"
	"gateway/shared/guard/scan/secret"
)

// Makers returns the makers of the checks that need no vendor, by id.
func Makers() map[string]judge.Maker {
	all := map[string]judge.Maker{
		"gateway.pii":              people,
		"gateway.secrets":          secrets,
		"gateway.promptInjection":  attacks,
		"gateway.language":         language,
		"gateway.gibberish":        gibberish,
		"gateway.moderateContent":  moderate,
		"gateway.profanity":        profanity,
		"gateway.invisibleUnicode": invisibleCharacters,
		"gateway.systemPromptLeak": leaks,
	}
	for id, make := range all {
		all[id] = named(id, make)
	}
	return all
}

// named returns a maker whose check fails with an error if a list among its parameters names
// what does not exist: a misspelled category in the config of a request would check nothing.
func named(id string, make judge.Maker) judge.Maker {
	return func(p map[string]json.RawMessage) judge.Func {
		row, ok := guard.Find(id)
		if !ok {
			return make(p)
		}
		for _, param := range row.Params {
			if param.Type != guard.Texts && param.Type != guard.Listed && param.Type != guard.TextOrList || len(param.Enum) == 0 {
				continue
			}
			if slices.ContainsFunc(judge.List(p, param.Name), func(s string) bool { return !slices.Contains(param.Enum, s) }) {
				message := param.Name + " must contain only " + strings.Join(param.Enum, ", ")
				return func(context.Context, *judge.Subject) judge.Verdict { return judge.Failed("Error", message) }
			}
		}
		return make(p)
	}
}

// options are parameters of many of these checks.
type options struct{ not, redact, restore bool }

func optionsOf(p map[string]json.RawMessage) options {
	return options{judge.Get(p, "not", false), judge.Get(p, "redact", false), judge.Get(p, "restore", false)}
}

// verdict returns the verdict of a check that fails on a match or, with not, without one.
func (o options) verdict(found bool, data map[string]any) judge.Verdict {
	pass := found == o.not
	data["not"], data["verdict"] = o.not, pass
	return judge.Verdict{Pass: pass, Data: data}
}

// changed returns the verdict of a check that removed its matches.
func (o options) changed(texts []*string, data map[string]any) judge.Verdict {
	data["redacted"], data["verdict"], data["not"] = true, true, o.not
	return judge.Verdict{Pass: true, Texts: texts, Data: data}
}

// counts returns the number of matches in all parts by label, without the texts.
func counts(spans [][]mask.Span) map[string]int {
	out := map[string]int{}
	for _, part := range spans {
		for _, s := range part {
			out[s.Label]++
		}
	}
	return out
}

// masking returns a check that judges by the matches in each part. If it redacts, it removes
// the matches and passes.
func masking(p map[string]json.RawMessage, find func(string) []mask.Span) judge.Func {
	o := optionsOf(p)
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		spans := make([][]mask.Span, len(s.Texts))
		for i, t := range s.Texts {
			spans[i] = find(t)
		}
		found := counts(spans)
		if len(found) == 0 || !o.redact {
			return o.verdict(len(found) > 0, map[string]any{"entities": found})
		}
		out, values := mask.Texts(s.Texts, spans)
		v := o.changed(out, map[string]any{"entities": found})
		if o.restore {
			v.Restore = values
		}
		return v
	}
}

func people(p map[string]json.RawMessage) judge.Func {
	set := pii.All
	if named := judge.List(p, "categories"); len(named) > 0 {
		set = pii.Of(named)
	}
	return masking(p, func(t string) []mask.Span { return pii.Find(t, set) })
}

func secrets(p map[string]json.RawMessage) judge.Func {
	o := secret.Options{Random: judge.Get(p, "entropy", true)}
	return masking(p, func(t string) []mask.Span { return secret.Find(t, o) })
}

func profanity(p map[string]json.RawMessage) judge.Func { return masking(p, harm.Profanity) }

func attacks(p map[string]json.RawMessage) judge.Func {
	o, least := optionsOf(p), judge.Get(p, "threshold", attack.Standard)
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		r := attack.Score(s.Text())
		return o.verdict(r.Score > 0 && r.Score >= least, map[string]any{"score": r.Score, "threshold": least, "kinds": r.Kinds})
	}
}

// language passes a text in one of the languages, and a text in an undetected language.
func language(p map[string]json.RawMessage) judge.Func {
	o, want := optionsOf(p), judge.List(p, "language")
	if len(want) == 0 {
		return func(context.Context, *judge.Subject) judge.Verdict { return judge.Failed("Error", "Missing language") }
	}
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		code, sure := langdetect.Detect(s.Text())
		if code == "" { // even with not
			return judge.Verdict{Pass: true, Data: map[string]any{"language": nil, "score": 0, "verdict": true, "not": o.not}}
		}
		other := !slices.ContainsFunc(want, func(w string) bool { return langdetect.SameLanguage(w, code) })
		return o.verdict(other, map[string]any{"language": code, "score": sure})
	}
}

// gibberishThreshold is the fraction of a text from which it counts as gibberish.
const gibberishThreshold = 0.4

func gibberish(p map[string]json.RawMessage) judge.Func {
	o := optionsOf(p)
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		score := langdetect.Gibberish(s.Text())
		label := "clean"
		if score >= gibberishThreshold {
			label = "noise"
		}
		return o.verdict(score >= gibberishThreshold, map[string]any{"label": label, "score": score})
	}
}

func moderate(p map[string]json.RawMessage) judge.Func {
	o, want := optionsOf(p), judge.List(p, "categories")
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		flagged := slices.DeleteFunc(harm.Categories(s.Text()), func(c string) bool { return len(want) > 0 && !slices.Contains(want, c) })
		return o.verdict(len(flagged) > 0, map[string]any{"flaggedCategories": flagged})
	}
}

func invisibleCharacters(p map[string]json.RawMessage) judge.Func {
	o := optionsOf(p)
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		found := map[string]int{}
		out := make([]*string, len(s.Texts))
		for i, t := range s.Texts {
			count, clean := invisible.Find(t)
			for k, n := range count {
				if n > 0 {
					found[invisible.Names[k]] += n
					out[i] = &clean
				}
			}
		}
		if len(found) == 0 || !o.redact {
			return o.verdict(len(found) > 0, map[string]any{"characters": found})
		}
		return o.changed(out, map[string]any{"characters": found})
	}
}

// leaks judges how much of the request's system prompt the response reveals.
func leaks(p map[string]json.RawMessage) judge.Func {
	o, least, row := optionsOf(p), judge.Get(p, "threshold", 0.3), judge.Get(p, "minWords", leak.MinLength)
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		share, longest := leak.Share(system(s.Request), s.Text())
		return o.verdict(share > 0 && share >= least || longest >= row, map[string]any{"share": share, "words": longest, "threshold": least})
	}
}

// system returns the system prompt of a request: in messages, beside them, or as instructions.
func system(request json.RawMessage) string {
	var in struct {
		System       json.RawMessage `json:"system"`
		Instructions json.RawMessage `json:"instructions"`
		Messages     []turn          `json:"messages"`
		Input        json.RawMessage `json:"input"`
	}
	if len(request) == 0 || json.Unmarshal(request, &in) != nil {
		return ""
	}
	parts := []string{content(in.System), content(in.Instructions)}
	var items []turn
	_ = json.Unmarshal(in.Input, &items) // a string has no items
	for _, m := range append(in.Messages, items...) {
		if m.Role == "system" || m.Role == "developer" {
			parts = append(parts, content(m.Content))
		}
	}
	return strings.TrimSpace(strings.Join(parts, "\n"))
}

type turn struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// content returns a text, or the texts of its parts.
func content(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct{ Text string }
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text + "\n")
	}
	return b.String()
}
