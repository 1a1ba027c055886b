// Package lexicon reads words from texts and finds phrases in them. A word is
// compared by a hash of its letters, small and without accents; what people write to
// get past lists of words is seen through: look-alike letters of other scripts,
// digits for letters, invisible characters, letters one by one. Reading takes one
// pass, whatever the text.
package lexicon
