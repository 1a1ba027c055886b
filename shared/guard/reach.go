package guard

import (
	"regexp/syntax"
	"unicode/utf8"
)

// Reach says how much of a text must be seen at once so that nothing that a pattern
// looks for is missed when the text comes in pieces.
type Reach struct {
	Whole bool // all of it: no bound is known
	Most  int  // so many characters, unless Words
	Words bool // and pieces must end with words: what is looked for is within one, or ends with one
	Grown bool // and a piece must be judged with all that came before it
}

// And is what both need.
func (r Reach) And(o Reach) Reach {
	return Reach{r.Whole || o.Whole, max(r.Most, o.Most), r.Words || o.Words, r.Grown || o.Grown}
}

// MaxReach is the most characters for which pieces are looked at one by one.
const MaxReach = 4000

// ReachOf is that of a pattern, or of /pattern/flags where replaced is true.
//
// Every match has one that is the shortest around the same place: repetitions at its
// ends count with the fewest that they need. Whoever sees that one need not see more.
// Repetitions between other parts can be of any length: where what is repeated has no
// white space, and nothing else of the pattern has, the match is within one word.
// Patterns that look around themselves, back, or for the ends of the text know no bound.
func ReachOf(text string, replaced bool) Reach {
	if replaced {
		text, _ = flagged(text)
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return Reach{Whole: true}
	}
	m := measureOf(shortest(re))
	switch {
	case m.anchored || m.endless && m.blank || m.most > MaxReach:
		return Reach{Whole: true}
	case m.endless:
		return Reach{Words: true}
	}
	return Reach{Most: max(m.most, 1), Words: m.words}
}

// shortest is a pattern with the repetitions at its ends cut to what they need.
func shortest(re *syntax.Regexp) *syntax.Regexp {
	re = edge(re, false)
	return edge(re, true)
}

// edge cuts the repetition that a pattern begins or ends with. Anything that may be
// empty may be followed by another one, which then stands at the end; that is left.
func edge(re *syntax.Regexp, last bool) *syntax.Regexp {
	now := *re
	switch re.Op {
	case syntax.OpStar, syntax.OpQuest:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	case syntax.OpPlus:
		return edge(re.Sub[0], last)
	case syntax.OpRepeat:
		if re.Min == 0 {
			return &syntax.Regexp{Op: syntax.OpEmptyMatch}
		}
		now.Max = re.Min
	case syntax.OpCapture:
		return edge(re.Sub[0], last)
	case syntax.OpAlternate:
		now.Sub = make([]*syntax.Regexp, len(re.Sub))
		for i, sub := range re.Sub {
			now.Sub[i] = edge(sub, last)
		}
	case syntax.OpConcat:
		now.Sub = append([]*syntax.Regexp(nil), re.Sub...)
		for n := range now.Sub {
			i := n
			if last {
				i = len(now.Sub) - 1 - n
			}
			if now.Sub[i] = edge(now.Sub[i], last); now.Sub[i].Op != syntax.OpEmptyMatch {
				break
			}
		}
	}
	return &now
}

// measure is what is known of the texts that a pattern matches.
type measure struct {
	most     int  // characters, where it is not endless
	endless  bool // it has a repetition without a bound
	blank    bool // white space may be in it
	words    bool // it looks at ends of words
	anchored bool // it looks at ends of the text or of lines
}

func measureOf(re *syntax.Regexp) (m measure) {
	switch re.Op {
	case syntax.OpLiteral:
		m.most = len(re.Rune)
		for _, r := range re.Rune {
			m.blank = m.blank || Ends(r)
		}
	case syntax.OpCharClass:
		m.most = 1
		for i := 0; i+1 < len(re.Rune); i += 2 {
			m.blank = m.blank || hasSpace(re.Rune[i], re.Rune[i+1])
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		m.most, m.blank = 1, true
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText:
		m.anchored = true
	case syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		m.words = true
	case syntax.OpStar, syntax.OpPlus:
		m = measureOf(re.Sub[0])
		m.endless = m.endless || m.most > 0
	case syntax.OpRepeat:
		m = measureOf(re.Sub[0])
		m.endless = m.endless || re.Max < 0 && m.most > 0
		m.most = min(m.most*max(re.Max, re.Min), MaxReach+1)
	case syntax.OpQuest, syntax.OpCapture:
		m = measureOf(re.Sub[0])
	case syntax.OpConcat, syntax.OpAlternate:
		for _, sub := range re.Sub {
			s := measureOf(sub)
			if re.Op == syntax.OpConcat {
				m.most = min(m.most+s.most, MaxReach+1)
			} else {
				m.most = max(m.most, s.most)
			}
			m.endless, m.blank, m.words, m.anchored = m.endless || s.endless, m.blank || s.blank, m.words || s.words, m.anchored || s.anchored
		}
	}
	return m
}

// Ends tells whether a character ends a word. Others that look like white space may be
// what a pattern takes for a part of one.
func Ends(r rune) bool { return r == ' ' || r == '\n' || r == '\t' || r == '\r' || r == '\f' }

func hasSpace(from, to rune) bool {
	for _, r := range " \n\t\r\f" {
		if from <= r && r <= to {
			return true
		}
	}
	return false
}

// ReachOfWords is that of words that are looked for as they stand.
func ReachOfWords(words []string) (r Reach) {
	r.Most = 1
	for _, w := range words {
		r.Most = max(r.Most, utf8.RuneCountInString(w))
	}
	r.Whole = r.Most > MaxReach
	return r
}
