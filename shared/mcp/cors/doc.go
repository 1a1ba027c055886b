// Package cors lets web pages call MCP servers, the OAuth endpoints for them, and the data plane. It checks the
// origin and sets the CORS headers. Credentials mode is not allowed: pages send a key or a
// token.
package cors
