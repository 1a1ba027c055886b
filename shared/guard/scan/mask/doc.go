// Package mask puts tokens in the place of parts of texts, {{EMAIL_ADDRESS_1}}, and
// puts those parts back where a model used the tokens in its answer, across a stream
// too. One value has one token in all texts of a message, so that a model can tell
// who is who without knowing who it is.
package mask
