// Package responses is the OpenAI Responses dialect, on the client's and on the
// provider's side, plain and streamed.
//
// A conversation is a flat list of items in this shape. Items of the assistant that follow
// one another (reasoning, message, calls) are one canonical message. Losses and refusals
// name places in the client's list (see Responses.ClientPath).
//
// Some members need a provider that keeps responses: previous_response_id, conversation,
// background, prompt, and references to items. They are rejected when another dialect has
// to serve the request. store is ignored and reported.
//
// Signed reasoning of any provider goes to clients as encrypted_content, marked with who
// signed it. So it comes back unchanged on the next turn and never reaches a provider that
// did not make it.
package responses
