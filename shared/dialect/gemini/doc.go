// Package gemini is the dialect of Google's generateContent and
// streamGenerateContent (AI Studio and Vertex AI), and the translators of its
// operations that are no conversation: embeddings and images.
//
// Signatures: a Gemini model signs the part that its thinking led to, mostly a tool call.
// A signature is forwarded as an empty thinking part directly before that part, so that
// clients which return thinking blocks return it in its place. For a call it is also
// forwarded as chat.ToolCall.Signature. It is marked with the host that made it, because
// no other host takes it. Where a model insists on signatures and a call has none, the
// documented stand-in is sent.
package gemini
