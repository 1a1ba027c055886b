// Package docs is the family of the OpenAPI document: the administration as its families
// describe it, and the data plane as its routes declare it. This package describes the
// bodies of the data plane only in short; the dialects check them.
package docs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"gateway/functions/docs/components"
	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/relay"
	"gateway/shared/wire/release"
)

// Name is the name of the family.
const Name = "docs"

// Title and Version of the document.
const (
	Title   = "AI gateway"
	Version = release.Version
)

// Tools returns the route of the MCP server with the operations of a document as its tools:
// see package toolbox.
type Tools func(document func() (json.RawMessage, error)) admin.Route

// New returns the family of the document, which covers the routes, the families, and this
// family itself. Without tools there is no MCP server.
func New(tools Tools, routes []relay.Route, families ...admin.Family) admin.Family {
	all := append(families[:len(families):len(families)], serve(tools, nil))
	return serve(tools, func() (json.RawMessage, error) { return build(routes, all) })
}

// Serve makes the family of a document that was built before.
func Serve(tools Tools, document json.RawMessage) admin.Family {
	return serve(tools, func() (json.RawMessage, error) { return document, nil })
}

// serve returns the family of a document that is built on the first request for it.
func serve(tools Tools, text func() (json.RawMessage, error)) admin.Family {
	text = sync.OnceValues(text)
	document := sync.OnceValues(func() (*admin.Document, error) {
		raw, err := text()
		if err != nil {
			return nil, err
		}
		return admin.NewDocument(raw)
	})
	pages := sync.OnceValues(func() (map[string]*admin.Document, error) {
		raw, err := text()
		if err != nil {
			return nil, err
		}
		return makePages(raw)
	})
	page := func(name string) (any, error) {
		all, err := pages()
		if err != nil {
			return nil, err
		}
		if p, ok := all[name]; ok {
			return p, nil
		}
		return nil, fault.New(fault.NotFound, "", "There is no such page; /docs lists them")
	}
	html := admin.Schema{"type": "string"}
	f := admin.Family{Name: Name, Doc: "The API document, as OpenAPI and as HTML.", Routes: []admin.Route{
		{
			Method: "GET", Path: "/openapi.json", Name: "getDocument", Doc: "Read the OpenAPI 3.1 document of the gateway.", Public: true,
			Errors: []int{304}, Response: admin.Schema{"type": "object", "description": "An OpenAPI 3.1 document."},
			Do: func(*admin.Call) (any, error) { return document() },
		},
		{
			Method: "GET", Path: "/docs", Name: "getReference", Doc: "Read the API reference as HTML, without external assets.", Public: true,
			Errors: []int{304}, Produces: pageType, Response: html,
			Do: func(*admin.Call) (any, error) { return page("") },
		},
		{
			Method: "GET", Path: "/docs/" + searchPath, Name: "getSearchIndex", Doc: "Read the search index of the documentation: title, address below /docs and text of every section.", Public: true,
			Errors: []int{304}, Response: admin.Schema{"type": "array", "items": admin.Schema{"type": "array", "items": admin.Schema{"type": "string"}, "minItems": 3, "maxItems": 3}},
			Do: func(*admin.Call) (any, error) { return page(searchPath) },
		},
		{
			Method: "GET", Path: "/docs/{family}", Name: "getReferenceOfFamily", Doc: "Read the reference of one family of routes.", Public: true,
			Errors: []int{304, 404}, Produces: pageType, Response: html,
			Do: func(c *admin.Call) (any, error) { return page(c.Param("family")) },
		},
		{
			Method: "GET", Path: "/docs/guides/{guide}", Name: "getGuide", Doc: "Read a guide.", Public: true,
			Errors: []int{304, 404}, Produces: pageType, Response: html,
			Do: func(c *admin.Call) (any, error) { return page(guidePath + c.Param("guide")) },
		},
	}}
	if tools != nil {
		f.Doc, f.Routes = "The API document, as OpenAPI, as HTML, and as MCP tools.", append(f.Routes, tools(text))
	}
	return f
}

// build puts the data plane into the document of the administration.
func build(routes []relay.Route, families []admin.Family) (json.RawMessage, error) {
	var doc map[string]any
	if err := json.Unmarshal(admin.OpenAPI(Title, Version, families...), &doc); err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	tags, _ := doc["tags"].([]any) // null without families
	doc["tags"] = append(tags, map[string]any{"name": tag, "description": "Requests to models, by any provider."})
	shared := doc["components"].(map[string]any)
	maps.Copy(shared["schemas"].(map[string]any), map[string]any{errorName: errorSchema, "EmptyObject": admin.EmptyResponse, "JSONObject": admin.Schema{"type": "object"}})
	shared["parameters"] = headerParameters()
	paths := doc["paths"].(map[string]any)
	for i := range routes {
		path, operations := describe(&routes[i])
		at, ok := paths[path].(map[string]any)
		if !ok {
			at = map[string]any{}
			paths[path] = at
		}
		for method := range operations {
			if _, taken := at[method]; taken {
				return nil, fmt.Errorf("docs: %s %s is served twice", method, path)
			}
		}
		maps.Copy(at, operations)
	}
	return withExamples(doc)
}

// withExamples encodes the document with an example of every body and named schemas.
func withExamples(doc map[string]any) (json.RawMessage, error) {
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	var plain map[string]any // as JSON has it, whatever the schemas were made of
	if err := json.Unmarshal(raw, &plain); err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	addExamples(plain)
	nameSharedSchemas(plain)
	components.Extract(plain)
	return json.Marshal(plain)
}

// tag of all data-plane operations.
const tag = "inference"

// anyPath is how the document writes relay.AnyPath: one variable that may hold slashes.
const anyPath = "/{providerEndpoint}"

// describe gives a route's path and its operations by method.
func describe(rt *relay.Route) (path string, operations map[string]any) {
	path, methods := rt.Path, rt.Methods
	if path == relay.AnyPath {
		path = anyPath
	}
	path = strings.Replace(path, "+}", "}", 1) // one that may hold slashes
	if rt.Method != "" {
		methods = []string{rt.Method}
	}
	operations = make(map[string]any, len(methods))
	for _, method := range methods {
		id := rt.Endpoint
		if rt.Name != "" {
			id = rt.Name
		}
		if len(methods) > 1 {
			id += strings.ToUpper(method[:1]) + strings.ToLower(method[1:])
		}
		described := operation
		if rt.Protocol() != nil {
			described = protocolOperation
		}
		if rt.Endpoint == "agent" {
			described = agentOperation
		}
		operations[strings.ToLower(method)] = described(rt, path, method, id)
	}
	return path, operations
}

// asKey are the ways to show a key.
var asKey = []any{map[string]any{"Gateway-Key": []string{}}, map[string]any{"Bearer": []string{}}}

func operation(rt *relay.Route, path, method, id string) map[string]any {
	body := bodyOf(rt)
	op := map[string]any{
		"operationId": id, "summary": body.doc, "tags": []string{tag}, "responses": responses(rt, &body),
		"parameters": parameters(path, &body), "x-gateway-scopes": append([]string{rt.Scope}, rt.OrScopes...),
		"security": asKey,
	}
	if method != "GET" && method != "DELETE" && rt.BodyMode != relay.Resource {
		media := "application/json"
		switch rt.BodyMode {
		case relay.Raw:
			media = "*/*"
		case relay.Multipart:
			media = "multipart/form-data"
		}
		op["requestBody"] = map[string]any{"required": rt.BodyMode == relay.Unified || rt.BodyMode == relay.Multipart, "content": content(media, body.request)}
	}
	return op
}

// bodyOf returns the description of a route's bodies; any object for routes that this package
// does not know yet.
func bodyOf(rt *relay.Route) body {
	for _, name := range []string{rt.Name, rt.Endpoint} {
		for _, known := range []map[string]body{bodies, jobBodies, besideResponses, realtimeBodies} {
			b, ok := known[name]
			if ok && name != rt.Name && rt.Name != "" && (rt.BodyMode == relay.Raw || rt.Endpoint == "proxy") { // one of many paths that are passed through
				b.doc = summary(rt.Name)
			}
			if ok {
				return b
			}
		}
	}
	b := body{doc: summary(cmp.Or(rt.Name, rt.Endpoint)), request: admin.Schema{"type": "object"}, response: admin.Schema{"type": "object"}}
	b.streams = rt.Client != nil
	if rt.BodyMode == relay.Raw {
		b.request, b.response = admin.Schema{}, admin.Schema{}
	}
	return b
}

// summaries are those of operations with names that do not read as phrases.
var summaries = map[string]string{
	"createTranscription": "Transcribe audio, in OpenAI's format.", "createTranslation": "Translate audio into English text, in OpenAI's format.", "deleteFile": "Delete a file.", "retrieveFileContent": "Download a file.",
	"getBatchOutput": "Download the output of a batch.", "deleteModel": "Delete a fine-tuned model.", "retrieveModel": "Read a model.",
	"getModelResponse": "Read a response.", "deleteModelResponse": "Delete a response.", "listResponseInputItems": "List the input items of a response.", "cancelModelResponse": "Cancel a response that runs in the background.",
	"imageEdit": "Edit an image.", "imageVariation": "Create variations of an image.", "listFinetunes": "List fine-tuning jobs.",
	"realtime": "Open a realtime session over a WebSocket.",
}

// summary turns the name of an operation into a sentence: listBatches is "List batches."
func summary(name string) string {
	if s := summaries[name]; s != "" {
		return s
	}
	var b strings.Builder
	for i, r := range name {
		if i == 0 {
			b.WriteRune(unicode.ToUpper(r))
			continue
		}
		if unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String() + "."
}

func content(media string, schema admin.Schema) map[string]any {
	return map[string]any{media: map[string]any{"schema": schema}}
}

// rejections are the statuses of gateway-made rejections; a provider's own are passed
// on too.
var rejections = []string{"400", "401", "403", "408", "412", "413", "429", "446", "500", "502", "503"}

// rejectionDocs describe rejections that differ from those of the administration.
var rejectionDocs = map[string]string{"408": "The provider timed out.", "412": "Budget exhausted.", "502": "Error of the provider."}

func rejectionDoc(status string) string {
	n, _ := strconv.Atoi(status) // 0 has no text
	return cmp.Or(rejectionDocs[status], admin.StatusDoc(n))
}

func responses(rt *relay.Route, b *body) map[string]any {
	media := "application/json"
	if rt.BodyMode == relay.Raw || rt.Binary {
		media = "*/*"
	}
	done := content(media, b.response)
	if rt.Media {
		maps.Copy(done, content("*/*", admin.Schema{}))
	}
	if b.streams {
		maps.Copy(done, content("text/event-stream", admin.Schema{"type": "string", "description": "Server-sent events, when stream is true."}))
	}
	out := map[string]any{"200": map[string]any{"description": "The response.", "content": done, "headers": responseHeaders}}
	for _, status := range rejections {
		out[status] = map[string]any{"description": rejectionDoc(status), "content": content("application/json", admin.Schema{"$ref": "#/components/schemas/" + errorName})}
	}
	return out
}

func parameters(path string, b *body) []any {
	out := pathParameters(path)
	for _, q := range b.query {
		out = append(out, map[string]any{"name": q.name, "in": "query", "schema": q.schema})
	}
	for _, h := range headers {
		out = append(out, map[string]any{"$ref": "#/components/parameters/" + strings.TrimPrefix(h.name, components.HeaderPrefix)})
	}
	return out
}

// pathParameters are the variables of a path.
func pathParameters(path string) (out []any) {
	for _, seg := range strings.Split(path, "/") {
		if name, ok := strings.CutPrefix(seg, "{"); ok {
			p := map[string]any{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": admin.Schema{"type": "string"}}
			if path == anyPath {
				p["description"] = "A path of the provider, slashes included."
			}
			out = append(out, p)
		}
	}
	return out
}

func headerParameters() map[string]any {
	out := make(map[string]any, len(headers))
	for _, h := range headers {
		out[strings.TrimPrefix(h.name, components.HeaderPrefix)] = map[string]any{"name": h.name, "in": "header", "description": h.doc, "schema": admin.Schema{"type": "string"}}
	}
	return out
}

// agentDocs are the routes of the agent protocol, by their names.
var agentDocs = map[string]string{
	"callAgent":     "Call an agent by JSON-RPC, in version 0.3 or 1.0 of the agent protocol.",
	"sendToAgent":   "Send a message to an agent by HTTP+JSON (message:send, message:stream), cancel or follow a task, or create a push notification config.",
	"readOfAgent":   "Read a task, tasks, push notification configs or the extended card of an agent by HTTP+JSON, or its card at .well-known/agent-card.json.",
	"deleteOfAgent": "Delete a push notification config of a task.",
}

// agentMessage is a body of HTTP+JSON: a message in the form of version 1.0. Other fields
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
	for _, status := range append(slices.Clone(rejections), "404", "405", "446") {
		answers[status] = map[string]any{"description": rejectionDoc(status), "content": content("application/json", form)}
	}
	media := content("application/json", form)
	media["text/event-stream"] = map[string]any{"schema": admin.Schema{"type": "string", "description": "Server-sent events, each with a task event."}}
	if method == http.MethodDelete {
		answers["204"] = map[string]any{"description": "Deleted.", "headers": responseHeaders}
	} else {
		answers["200"] = map[string]any{"description": "The agent's response, or a stream of its events.", "headers": responseHeaders, "content": media}
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
