package basic

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"unicode"
	"unicode/utf8"

	"gateway/shared/guard/judge"
)

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
			return judge.Nothing("Missing text to analyze")
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
