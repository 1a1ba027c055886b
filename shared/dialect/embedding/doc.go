// Package embedding holds the one shape in which clients ask for embeddings and
// get them, that of OpenAI with images beside texts, and the translators to the
// providers whose own shape is close to it: Voyage, Jina, Nomic.
package embedding
