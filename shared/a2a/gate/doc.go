// Package gate serves registered agents to clients of the agent protocol. The version
// and the binding of each side are settled apart: a client may speak 0.3 or 1.0, as
// JSON-RPC or as HTTP+JSON, and so may the agent; where both do the same, what they say
// is passed on as it came.
//
//	/{slug}                                  JSON-RPC
//	/{slug}/message:send, /tasks/{id}...     HTTP+JSON of 1.0, also behind a tenant
//	/{slug}/v1/message:send...               HTTP+JSON of 0.3
//	/{slug}/.well-known/agent-card.json      the card, with the gateway's addresses
//
// An agent of the organisation is used by several workspaces with the same credentials:
// its tasks and contexts belong to the workspace that made them, what others made is
// not there, and methods that the gateway does not know are not passed on.
//
// What must not come in: limits, guardrails and records, which the walk brings.
package gate
