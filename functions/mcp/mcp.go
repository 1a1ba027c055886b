// Package mcp serves clients of registered servers (Model Context Protocol) and agents
// (Agent2Agent protocol).
package mcp

import (
	"gateway/shared/relay"
	"gateway/shared/relay/tools"
)

// Limits of agents, in bytes.
const (
	maxBody   = 12 << 20
	maxResult = 6_000_000 // size limit of a response of a function
)

// MCPRoutes returns the routes of the package.
func Routes() []relay.Route { return append(tools.MCPRoutes(), agentRoutes()...) }
