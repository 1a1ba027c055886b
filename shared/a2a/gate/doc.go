// Package gate serves registered agents to clients of the Agent2Agent protocol. Clients and
// agents may use version 0.3 or 1.0 and JSON-RPC or HTTP+JSON, independently of each other. If
// both use the same, messages are forwarded verbatim.
//
//	/{slug}                                  JSON-RPC
//	/{slug}/message:send, /tasks/{id}...     HTTP+JSON of 1.0, also below a tenant
//	/{slug}/v1/message:send...               HTTP+JSON of 0.3
//	/{slug}/.well-known/agent-card.json      the card, with the gateway's addresses
//
// An agent of the organization serves several workspaces with the same credentials. Its tasks
// and contexts belong to the workspace that created them; other workspaces get not found.
// Unknown methods are not forwarded to such an agent.
//
// Do not add limits, guardrails or records here: the Pipeline provides them.
package gate
