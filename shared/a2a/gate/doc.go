// Package gate serves registered agents to clients of the agent protocol. A client may
// speak 0.3 or 1.0, as JSON-RPC or as HTTP+JSON, and so may the agent, independently of the
// client. Where both do the same, messages are passed on as they came.
//
//	/{slug}                                  JSON-RPC
//	/{slug}/message:send, /tasks/{id}...     HTTP+JSON of 1.0, also behind a tenant
//	/{slug}/v1/message:send...               HTTP+JSON of 0.3
//	/{slug}/.well-known/agent-card.json      the card, with the gateway's addresses
//
// Several workspaces use an agent of the organisation with the same credentials. Its tasks
// and contexts belong to the workspace that made them; for other workspaces they do not
// exist. Methods that the gateway does not know are not passed on to such an agent.
//
// What must not come in: limits, guardrails and records, which the walk brings.
package gate
