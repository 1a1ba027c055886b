// Package mcp contains the domain of the Model Context Protocol: registered servers, their
// capabilities, access to them, and the client side of the protocol.
//
//	Integration   one upstream server: address, transport, credentials
//	Server        an integration in one workspace, under a slug: what clients connect to
//	Member        a server with tools that a virtual server exposes
//	Capability    a tool, prompt, resource or resource template of an integration
//	Override      the capabilities that a server enables or disables
//	Connection    a user's sign-in at the upstream of a server
//
// Upstream calls use the guarded transport of the caller. Do not add HTTP towards clients,
// limits or records here.
package mcp
