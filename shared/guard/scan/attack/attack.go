// Package attack scores how much a text looks like an attack on the model that reads it:
// orders to ignore its orders, to reveal them, or to play somebody without limits, and
// orders hidden in data.
package attack

import (
	_ "embed" // for the phrases
	"slices"
	"sync"

	"gateway/shared/guard/scan/invisible"
	"gateway/shared/guard/scan/lexicon"
)

//go:embed rules.txt
var rules string

var phrases = sync.OnceValue(func() *lexicon.Phrases { return lexicon.Compile(rules) })

// Standard is the least score that counts as an attack.
const Standard = 0.5

// Result is how a text looks.
type Result struct {
	Score float64  // from 0 to 1
	Kinds []string // override, leak, role, coax, inject, hidden
}

// Score tells how much a text looks like an attack. Each phrase in it counts once: one is a
// sign, several ensure.
//
// On the cases of the test at Standard (64 attacks in 10 languages, 64 twins that use the same
// words): precision 0.98, recall 0.95. The cases were known when the phrases were written, so
// both are lower on other texts. An attack that is told as a story, or in words separate, is
// not found. What this finds cheaply is the bulk of attacks, which are copied from one place to
// another.
func Score(text string) Result {
	p := phrases()
	var buf [16]lexicon.Hit
	hits := p.Find(buf[:0], text)
	rest := 1.0
	var r Result
	var once [4]uint64 // one bit for each phrase
	for _, h := range hits {
		if once[h.Rule/64]>>(h.Rule%64)&1 != 0 {
			continue
		}
		once[h.Rule/64] |= 1 << (h.Rule % 64)
		rule := p.Rules()[h.Rule]
		rest *= 1 - rule.Weight
		r.add(rule.Label)
	}
	if count, _ := invisible.Find(text); count[invisible.Tags] > 7 {
		rest *= 0.3
		r.add("hidden")
	}
	r.Score = 1 - rest
	return r
}

func (r *Result) add(kind string) {
	if !slices.Contains(r.Kinds, kind) {
		r.Kinds = append(r.Kinds, kind)
	}
}
