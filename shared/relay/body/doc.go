// Package body reads the body of an admitted request: JSON, a form, the query of a WebSocket, or
// the beginning of what is streamed through, and what the body asks for. Later stages read the
// result and do not change it.
package body
