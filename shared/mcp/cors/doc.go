// Package cors lets pages in browsers call MCP servers and the sign-in that belongs
// to them: which pages may, by their origin, and what browsers must be told so that they
// let them (CORS). Nothing is told of cookies: pages bring a key or a token.
package cors
