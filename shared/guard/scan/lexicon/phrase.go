package lexicon

import (
	"math/bits"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// Phrases finds phrases in a text. A phrase is a sequence of steps; a step is one of several
// words, and up to a given number of other words may precede it.
type Phrases struct {
	rules   []Rule
	words   *Set
	entries [][]entry // by the number of a word
	gaps    []int32   // by step, for all rules
	states  sync.Pool
}

// Rule is a phrase.
type Rule struct {
	Label  string
	Weight float64
}

// Hit is an occurrence of a phrase, by the number of its rule.
type Hit struct{ Rule, Start, End int }

// entry states that a word is a step of a rule.
type entry struct {
	step int32
	rule int32 // of the last step, else -1
}

type state struct {
	at    []int32 // for each step, the position where its word was last seen, from 1
	start []int32 // where the phrase of each step begins
}

// Compile parses phrases, one per line:
//
//	$what = rules|instructions
//	label 0.6: ignore|forget ~3 previous|prior ~2 $what
//
// A line defines a name for words, or a label, a weight and steps. ~3 allows up to three words
// before the step. Words are folded like a Reader folds them. Each character of a script
// without spaces is a word, and two of them may be written as one. Compile panics on an error,
// because phrases are part of the program.
func Compile(text string) *Phrases {
	c := &compiler{names: map[string]string{}, words: map[uint64]uint16{}, p: &Phrases{}}
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			c.line(line)
		}
	}
	for _, list := range c.p.entries {
		// Later steps come first, so that one word does not count as two steps of a phrase.
		sort.Slice(list, func(i, j int) bool { return list[i].step > list[j].step })
	}
	c.p.words = NewSet(c.words)
	n := len(c.p.gaps)
	c.p.states.New = func() any { return &state{make([]int32, n), make([]int32, n)} }
	return c.p
}

type compiler struct {
	names map[string]string
	words map[uint64]uint16
	p     *Phrases
}

func (c *compiler) line(line string) {
	if name, list, ok := strings.Cut(line, " = "); ok && strings.HasPrefix(line, "$") {
		c.names[name] = c.expand(list)
		return
	}
	head, steps, ok := strings.Cut(line, ": ")
	label, number, weighted := strings.Cut(head, " ")
	weight, err := strconv.ParseFloat(number, 64)
	if !ok || !weighted || err != nil {
		panic("lexicon: no phrase: " + line)
	}
	c.p.rules = append(c.p.rules, Rule{label, weight})
	gap, first := 0, true
	fields := strings.Fields(steps)
	for i, f := range fields {
		if n, ok := strings.CutPrefix(f, "~"); ok {
			if gap, err = strconv.Atoi(n); err != nil {
				panic("lexicon: no gap: " + line)
			}
			continue
		}
		e := entry{step: int32(len(c.p.gaps)), rule: -1}
		if i == len(fields)-1 {
			e.rule = int32(len(c.p.rules) - 1)
		}
		if first {
			gap = -1
		}
		c.p.gaps = append(c.p.gaps, int32(gap))
		c.step(e, f)
		gap, first = 0, false
	}
}

// expand replaces a name by its words.
func (c *compiler) expand(list string) string {
	words := strings.Split(list, "|")
	for i, w := range words {
		if strings.HasPrefix(w, "$") {
			named, ok := c.names[w]
			if !ok {
				panic("lexicon: no name: " + w)
			}
			words[i] = named
		}
	}
	return strings.Join(words, "|")
}

func (c *compiler) step(e entry, alternates string) {
	for _, w := range strings.Split(c.expand(alternates), "|") {
		h := Hash(w)
		n, ok := c.words[h]
		if !ok {
			n = uint16(len(c.p.entries))
			c.words[h] = n
			c.p.entries = append(c.p.entries, nil)
		}
		if !slices.Contains(c.p.entries[n], e) {
			c.p.entries[n] = append(c.p.entries[n], e)
		}
	}
}

// Rules returns the phrases by number.
func (p *Phrases) Rules() []Rule { return p.rules }

// Find appends the phrases of a text to hits, in the order of their ends.
func (p *Phrases) Find(hits []Hit, text string) []Hit {
	st := p.states.Get().(*state)
	clear(st.at)
	m := match{p: p, state: st, hits: hits}
	r := Reader{Text: text}
	var w Word
	var letters spelled
	var before Word
	for r.Next(&w) {
		if h, ok := letters.add(&w, text); ok {
			m.word(h, letters.start, before.End, 1)
		}
		if letters.count <= 1 { // separated letters of a word count as one word
			m.place++
		}
		if !m.word(w.Hash, w.Start, w.End, 1) && w.NormalizedHash != 0 {
			m.word(w.NormalizedHash, w.Start, w.End, 1)
		}
		if w.NoSpaces && before.NoSpaces && before.End == w.Start {
			m.word(mix(before.Hash, w.letter), before.Start, w.End, 2)
		}
		before = w
	}
	if h, ok := letters.end(); ok {
		m.word(h, letters.start, before.End, 1)
	}
	p.states.Put(st)
	return m.hits
}

type match struct {
	p *Phrases
	*state
	place int32
	hits  []Hit
}

// word advances each phrase that has the word as its next step; the word takes the given number
// of positions.
func (m *match) word(h uint64, start, end int, places int32) bool {
	n, ok := m.p.words.Find(h)
	if !ok {
		return false
	}
	for _, e := range m.p.entries[n] {
		gap := m.p.gaps[e.step]
		if gap < 0 {
			m.start[e.step] = int32(start)
		} else {
			last := m.at[e.step-1]
			if last == 0 || last > m.place-places || m.place-last-places > gap {
				continue
			}
			m.start[e.step] = m.start[e.step-1]
		}
		m.at[e.step] = m.place
		if e.rule >= 0 {
			m.hits = append(m.hits, Hit{int(e.rule), int(m.start[e.step]), end})
		}
	}
	return true
}

// spelled joins separated letters: i g n o r e.
type spelled struct {
	hash         uint64
	count, start int
	last         int // the end of the last letter
}

// add processes the next word. It returns the word that the preceding letters spelled, if they
// end here.
func (s *spelled) add(w *Word, text string) (uint64, bool) {
	if w.One != 0 && s.count > 0 && w.Start == s.last+1 {
		s.hash, s.last = mix(s.hash, uint64(w.One)), w.End
		s.count++
		return 0, false
	}
	h, ok := s.end()
	if w.One != 0 {
		s.next(w)
	}
	return h, ok
}

func (s *spelled) end() (uint64, bool) {
	h, ok := s.hash, s.count >= 3
	s.count = 0
	return h, ok
}

func (s *spelled) next(w *Word) {
	s.hash, s.count, s.start, s.last = mix(seed, uint64(w.One)), 1, w.Start, w.End
}

// Set maps words to numbers. It is immutable.
type Set struct {
	keys   []uint64
	values []uint16
	shift  uint
}

// NewSet returns a set of hashes. Values are at most 65,535.
func NewSet(words map[uint64]uint16) *Set {
	size := max(4, bits.Len(uint(len(words)*3)))
	s := &Set{keys: make([]uint64, 1<<size), values: make([]uint16, 1<<size), shift: uint(64 - size)}
	for h, v := range words {
		i := s.slot(h)
		for s.keys[i] != 0 {
			i = (i + 1) & (len(s.keys) - 1)
		}
		s.keys[i], s.values[i] = h, v
	}
	return s
}

func (s *Set) slot(h uint64) int { return int(h * 0x9E3779B97F4A7C15 >> s.shift) }

// Find returns the number of a word.
func (s *Set) Find(h uint64) (uint16, bool) {
	for i := s.slot(h); ; i = (i + 1) & (len(s.keys) - 1) {
		switch s.keys[i] {
		case h:
			return s.values[i], h != 0
		case 0:
			return 0, false
		}
	}
}
