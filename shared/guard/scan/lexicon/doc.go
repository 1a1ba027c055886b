// Package lexicon reads words from texts and finds phrases in them. A word is compared by a
// hash of its letters, in lower case and without accents. It recognises the ways in which
// people get past lists of words: look-alike letters of other scripts, digits for letters,
// invisible characters, letters one by one. Reading takes one pass, whatever the text.
package lexicon
