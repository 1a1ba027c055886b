// Package a2a contains the domain of the Agent2Agent protocol: registered agents, their cards
// and skills, and access to them.
//
//	Integration   one agent: address, credentials, card
//	Server        an integration in one workspace, under a slug: what clients call
//	Switch        a skill that an integration or a server enables or disables
//
// Calls to agents use the guarded transport of the caller. Do not add HTTP towards clients,
// limits or records here.
package a2a
