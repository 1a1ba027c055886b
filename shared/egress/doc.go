// Package egress is the gateway's one way out: the guarded dialer under every
// outbound connection (providers, custom hosts, webhooks, images, JWKS, secret
// managers, MCP), the rules for host addresses that callers name, and the rules
// for headers that cross the gateway.
//
// The guard works where the address is final: in net.Dialer.ControlContext, after the
// name was looked up and before the socket connects. So it does not matter what a name
// resolved to a moment earlier, how an address was spelled, or where a redirect points.
// CheckURL rejects earlier and explains why, but nothing relies on it having been called.
//
// What must never come in: a second dialer, an http.Client that another package made,
// proxies from the environment.
package egress
