// Package mcp serves clients of registered servers (Model Context Protocol) and agents
// (Agent2Agent protocol).
package mcp

import (
	"net/http"
	"os"
	"strings"

	"gateway/shared/a2a/authz"
	"gateway/shared/a2a/gate"
	"gateway/shared/chat"
	"gateway/shared/fault"
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

// Environment variables for agents.
const (
	envAgentTimeout = "A2A_REQUEST_TIMEOUT_MS" // how long an agent may be silent
	envPublicURL    = "GATEWAY_PUBLIC_URL"     // public address of the gateway
)

// belowAgents is the path prefix of agents.
const belowAgents = "/agent"

// agentRoutes returns the routes of the Agent2Agent protocol: JSON-RPC at an agent's address,
// HTTP+JSON and the card below it.
func agentRoutes() []relay.Route {
	host := gate.New(gate.Options{Timeout: tools.MCPTimeout(os.Getenv(envAgentTimeout)), MaxResult: maxResult})
	public := strings.TrimRight(os.Getenv(envPublicURL), "/")
	one := func(method, path, name string, rest bool) relay.Route {
		p := agents{host, public, rest}
		return relay.Route{
			Method: method, Path: belowAgents + path, Name: name, Endpoint: "agent", BodyMode: relay.Resource, Scope: authz.Invoke, MaxBody: maxBody,
			NoModel: true, Free: true, NoOutput: true, Errors: p, Handler: relay.Calls{Protocol: p},
		}
	}
	const below = "/{slug}/{path+}"
	return []relay.Route{
		one(http.MethodPost, "/{slug}", "callAgent", false),
		one(http.MethodPost, below, "sendToAgent", true),
		one(http.MethodGet, below, "readOfAgent", true),
		one(http.MethodDelete, below, "deleteOfAgent", true),
	}
}

// agents serves agents through package a2a/gate.
type agents struct {
	host   *gate.Host
	public string // public address of the gateway; empty for the address of the request
	rest   bool
}

// base returns the address of all agents as clients see it.
func (a agents) base(r *http.Request) string {
	if a.public != "" {
		return a.public + belowAgents
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + relay.BasePath + belowAgents
}

// Serve implements relay.Protocol.
func (a agents) Serve(g *relay.ProtocolCall) error {
	a.host.Serve(&gate.Call{
		Context: g.Context, Request: g.Request, Path: strings.TrimPrefix(g.Request.URL.EscapedPath(), relay.BasePath+belowAgents), Body: g.Body,
		Base:   a.base(g.Request),
		Caller: g.Caller, View: g.View, TraceID: g.TraceID, Bearer: g.Bearer, Now: g.Now,
		Transport: g.Deps.Transport, Sealer: g.Deps.Sealer, Secrets: g.Deps.Secrets, CheckURL: g.Deps.CheckURL, Signing: g.Deps.Signing, Buffered: g.Deps.Buffers, Pipeline: g.Pipeline,
	})
	return nil
}

// AppendError implements chat.ErrorWriter. A request that was rejected before it was parsed has
// no id.
func (a agents) AppendError(dst []byte, f *fault.Fault, _ *chat.Options) []byte {
	return gate.AppendError(dst, f, a.rest)
}

// AppendStreamError implements chat.ErrorWriter. No stream begins before the gate receives the
// request.
func (a agents) AppendStreamError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return a.AppendError(dst, f, o)
}
