// Package mcp tests the gateway's Model Context Protocol against programs that share no code
// with it: the official conformance suite, with the gateway as the server and as a proxy, and
// clients of the official SDK while the gateway is killed. Its tests build the local gateway
// and start it on an empty folder.
package mcp
