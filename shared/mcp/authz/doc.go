// Package authz decides who may use which MCP server and which of its capabilities. Lists and
// calls use the same function.
package authz
