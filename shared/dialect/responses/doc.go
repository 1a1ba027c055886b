// Package responses is the OpenAI Responses dialect, on the client's and on the
// provider's side, plain and streamed.
//
// A conversation is a flat list of items in this format. Consecutive items of the
// assistant (reasoning, message, calls) are one canonical message. Losses and rejections
// name positions in the client's list (see Responses.ClientPath).
//
// Some fields need a provider that stores responses: previous_response_id, conversation,
// background, prompt, and references to items. They are rejected if another dialect
// serves the request. store is ignored and reported.
//
// Signed reasoning of any provider is sent to clients as encrypted_content, marked with
// its signer. So it returns unchanged on the next turn and never reaches a provider that
// did not create it.
package responses
