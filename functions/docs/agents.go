package docs

import (
	"net/http"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/relay"
)

// agentDocs are the routes of the agent protocol, by their names.
var agentDocs = map[string]string{
	"callAgent":     "Call an agent by JSON-RPC, in version 0.3 or 1.0 of the agent protocol.",
	"sendToAgent":   "Send a message to an agent by HTTP+JSON (message:send, message:stream), cancel or follow a task, or create a push notification config.",
	"readOfAgent":   "Read a task, tasks, push notification configs or the extended card of an agent by HTTP+JSON, or its card at .well-known/agent-card.json.",
	"deleteOfAgent": "Delete a push notification config of a task.",
}

// agentMessage is a body of HTTP+JSON: a message in the form of version 1.0. Other members
// of the protocol are allowed too.
var agentMessage = admin.Schema{"type": "object", "properties": map[string]admin.Schema{
	"message": object([]string{"messageId", "role", "parts"}, map[string]admin.Schema{
		"messageId": text, "role": {"type": "string", "enum": []any{"ROLE_USER", "ROLE_AGENT"}}, "taskId": text, "contextId": text,
		"parts": {"type": "array", "items": admin.Schema{"type": "object", "properties": map[string]admin.Schema{"text": text}}},
	}),
	"configuration": open, "metadata": open,
}, "example": map[string]any{"message": map[string]any{"messageId": "m-1", "role": "ROLE_USER", "parts": []any{map[string]any{"text": "Hello"}}}}}

// agentOperation describes a route of the agent protocol.
func agentOperation(rt *relay.Route, path, method, id string) map[string]any {
	rest := strings.Contains(rt.Path, "+}")
	form := message
	if rest {
		form = agentMessage
	}
	answers := map[string]any{}
	for _, status := range append(slices.Clone(refusals), "404", "405", "446") {
		answers[status] = map[string]any{"description": "Refused.", "content": content("application/json", form)}
	}
	media := content("application/json", form)
	media["text/event-stream"] = map[string]any{"schema": admin.Schema{"type": "string", "description": "Server-sent events, each with a task event."}}
	if method == http.MethodDelete {
		answers["204"] = map[string]any{"description": "Deleted.", "headers": answerHeaders}
	} else {
		answers["200"] = map[string]any{"description": "The agent's response, or a stream of its events.", "headers": answerHeaders, "content": media}
	}
	if method == http.MethodGet {
		answers["304"] = map[string]any{"description": "The client's cached card is current."}
	}
	params := pathParameters(path)
	for _, h := range [][2]string{
		{"a2a-version", "Version of the protocol: 1.0, or 0.3, which is the default."},
		{"a2a-extensions", "Protocol extensions, forwarded to the agent."},
	} {
		params = append(params, map[string]any{"name": h[0], "in": "header", "description": h[1], "schema": admin.Schema{"type": "string"}})
	}
	op := map[string]any{
		"operationId": id, "summary": agentDocs[rt.Name], "tags": []string{tag}, "responses": answers, "parameters": params,
		"x-gateway-scopes": []string{rt.Scope}, "security": asKey,
	}
	if method == http.MethodPost {
		op["requestBody"] = map[string]any{"required": !rest, "content": content("application/json", form)}
	}
	return op
}
