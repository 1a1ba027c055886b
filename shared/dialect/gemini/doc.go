// Package gemini is the dialect of Google's generateContent and
// streamGenerateContent (AI Studio and Vertex AI), and the translators of its
// operations that are no conversation: embeddings and images.
//
// Signatures: a Gemini model signs the part that its thinking led to, mostly a
// tool call. A signature is given on as an empty thinking part right in front of
// that part (so that clients which return thinking blocks return it in place)
// and, for a call, also as chat.ToolCall.Signature. It is marked with the host
// that made it, since no other host takes it. Where a call of a model that
// insists on signatures has none, the documented stand-in is sent.
package gemini
