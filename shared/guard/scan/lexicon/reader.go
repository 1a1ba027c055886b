package lexicon

import (
	"unicode"
	"unicode/utf8"
)

// Word is a word of a text.
type Word struct {
	// Hash is the hash of the folded letters, see Hash.
	Hash uint64
	// NormalizedHash is the hash after reading digits as letters and reducing letters that are repeated
	// three or more times; 0 if it is the same.
	NormalizedHash uint64
	Start, End     int
	// One is the folded letter of a word of one letter, otherwise 0.
	One byte
	// NoSpaces is set for a character of a script without spaces.
	NoSpaces bool
	letter   uint64
	// Capital is set if the word begins with a capital letter.
	Capital bool
}

// Reader reads the words of a text.
type Reader struct {
	Text string
	// Accents retains accents and foreign letters, in lower case.
	Accents bool
	at      int
}

// Hash returns the hash under which a reader without Accents finds a word, given in lower case
// without accents.
func Hash(word string) uint64 {
	h := uint64(seed)
	for _, c := range word {
		h = mix(h, uint64(c))
	}
	return h
}

const (
	seed  = 14695981039346656037
	prime = 1099511628211
)

func mix(h, c uint64) uint64 { return (h ^ c) * prime }

// class classifies a byte within a word. For a letter or digit its low bits are the folded
// form.
var class = func() (t [256]byte) {
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-32] = byte(c), byte(c)
	}
	for c := '0'; c <= '9'; c++ {
		t[c] = byte(c)
	}
	for c := 128; c < 256; c++ {
		t[c] = beyond
	}
	t['\''], t['@'], t['$'] = odd, odd, odd
	return t
}()

// leads are the bytes that can begin a word.
var leads = func() (t [256]bool) {
	for c := range t {
		t[c] = class[c] != 0 && c != '\''
	}
	return t
}()

const (
	beyond = 1 // not ASCII
	odd    = 2 // part of a word between letters
)

// Next reads the next word into w. It returns false at the end of the text.
func (r *Reader) Next(w *Word) bool {
	for {
		i := r.at
		for i < len(r.Text) && !leads[r.Text[i]] {
			i++
		}
		if i == len(r.Text) {
			r.at = i
			return false
		}
		if r.word(w, i) {
			return true
		}
	}
}

// word reads the word at i. It returns false if there is none, and then r is after i.
func (r *Reader) word(w *Word, i int) bool {
	text := r.Text
	w.Start, w.NormalizedHash, w.One, w.NoSpaces = i, 0, 0, false
	w.Capital = text[i] >= 'A' && text[i] <= 'Z'
	h, last, run := uint64(seed), byte(0), 0
	slow := false
	for ; i < len(text); i++ {
		c := class[text[i]]
		if c <= odd {
			if c == 0 {
				break
			}
			if c == beyond || i+1 < len(text) && within(text[i+1]) {
				return r.slow(w)
			}
			break
		}
		h = mix(h, uint64(c))
		if c == last {
			run++
			slow = slow || run == 2
		} else {
			last, run = c, 0
		}
		slow = slow || c <= '9'
	}
	if i == w.Start { // a single sign
		r.at = i + 1
		return false
	}
	w.Hash, w.End, r.at = h, i, i
	if i-w.Start == 1 {
		w.One = class[text[w.Start]]
		return true
	}
	if slow {
		w.NormalizedHash = loose(text[w.Start:i])
	}
	return true
}

// within reports whether a sign before c is part of the word.
func within(c byte) bool { return class[c] >= 'a' || class[c] == beyond || c == '$' || c == '@' }

// maxWord is the number of letters that are read: no list has longer words.
const maxWord = 64

// slow reads a word with characters other than ASCII letters and digits.
func (r *Reader) slow(w *Word) bool {
	var buf [maxWord]rune
	n, i := 0, w.Start
	if first, _ := utf8.DecodeRuneInString(r.Text[i:]); unicode.IsUpper(first) {
		w.Capital = true
	}
	var latin, other bool
loop:
	for i < len(r.Text) {
		c, size := rune(r.Text[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(r.Text[i:])
		}
		switch {
		case c < utf8.RuneSelf && class[c] > odd:
			c = rune(class[c])
			latin = latin || c >= 'a'
		case c < utf8.RuneSelf && class[c] == odd:
			if i+1 == len(r.Text) || !within(r.Text[i+1]) {
				break loop
			}
			if c == '\'' {
				i++
				continue
			}
		case c < utf8.RuneSelf:
			break loop
		case skipped(c):
			i += size
			continue
		case alone(c):
			if n > 0 {
				break loop
			}
			w.Hash, w.End, r.at = mix(seed, uint64(c)), i+size, i+size
			w.NoSpaces, w.letter = true, uint64(c)
			return true
		default:
			f := fold(c, r.Accents)
			if f == 0 {
				break loop
			}
			latin = latin || f < utf8.RuneSelf || f < 0x250
			other = other || f >= 0x370
			c = f
		}
		if n < maxWord {
			buf[n] = c
			n++
		}
		i += size
	}
	if n == 0 {
		_, size := utf8.DecodeRuneInString(r.Text[w.Start:])
		r.at = max(i, w.Start+size)
		return false
	}
	r.at, w.End = i, i
	r.finish(w, buf[:n], latin && other)
	return true
}

// finish hashes the letters of a word. If mixed is set, letters of several scripts are read as
// the Latin letters that they resemble.
func (r *Reader) finish(w *Word, letters []rune, mixed bool) {
	h, l := uint64(seed), uint64(seed)
	run := 0
	for k, c := range letters {
		if mixed {
			c = alike(c)
			letters[k] = c
		}
		h = mix(h, uint64(c))
		if k > 0 && letters[k-1] == c {
			run++
		} else {
			run = 0
		}
		if run < 2 {
			l = mix(l, uint64(leet(c)))
		}
	}
	w.Hash = h
	if l != h {
		w.NormalizedHash = l
	}
	if len(letters) == 1 && letters[0] < utf8.RuneSelf {
		w.One = byte(letters[0])
	}
}

// loose returns the hash of an ASCII word, with digits read as letters, and letters that are
// repeated three or more times reduced to one.
func loose(word string) uint64 {
	h := uint64(seed)
	for i := 0; i < len(word); {
		c := class[word[i]]
		j := i + 1
		for j < len(word) && class[word[j]] == c {
			j++
		}
		n := j - i
		if n > 2 {
			n = 1
		}
		for range n {
			h = mix(h, uint64(leet(rune(c))))
		}
		i = j
	}
	return h
}

// leet reads digits and signs as the letters that they represent.
func leet(c rune) rune {
	switch c {
	case '0':
		return 'o'
	case '1':
		return 'i'
	case '3':
		return 'e'
	case '4', '@':
		return 'a'
	case '5', '$':
		return 's'
	case '7':
		return 't'
	}
	return c
}

// skipped are invisible characters within words.
func skipped(c rune) bool {
	return c == 0xAD || c >= 0x300 && c <= 0x36F || c >= 0x200B && c <= 0x200F || c >= 0x202A && c <= 0x202E ||
		c >= 0x2060 && c <= 0x206F || c == 0xFEFF || c >= 0xFE00 && c <= 0xFE0F || c >= 0xE0000 && c <= 0xE01EF || c == 0x2019 || c == 0x34F || c == 0x61C
}

// alone reports whether a character is a separate word, in scripts without spaces.
func alone(c rune) bool {
	return c >= 0x2E80 && c <= 0x9FFF && c != 0x3164 || c >= 0xE00 && c <= 0xE7F || c >= 0xF900 && c <= 0xFAFF || c >= 0x20000 && c <= 0x3FFFF
}

// fold returns the lowercase form of a letter, without accents unless they are retained; 0 for
// anything but a letter or digit.
func fold(c rune, accents bool) rune {
	switch {
	case c >= 0xFF01 && c <= 0xFF5E: // full width
		if k := class[c-0xFEE0]; k > odd {
			return rune(k)
		}
		return 0
	case c >= 0x1D400 && c <= 0x1D6A3: // mathematical letters
		return 'a' + (c-0x1D400)%26
	case c >= 0x24B6 && c <= 0x24E9: // in circles
		return 'a' + (c-0x24B6)%26
	case c >= 0x1F130 && c <= 0x1F149 || c >= 0x1F170 && c <= 0x1F189: // in squares
		return 'a' + (c-0x1F130)%0x40
	}
	c = unicode.ToLower(c)
	if !accents && c >= 0xC0 && int(c-0xC0) < len(plain) {
		if p := plain[c-0xC0]; p != ' ' {
			return rune(p)
		}
	}
	if unicode.IsLetter(c) || unicode.IsMark(c) || unicode.IsDigit(c) {
		return c
	}
	return 0
}

// plain contains the letters from U+00C0 to U+017F without their accents.
const plain = "aaaaaaaceeeeiiiidnooooo ouuuuy saaaaaaaceeeeiiiidnooooo ouuuuy y" +
	"aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkklllllll" +
	"lllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs"

// alike returns the Latin letter that a letter of another script resembles.
func alike(c rune) rune {
	for i, o := range lookalikes {
		if o == c {
			return rune(looks[runeIndex(i)])
		}
	}
	return c
}

const (
	lookalikes = "аеорсухіјѕԁһӏкмтвнгαβεικνορτυχωɑɡ"
	looks      = "aeopcyxijsdhlkmtbhrabeikvoptuxwag"
)

// runeIndex converts a byte index in lookalikes, where each character has two bytes, to a rune
// index.
func runeIndex(i int) int { return i / 2 }
