// Package lexicon reads words from texts and finds phrases in them. Words are compared by a
// hash of their letters, in lower case and without accents. It recognizes ways to evade word
// lists: look-alike letters of other scripts, digits for letters, invisible characters,
// separated letters. It reads a text in one pass.
package lexicon
