package docs

import (
	"maps"
	"net/http"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/relay"
)

// message is a message of JSON-RPC.
var message = object([]string{"jsonrpc"}, map[string]admin.Schema{
	"jsonrpc": {"type": "string", "enum": []any{"2.0"}}, "id": oneOf(text, admin.Schema{"type": "integer"}, admin.Schema{"type": "null"}), "method": text,
	"params": open, "result": open, "error": object([]string{"code", "message"}, map[string]admin.Schema{"code": {"type": "integer"}, "message": text, "data": {}}),
})

// protocolHeaders are the headers of the Model Context Protocol.
var protocolHeaders = []struct{ name, doc string }{
	{"mcp-protocol-version", "Version of the protocol: 2026-07-28 for stateless requests, an older one within a session."},
	{"mcp-method", "The method of the body, in version 2026-07-28."},
	{"mcp-name", "The tool, prompt, resource or task named in the body, in version 2026-07-28."},
	{"mcp-session-id", "The session started by initialize, in older protocol versions."},
}

// protocolResponses are the statuses of responses that are not rejections, by method.
var protocolResponses = map[string]map[string]string{
	http.MethodPost:   {"200": "The response, or a stream that ends with it.", "202": "A notification or a response was accepted."},
	http.MethodGet:    {"200": "Server-initiated messages, while the stream is open."},
	http.MethodDelete: {"204": "The session is over."},
}

// protocolOperation describes a route that serves a protocol other than the gateway's API.
func protocolOperation(rt *relay.Route, path, method, id string) map[string]any {
	b := body{doc: map[string]string{
		http.MethodPost:   "Send a message of the Model Context Protocol to a server.",
		http.MethodGet:    "Open the stream of server-initiated messages of a session.",
		http.MethodDelete: "End a session with a server.",
	}[method]}
	answers := map[string]any{}
	for _, status := range append(slices.Clone(rejections), "404", "405", "406", "415") {
		answers[status] = map[string]any{"description": rejectionDoc(status), "content": content("application/json", message)}
	}
	for status, doc := range protocolResponses[method] {
		answer := map[string]any{"description": doc, "headers": responseHeaders}
		if status == "200" {
			media := content("text/event-stream", admin.Schema{"type": "string", "description": "Server-sent events, each with a message."})
			if method == http.MethodPost {
				maps.Copy(media, content("application/json", message))
			}
			answer["content"] = media
		}
		answers[status] = answer
	}
	params := pathParameters(path)
	for _, h := range protocolHeaders {
		params = append(params, map[string]any{"name": h.name, "in": "header", "description": h.doc, "schema": admin.Schema{"type": "string"}})
	}
	op := map[string]any{
		"operationId": id, "summary": b.doc, "tags": []string{tag}, "responses": answers, "parameters": params,
		"x-gateway-scopes": []string{rt.Scope}, "security": asKey,
	}
	if method == http.MethodPost {
		op["requestBody"] = map[string]any{"required": true, "content": content("application/json", message)}
	}
	return op
}
