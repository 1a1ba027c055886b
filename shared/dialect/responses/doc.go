// Package responses is the OpenAI Responses dialect, on the client's and on the
// provider's side, plain and streamed.
//
// What a conversation is made of stands here as a flat list of items. Items of
// the assistant that follow one another (reasoning, message, calls) are one
// canonical message; the places that losses and refusals name are those of the
// client's list (see Responses.ClientPath).
//
// What only a provider that keeps responses can do (previous_response_id,
// conversation, background, prompt, references to items) is refused when
// another dialect has to serve the request; store is ignored and reported.
//
// Reasoning that is signed, by whichever provider, goes to clients as
// encrypted_content with a mark of who signed it, so that it comes back
// unchanged on the next turn and never reaches a provider that did not make it.
package responses
