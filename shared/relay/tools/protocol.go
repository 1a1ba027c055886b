package tools

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/cors"
	"gateway/shared/mcp/gate"
	"gateway/shared/mcp/oauthserver"
	"gateway/shared/provider"
	"gateway/shared/relay/routes"
	"gateway/shared/resource"
)

// Environment variables of the MCP proxy.
const (
	envTimeout = "MCP_REQUEST_TIMEOUT_MS" // how long a server may be silent
)

// Limits, in bytes.
const (
	maxBody   = 12 << 20
	maxResult = 6_000_000 // of a function
)

// MCPRoutes returns the routes for MCP clients.
func MCPRoutes() []routes.Route {
	p := served()
	var out []routes.Route
	for _, at := range [...]struct{ path, of string }{{"/{slug}/mcp", ""}, {"/{slug}/{server}/mcp", "OfWorkspace"}} {
		for _, does := range [...]struct{ method, name string }{{http.MethodPost, "call"}, {http.MethodGet, "listenTo"}, {http.MethodDelete, "endSessionOf"}} {
			rt := p.route(does.method, at.path)
			rt.Name = does.name + "McpServer" + at.of
			out = append(out, rt)
		}
	}
	return out
}

// MCPCalls returns the route by which the gateway itself calls servers.
func MCPCalls() *routes.Route {
	rt := served().route(http.MethodPost, "/{slug}/mcp")
	return &rt
}

// Loop makes the routes of Messages and Responses among all run tools of MCP servers. It
// returns all.
func Loop(all []routes.Route) []routes.Route {
	for i := range all {
		switch rt := &all[i]; {
		case rt.Handler != nil:
		case rt.Operation == provider.Messages:
			rt.Handler = Messages(MCPCalls())
		case rt.Operation == provider.ResponsesCreate:
			rt.Handler = Responses(MCPCalls())
		}
	}
	return all
}

func served() protocol {
	public := cors.Public(os.Getenv(cors.EnvPublic))
	pages, _ := cors.FromEnvironment(public) // the host does not start with an invalid list
	return protocol{gate.New(gate.Options{Timeout: MCPTimeout(os.Getenv(envTimeout)), Pages: pages, MaxResult: maxResult, Public: public})}
}

func (p protocol) route(method, path string) routes.Route {
	return routes.Route{
		Method: method, Path: mcp.PathPrefix + path, Endpoint: "mcp", BodyMode: routes.Resource, Scope: authz.Invoke, MaxBody: maxBody,
		NoModel: true, Free: true, NoOutput: true, Errors: p, Handler: routes.Calls{Protocol: p},
	}
}

// MCPTimeout parses a number of milliseconds; an invalid or non-positive one is 0.
func MCPTimeout(ms string) time.Duration {
	n, err := strconv.ParseInt(ms, 10, 32)
	if err != nil || n <= 0 {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

// protocol responds through the MCP proxy.
type protocol struct{ host *gate.Host }

// Serve implements routes.Protocol.
func (p protocol) Serve(g *routes.ProtocolCall) error {
	p.host.Serve(&gate.Call{
		Context: g.Context, Request: g.Request, Path: below(g.Request), Body: g.Body,
		Caller: g.Caller, View: g.View, TraceID: g.TraceID, Bearer: g.Bearer, Now: g.Now,
		Transport: g.Deps.Transport, Hosts: g.Deps.Hosts, Sealer: g.Deps.Sealer, Secrets: g.Deps.Secrets, Usage: g.Deps.State, Signing: g.Deps.Signing, Buffered: g.Deps.Buffers, Pipeline: g.Pipeline,
	})
	return nil
}

// AppendError implements chat.ErrorWriter. A rejection before the message was read has no id,
// and the id must not be null.
func (protocol) AppendError(dst []byte, f *fault.Fault, _ *chat.Options) []byte {
	return append(gate.AppendError(append(dst, `{"jsonrpc":"2.0","error":`...), f, ""), '}')
}

// AppendStreamError implements chat.ErrorWriter; no stream starts before the proxy has the
// request.
func (p protocol) AppendStreamError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return p.AppendError(dst, f, o)
}

// Challenge implements routes.Challenger.
func (p protocol) Challenge(h http.Header, r *http.Request, f *fault.Fault) {
	oauthserver.Challenge(h, p.host.Public, r, below(r), f)
}

// Credentials implements routes.Credentials: access tokens.
func (protocol) Credentials(l *resource.Loader, now func() time.Time, next identity.TokenVerifier) identity.TokenVerifier {
	return &oauthserver.Verifier{Loader: l, Now: now, Next: next}
}

// below returns the escaped path below the common address of all servers.
func below(r *http.Request) string {
	return strings.TrimPrefix(r.URL.EscapedPath(), routes.BasePath+mcp.PathPrefix)
}
