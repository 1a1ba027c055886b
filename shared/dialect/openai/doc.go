// Package openai is the OpenAI dialect: chat completions and text completions, on the
// client's and on the provider's side, plain and streamed, and the accounting of
// embeddings.
//
// Bodies between a client and a provider of this dialect are forwarded unchanged; the
// stream filter only removes data that the gateway itself requested.
package openai
