// Package reasoning keeps the signed reasoning that came before tool calls, for
// clients whose shape has no place for it. It knows a workspace and the id of a
// tool call, nothing of requests.
package reasoning
