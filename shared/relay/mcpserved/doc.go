// Package mcpserved has the gate of MCP servers answer routes of the walk: those that
// clients of the protocol call, and the one by which the gateway calls tools for a model.
package mcpserved
