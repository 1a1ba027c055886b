// Package protocolversion reads messages from clients of the Model Context Protocol in both
// kinds of protocol versions. With sessions (2025-11-25 and older) a request depends on
// initialize. Without (2026-07-28) each request is self-contained and repeats in headers what
// routing needs. The kind is detected for each request and is independent of the server's.
package protocolversion
