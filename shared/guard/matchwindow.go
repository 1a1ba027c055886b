package guard

import (
	"regexp/syntax"
	"unicode/utf8"
)

// MatchWindow states how much of a text must be visible at once so that no match is missed when the
// text arrives in pieces.
type MatchWindow struct {
	Complete   bool // the entire text: there is no limit
	Most       int  // this many characters, unless WholeWords is set
	WholeWords bool // pieces must also end with words: a match is within a word or ends with one
	Cumulative bool // a piece must also be judged together with everything before it
	// Overlap is the number of earlier characters that must be judged again with new text. Zero
	// means all that were not sent yet.
	Overlap int
}

// And returns the reach that satisfies both.
func (r MatchWindow) And(o MatchWindow) MatchWindow {
	return MatchWindow{r.Complete || o.Complete, max(r.Most, o.Most), r.WholeWords || o.WholeWords, r.Cumulative || o.Cumulative, max(r.Overlap, o.Overlap)}
}

// MaxMatchWindow is the largest number of characters for which pieces are judged separately.
const MaxMatchWindow = 4000

// PatternWindow returns the reach of a pattern, or of /pattern/flags if replaced is true.
//
// Every match contains a shortest match at the same place, in which the repetitions at its ends
// have their minimum counts. It suffices to see that one. Repetitions between other parts can
// have any length. If neither the repeated part nor anything else in the pattern can match
// white space, the match is within one word. Patterns with lookaround, back references or
// anchors have no limit.
func PatternWindow(text string, replaced bool) MatchWindow {
	if replaced {
		text, _ = splitFlags(text)
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return MatchWindow{Complete: true}
	}
	m := measureOf(shortest(re))
	switch {
	case m.anchored || m.endless && m.blank || m.most > MaxMatchWindow:
		return MatchWindow{Complete: true}
	case m.endless:
		return MatchWindow{WholeWords: true}
	}
	return MatchWindow{Most: max(m.most, 1), WholeWords: m.words}
}

// shortest returns the pattern with the repetitions at its ends reduced to their minimum
// counts.
func shortest(re *syntax.Regexp) *syntax.Regexp {
	re = edge(re, false)
	return edge(re, true)
}

// edge reduces the repetition at the beginning or the end of a pattern. If a part may be empty,
// its neighbor may be at the end instead; such repetitions are not reduced.
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

// measure describes the texts that a pattern matches.
type measure struct {
	most     int  // characters, if the length is limited
	endless  bool // a repetition has no limit
	blank    bool // a match may contain white space
	words    bool // the pattern tests word boundaries
	anchored bool // the pattern tests boundaries of the text or of lines
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
		m.most = min(m.most*max(re.Max, re.Min), MaxMatchWindow+1)
	case syntax.OpQuest, syntax.OpCapture:
		m = measureOf(re.Sub[0])
	case syntax.OpConcat, syntax.OpAlternate:
		for _, sub := range re.Sub {
			s := measureOf(sub)
			if re.Op == syntax.OpConcat {
				m.most = min(m.most+s.most, MaxMatchWindow+1)
			} else {
				m.most = max(m.most, s.most)
			}
			m.endless, m.blank, m.words, m.anchored = m.endless || s.endless, m.blank || s.blank, m.words || s.words, m.anchored || s.anchored
		}
	}
	return m
}

// Ends reports whether a character ends a word. Patterns may count other white space as part of
// a word.
func Ends(r rune) bool { return r == ' ' || r == '\n' || r == '\t' || r == '\r' || r == '\f' }

func hasSpace(from, to rune) bool {
	for _, r := range " \n\t\r\f" {
		if from <= r && r <= to {
			return true
		}
	}
	return false
}

// WordsWindow returns the reach of a literal search for words.
func WordsWindow(words []string) (r MatchWindow) {
	r.Most = 1
	for _, w := range words {
		r.Most = max(r.Most, utf8.RuneCountInString(w))
	}
	r.Complete = r.Most > MaxMatchWindow
	return r
}
