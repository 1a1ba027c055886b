// Package spoken runs guardrails on the content of a realtime session: client text before it is
// sent, client audio once it is transcribed, and responses, before any of them is sent or once
// they have ended.
//
// The guardrails are looked up for each client event on arrival. For a response they are looked
// up at its start, and the same guardrails judge it to its end.
//
// A held response is sent all at once, including its audio, which can only be judged by its
// transcript. Denied client input is never forwarded; denied audio, which the provider already
// has, is removed from the conversation, and the response to it is ended.
package spoken
