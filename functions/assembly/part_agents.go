//go:build !core

package assembly

import (
	"net/http"
	"slices"

	"gateway/functions/agentservers"
	"gateway/functions/docs"
	"gateway/functions/docs/toolbox"
	"gateway/functions/mcp"
	"gateway/functions/mcpservers"
	"gateway/shared/a2a"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/console"
	protocol "gateway/shared/mcp"
	"gateway/shared/relay"
	"gateway/shared/relay/tools"
)

// MCP and A2A: servers and agents of workspaces, the tool loop of models, and the
// administration as tools.
func init() {
	parts = append(parts, part{
		families: func(c *app.Core, list []admin.Family) []admin.Family {
			secrets := console.Secrets(c)
			return before("deployments", list, mcpservers.New(mcpservers.NewDeps(c, secrets)),
				agentservers.New(agentservers.Deps{CheckURL: c.Egress.CheckURL, PublicURL: c.PublicURL, Opener: &a2a.Opener{Sealer: c.Sealer, Transport: c.Transport, Secrets: secrets}}))
		},
		routes:     func(list []relay.Route) []relay.Route { return append(tools.Loop(list), mcp.Routes()...) },
		dependents: slices.Concat(protocol.Dependents, a2a.Dependents),
		tools: func(c *app.Core) docs.Tools {
			return toolbox.Calling(toolbox.LocalAPI{Handler: func() http.Handler { return c.Administration }})
		},
	})
}
