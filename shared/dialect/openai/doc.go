// Package openai is the OpenAI dialect: chat completions and text completions, on the
// client's and on the provider's side, plain and streamed, and what accounting need of
// embeddings.
//
// Bodies between a client and a provider of this dialect are forwarded as they are; the
// stream filter takes out only what the gateway itself asked for.
package openai
