// Package mcp is the room of the Model Context Protocol: registered servers, what
// they can do and who may use it, and the wire towards them.
//
//	Integration   one upstream server: address, transport, credentials
//	Server        an integration in one workspace, under a slug: what clients connect to
//	Member       a server whose tools a virtual one has, in place of an integration
//	Capability    a tool, prompt, resource or resource template of an integration
//	Override      what a server enables and disables of them
//	Connection    the tokens that a user has at the upstream of a server
//
// Upstream calls go out through the guarded transport that the caller gives. What
// must not come in: HTTP towards clients, limits, records.
package mcp
