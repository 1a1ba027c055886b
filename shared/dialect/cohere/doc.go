// Package cohere is the dialect of Cohere's API: chats of POST /v2/chat both ways, text
// completions of POST /v1/generate, embeddings of POST /v2/embed and rerank of POST
// /v2/rerank.
//
// Chats count tokens twice: tokens, which clients receive, and billed_units, which are
// charged. A plan that the model makes before it calls tools (tool_plan) is text in front
// of the calls.
package cohere
