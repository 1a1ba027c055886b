// Package attack scores how much a text resembles a prompt injection: orders to ignore
// instructions, to reveal them, or to act without limits, and orders hidden in data.
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

// Standard is the lowest score that counts as an attack.
const Standard = 0.5

// Result is the score of a text.
type Result struct {
	Score float64  // from 0 to 1
	Kinds []string // override, leak, role, coax, inject, hidden
}

// Score returns how much a text resembles an attack. Each phrase counts once: one is an
// indication, several are decisive.
//
// On the test cases at Standard (64 attacks in 10 languages, 64 harmless texts with the same
// words): precision 0.98, recall 0.95. The phrases were written with the cases in view, so both
// are lower on other texts. Attacks in the form of a story or with unusual words are not found.
// Most attacks are copied and are found cheaply.
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
