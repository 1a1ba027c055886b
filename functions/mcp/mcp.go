// Package mcp is the family by which clients reach what is registered in their
// workspace: servers by the Model Context Protocol, and agents by the agent protocol.
package mcp

import (
	"gateway/shared/relay"
	"gateway/shared/relay/mcpserved"
)

// Limits of agents, in bytes.
const (
	maxBody   = 12 << 20
	maxResult = 6_000_000 // of a function
)

// Routes returns the family's routes.
func Routes() []relay.Route { return append(mcpserved.Routes(), agentRoutes()...) }
