package pii

import (
	"strings"

	"gateway/shared/guard/scan/lexicon"
)

// address finds an address at a word that indicates one.
func (w *walker) address(one *word) bool {
	switch {
	case one.what&(street|road) != 0 && w.street(one):
	case one.what&rue != 0 && w.rue(one):
	case one.what&box != 0 && w.box(one):
	case one.what&state != 0 && one.End-one.Start == 2 && w.zip(one):
	case one.End-one.Start > 5 && w.compound(one):
	default:
		return false
	}
	return true
}

func (w *walker) number(one *word) bool {
	s := w.finder.text[one.Start:one.End]
	n := 0
	for n < len(s) && class[s[n]]&digit != 0 {
		n++
	}
	return n > 0 && n <= 5 && len(s)-n <= 1
}

// street finds 12 Main Street around Street.
func (w *walker) street(one *word) bool {
	capital := one.Capital
	if !capital && one.what&road == 0 {
		return false
	}
	at, names := one.Start, 0
	for k := 1; k <= before; k++ {
		p := w.back(k)
		if p == nil || !w.joined(p.End, at, ".,") || p.Start < w.end {
			return false
		}
		if names > 0 && w.number(p) {
			if names > 2 && !capital {
				return false
			}
			w.put(p.Start, w.further(one.End), Address)
			return true
		}
		ordinal := class[w.finder.text[p.Start]]&digit != 0
		if capital && !p.Capital && !ordinal || !capital && p.what&(never|particle) != 0 {
			return false
		}
		at = p.Start
		names++
	}
	return false
}

// further takes the words that follow a street: an apartment, a town, a state, a postal code.
func (w *walker) further(at int) int {
	end := at
	if end < len(w.finder.text) && w.finder.text[end] == '.' {
		if end+1 < len(w.finder.text) && w.finder.text[end+1] == ',' {
			end++
		}
	}
	r := lexicon.Reader{Text: w.finder.text[end:min(len(w.finder.text), end+120)]}
	from, seen := end, end
	for range 7 {
		one, ok := next(&r)
		if !ok {
			break
		}
		one.Start, one.End = one.Start+from, one.End+from
		gap := w.finder.text[seen:one.Start]
		s := w.finder.text[one.Start:one.End]
		code := len(s) <= 7 && class[s[0]]&digit != 0 && len(s) >= 3 || len(s) <= 4 && s == strings.ToUpper(s) && class[s[len(s)-1]]&(digit|alpha) != 0
		switch {
		case gap == ", " && (one.Capital || code), gap == " " && code, (gap == " " || gap == " #" || gap == ", #") && seen > at && (one.Capital || class[s[0]]&digit != 0 && len(s) < 6), gap == "\n" && (one.Capital || code) && seen == at:
			if one.what&never != 0 && gap != ", " {
				return seen
			}
			if one.what&(never|subject) != 0 && !code {
				return seen
			}
		case (gap == " " || gap == ", ") && one.what&unit != 0:
		default:
			return seen
		}
		seen = one.End
	}
	return seen
}

// rue finds 12 rue de la Paix and Calle Mayor 15 around the first word.
func (w *walker) rue(one *word) bool {
	start := one.Start
	numbered := false
	if p := w.back(1); p != nil && w.number(p) && w.joined(p.End, one.Start, ",") && p.Start >= w.end {
		start, numbered = p.Start, true
	}
	if !one.Capital && !numbered && one.what&street == 0 && len(w.finder.text[one.Start:one.End]) < 5 && w.finder.text[one.Start:one.End] != "rue" && w.finder.text[one.Start:one.End] != "ul" {
		return false
	}
	r := w.reader
	end, names := one.End, 0
	for range 6 {
		two, ok := next(&r)
		if !ok {
			break
		}
		gap := w.finder.text[end:two.Start]
		if w.number(&two) && names > 0 && !numbered && (gap == " " || gap == ", ") {
			w.put(start, w.further(two.End), Address)
			return true
		}
		small := two.what&particle != 0 || two.Hash == des || two.One != 0
		if gap != " " && gap != ". " && gap != "-" && gap != "’" && gap != "'" || !two.Capital && !small || two.what&street != 0 && one.what&street != 0 {
			break
		}
		end = two.End
		if two.Capital {
			names++
		}
	}
	if numbered && names > 0 {
		w.put(start, w.further(end), Address)
		return true
	}
	return false
}

var des = lexicon.Hash("des")

// compound finds Hauptstraße 5 around Hauptstraße.
func (w *walker) compound(one *word) bool {
	if !one.Capital {
		return false
	}
	s, end := w.finder.text[one.Start:one.End], one.End
	is := false
	for _, c := range compounds {
		is = is || strings.HasSuffix(s, c)
	}
	if !is {
		return false
	}
	if end < len(w.finder.text) && w.finder.text[end] == '.' && strings.HasSuffix(s, "str") {
		end++
	}
	r := w.reader
	two, ok := next(&r)
	if !ok || w.finder.text[end:two.Start] != " " || !w.number(&two) {
		return false
	}
	w.put(one.Start, w.further(two.End), Address)
	return true
}

// box finds P.O. Box 12.
func (w *walker) box(one *word) bool {
	r := w.reader
	two, ok := next(&r)
	if !ok || !w.joined(one.End, two.Start, ":") || class[w.finder.text[two.Start]]&digit == 0 || two.End-two.Start > 7 {
		return false
	}
	start := one.Start
	if strings.EqualFold(w.finder.text[one.Start:one.End], "box") {
		p := w.back(1)
		if p == nil || p.One != 'o' && p.Hash != po {
			return false
		}
		start = p.Start
		if q := w.back(2); p.One == 'o' && q != nil && q.One == 'p' {
			start = q.Start
		}
	}
	w.put(start, w.further(two.End), Address)
	return true
}

var po = lexicon.Hash("po")

// zip finds Springfield, IL 62704 around the state.
func (w *walker) zip(one *word) bool {
	if s := w.finder.text[one.Start:one.End]; s != strings.ToUpper(s) {
		return false
	}
	r := w.reader
	two, ok := next(&r)
	if !ok || w.finder.text[one.End:two.Start] != " " || two.End-two.Start != 5 || !digits(w.finder.text[two.Start:two.End]) {
		return false
	}
	start := one.Start
	for k, gap := 1, ", "; k <= 3; k, gap = k+1, " " {
		p := w.back(k)
		if p == nil || !p.Capital || w.finder.text[p.End:start] != gap && w.finder.text[p.End:start] != " " || p.Start < w.end {
			break
		}
		start = p.Start
	}
	if start == one.Start {
		return false
	}
	w.put(start, two.End, Address)
	return true
}
