// Package gemini is the dialect of Google's generateContent and streamGenerateContent (AI
// Studio and Vertex AI), and the translators of its other operations: embeddings and
// images.
//
// Signatures: a Gemini model signs the part that resulted from its thinking, mostly a
// tool call. A signature is forwarded as an empty thinking part directly before that
// part, so that clients which return thinking blocks return it in its place. For a call
// it is also forwarded as chat.ToolCall.Signature. It is marked with the host that
// created it, because no other host accepts it. If a model requires signatures and a call
// has none, the documented placeholder is sent.
package gemini
