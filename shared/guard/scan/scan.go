package scan

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"gateway/shared/guard/judge"
	"gateway/shared/guard/scan/attack"
	"gateway/shared/guard/scan/harm"
	"gateway/shared/guard/scan/mask"
	"gateway/shared/guard/scan/pii"
	"gateway/shared/guard/scan/secret"
	"gateway/shared/guard/scan/tongue"
	"gateway/shared/guard/scan/unseen"
)

// Funcs gives the function of each check that needs no vendor, by its id.
func Funcs() map[string]judge.Func {
	return map[string]judge.Func{
		"gateway.pii":              people,
		"gateway.secrets":          secrets,
		"gateway.promptInjection":  attacks,
		"gateway.language":         language,
		"gateway.gibberish":        gibberish,
		"gateway.moderateContent":  moderate,
		"gateway.profanity":        profanity,
		"gateway.invisibleUnicode": invisible,
		"gateway.systemPromptLeak": leaks,
	}
}

// parameter reads one, or gives what stands for it.
func parameter[T any](s *judge.Subject, name string, standard T) T {
	raw, ok := s.Parameters[name]
	if !ok {
		return standard
	}
	v := standard
	if json.Unmarshal(raw, &v) != nil {
		return standard
	}
	return v
}

// texts are those of a list, or one text.
func texts(s *judge.Subject, name string) []string {
	if one := parameter(s, name, ""); one != "" {
		return []string{one}
	}
	return parameter(s, name, []string(nil))
}

// joined is the text that is judged as one.
func joined(s *judge.Subject) string {
	var parts []string
	for _, t := range s.Texts {
		if t != "" {
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, "\n")
}

// verdict is one of a check that fails on finding, and the other way round with not.
func verdict(s *judge.Subject, found bool, data map[string]any) judge.Verdict {
	not := parameter(s, "not", false)
	pass := found == not
	data["not"], data["verdict"] = not, pass
	return judge.Verdict{Pass: pass, Data: data}
}

// counts are the finds of all parts by label, without what was found.
func counts(spans [][]mask.Span) map[string]int {
	out := map[string]int{}
	for _, part := range spans {
		for _, s := range part {
			out[s.Label]++
		}
	}
	return out
}

// masking judges by what find finds in each part, and takes it out where the check is
// to redact: then it passes.
func masking(s *judge.Subject, find func(string) []mask.Span) judge.Verdict {
	spans := make([][]mask.Span, len(s.Texts))
	for i, t := range s.Texts {
		spans[i] = find(t)
	}
	found := counts(spans)
	if len(found) == 0 || !parameter(s, "redact", false) {
		return verdict(s, len(found) > 0, map[string]any{"entities": found})
	}
	if s.Kind == "embed" {
		return judge.Failed("Check error", "redact does not go with embeddings")
	}
	out, values := mask.Texts(s.Texts, spans)
	v := judge.Verdict{Pass: true, Texts: out, Data: map[string]any{"entities": found, "redacted": true, "verdict": true, "not": parameter(s, "not", false)}}
	if parameter(s, "restore", false) {
		v.Restore = values
	}
	return v
}

func people(_ context.Context, s *judge.Subject) judge.Verdict {
	set := pii.Of(texts(s, "categories"))
	return masking(s, func(t string) []mask.Span { return pii.Find(t, set) })
}

func secrets(_ context.Context, s *judge.Subject) judge.Verdict {
	o := secret.Options{Chance: parameter(s, "entropy", true)}
	return masking(s, func(t string) []mask.Span { return secret.Find(t, o) })
}

func profanity(_ context.Context, s *judge.Subject) judge.Verdict {
	return masking(s, harm.Profanity)
}

func attacks(_ context.Context, s *judge.Subject) judge.Verdict {
	r := attack.Score(joined(s))
	least := parameter(s, "threshold", attack.Standard)
	return verdict(s, r.Score > 0 && r.Score >= least, map[string]any{"score": r.Score, "threshold": least, "kinds": r.Kinds})
}

// language passes a text in one of the languages, and one that has none to tell.
func language(_ context.Context, s *judge.Subject) judge.Verdict {
	code, sure := tongue.Detect(joined(s))
	want := texts(s, "language")
	other := code != "" && len(want) > 0 && !slices.ContainsFunc(want, func(w string) bool { return tongue.Same(w, code) })
	if code == "" { // with not too
		return judge.Verdict{Pass: true, Data: map[string]any{"language": nil, "score": 0, "verdict": true, "not": parameter(s, "not", false)}}
	}
	return verdict(s, other, map[string]any{"language": code, "score": sure})
}

// noisy is the part of a text from which on it is gibberish.
const noisy = 0.4

func gibberish(_ context.Context, s *judge.Subject) judge.Verdict {
	score := tongue.Gibberish(joined(s))
	label := "clean"
	if score >= noisy {
		label = "noise"
	}
	return verdict(s, score >= noisy, map[string]any{"label": label, "score": score})
}

func moderate(_ context.Context, s *judge.Subject) judge.Verdict {
	want := texts(s, "categories")
	flagged := slices.DeleteFunc(harm.Categories(joined(s)), func(c string) bool { return !slices.Contains(want, c) })
	return verdict(s, len(flagged) > 0, map[string]any{"flaggedCategories": flagged})
}

func invisible(_ context.Context, s *judge.Subject) judge.Verdict {
	found := map[string]int{}
	out := make([]*string, len(s.Texts))
	for i, t := range s.Texts {
		count, clean := unseen.Find(t)
		for k, n := range count {
			if n > 0 {
				found[unseen.Names[k]] += n
				out[i] = &clean
			}
		}
	}
	if len(found) == 0 || !parameter(s, "redact", false) {
		return verdict(s, len(found) > 0, map[string]any{"characters": found})
	}
	return judge.Verdict{Pass: true, Texts: out, Data: map[string]any{"characters": found, "redacted": true, "verdict": true, "not": parameter(s, "not", false)}}
}
