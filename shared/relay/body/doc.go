// Package body reads the body of an admitted request: JSON, a form, the query of a WebSocket, or
// the beginning of a streamed body, and its demands. Later stages read the result and do not
// change it.
package body
