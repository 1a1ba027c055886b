// Package a2a is the room of the agent-to-agent protocol: registered agents, their
// cards and skills, and who may use them.
//
//	Integration   one agent: address, credentials, the card that it shows
//	Server        an integration in one workspace, under a slug: what clients call
//	Switch        a skill that an integration or a server disables
//
// Calls to agents go out through the guarded transport that the caller gives. What
// must not come in: HTTP towards clients, limits, records.
package a2a
