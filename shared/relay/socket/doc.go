// Package socket makes the connections of realtime sessions by a library for
// WebSockets. Only processes that can hold a connection for long link it.
package socket
