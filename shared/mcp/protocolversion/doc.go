// Package protocolversion reads what clients of the Model Context Protocol send, in both of its eras.
// With sessions (2025-11-25 and older) a request depends on what was said before. Without
// (2026-07-28) each request says everything itself, and repeats in headers what routing
// needs. The era is decided for each request, independently of the era of the server
// behind.
package protocolversion
