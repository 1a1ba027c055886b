package pii

import (
	"strings"

	"gateway/shared/guard/scan/lexicon"
)

// word is a word with its roles.
type word struct {
	lexicon.Word
	what uint16
}

// before is the number of words before the indicator where an address may begin.
const before = 6

type walker struct {
	finder *finder
	set    Set
	reader lexicon.Reader
	last   [8]word // the latest words, the newest at n-1 modulo 8
	n      int
	end    int // end of the last match among words
}

// words scans the words once. A copy of the reader looks ahead after a sign, up to a limit.
func (f *finder) words(set Set) {
	w := walker{finder: f, set: set, reader: lexicon.Reader{Text: f.text}}
	for {
		one, ok := next(&w.reader)
		if !ok {
			return
		}
		if one.Start >= w.end && (one.what != 0 || one.Capital) {
			w.look(&one)
		}
		w.last[w.n%len(w.last)] = one
		w.n++
	}
}

func next(r *lexicon.Reader) (word, bool) {
	var w word
	if !r.Next(&w.Word) {
		return w, false
	}
	w.what, _ = lists().Find(w.Hash)
	return w, true
}

func (w *walker) put(start, end int, k Kind) {
	w.finder.out = append(w.finder.out, found{start, end, k})
	w.end = end
}

// back returns the k-th word before the current one, from 1.
func (w *walker) back(k int) *word {
	if k > w.n || k > len(w.last) {
		return nil
	}
	return &w.last[(w.n-k)%len(w.last)]
}

// joined reports whether two words are separated only by a space, or by one of signs and a
// space.
func (w *walker) joined(a, b int, signs string) bool {
	gap := w.finder.text[a:b]
	if gap == " " {
		return true
	}
	rest := strings.TrimRight(gap, " ")
	return len(gap)-len(rest) <= 1 && len(rest) <= 1 && (rest == "" || strings.Contains(signs, rest))
}

func (w *walker) look(one *word) {
	if w.set.has(Address) && w.address(one) {
		return
	}
	if !w.set.has(Name) {
		return
	}
	switch {
	case one.Capital && one.what&(first|doubtful) != 0 && !w.named(one):
		w.byFirst(one)
	case one.what&title != 0:
		w.behind(one, ".", 3, true)
	case one.what&alone != 0, one.what&introduce != 0 && w.introduced():
		w.behind(one, ",:", 3, false)
	case one.what&subject != 0 && one.End < len(w.finder.text) && (w.finder.text[one.End] == ':' || w.finder.text[one.End] == '='):
		w.behind(one, ":=", 3, false)
	}
}

// named reports whether a word ends the name of something other than a person: University of
// Michael, Saint Martin Island.
func (w *walker) named(one *word) bool {
	p := w.back(1)
	return p != nil && p.End+1 == one.Start && p.Capital && (p.Hash == saint || p.Hash == san)
}

var saint, san = lexicon.Hash("saint"), lexicon.Hash("san")

// introduced reports whether the preceding word is the subject of an introduction: my name is.
func (w *walker) introduced() bool {
	p := w.back(1)
	return p != nil && p.what&subject != 0
}

// part reports whether a word can be part of a name.
func (w *walker) part(one *word) bool {
	return one.Capital && one.what&never == 0 && class[w.finder.text[one.Start]]&digit == 0 && (one.End-one.Start > 1 || one.One != 0)
}

// byFirst finds a name that begins with a first name.
func (w *walker) byFirst(one *word) {
	end, more := w.rest(one.End, 2)
	p := w.back(1)
	begins := p == nil || p.End < one.Start-1 && strings.ContainsAny(w.finder.text[p.End:one.Start], ".!?\n")
	switch {
	case more == 0 && one.what&first == 0:
		return
	case more > 0 && one.what&first == 0 && begins && more == 1 && w.common(one.End):
		return
	}
	w.put(one.Start, end, Name)
}

// common reports whether nothing explains the capital letter of the following word. A doubtful
// first name needs more than such a word.
func (w *walker) common(at int) bool {
	r := lexicon.Reader{Text: w.finder.text[at:min(len(w.finder.text), at+64)]}
	two, ok := next(&r)
	return ok && two.what&(street|road|rue|state|unit) != 0
}

// behind finds a name that begins directly after a word.
func (w *walker) behind(one *word, signs string, most int, titled bool) {
	r := w.reader
	two, ok := next(&r)
	if !ok || !w.joined(one.End, two.Start, signs) || !w.part(&two) {
		return
	}
	if titled && (!one.Capital && one.what&(street|first) != 0 || w.finder.text[one.Start:one.End] == "Don") {
		return
	}
	if titled && two.End-two.Start == 1 && two.End < len(w.finder.text) && w.finder.text[two.End] != '.' {
		return
	}
	end, _ := w.rest(two.End, most-1)
	w.put(two.Start, end, Name)
}

// rest takes up to the given number of further parts of a name from at. It returns the end of
// the name and the number of parts.
func (w *walker) rest(at, most int) (end, more int) {
	r := lexicon.Reader{Text: w.finder.text[at:min(len(w.finder.text), at+80)]}
	end = at
	seen := at
	for more < most {
		one, ok := next(&r)
		if !ok {
			break
		}
		one.Start, one.End = one.Start+at, one.End+at
		gap := w.finder.text[seen:one.Start]
		initial := seen > at && gap == ". " && w.finder.text[seen-2] == ' '
		if gap != " " && gap != "-" && !initial {
			break
		}
		if one.what&particle != 0 && !one.Capital {
			seen = one.End
			continue
		}
		if !w.part(&one) {
			break
		}
		seen, end = one.End, one.End
		if one.End-one.Start == 1 { // an initial counts only with the name that follows
			continue
		}
		more++
	}
	return end, more
}
