package admin

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/fault"
)

// Response is what a Do returns when the response is not just the JSON of a value with the
// route's status.
type Response struct {
	Status      int         // 0: the route's
	Header      http.Header // beside those of every response
	ContentType string      // "": the route's
	Body        []byte      // as it is sent
	JSON        any         // in place of Body
	// Stream replaces Body: it is forwarded as it is read, and then closed.
	Stream io.ReadCloser
}

// Redirect sends the client to another address.
func Redirect(status int, to string) Response {
	return Response{Status: status, Header: http.Header{"Location": {to}}}
}

// Rejections is how routes of another protocol write rejections.
type Rejections struct {
	ContentType string
	Schema      Schema
	// Challenge is the WWW-Authenticate of a 401; "": it has none.
	Challenge string
	// Body returns the value that is written as JSON with the fault's status, or an Answer that
	// is written unchanged.
	Body func(c *Call, f *fault.Fault) any
}

const jsonType = "application/json"

// status and produces are those of a response as the route describes it.
func (r *Route) status() int {
	if r.Status == 0 {
		return http.StatusOK
	}
	return r.Status
}

func (r *Route) produces() string {
	if r.Produces == "" {
		return jsonType
	}
	return r.Produces
}

// bodyless statuses have no body.
func bodyless(status int) bool {
	return status == http.StatusNoContent || status >= 300 && status < 400
}

// takes reports whether the route reads bodies of a media type.
func (r *Route) takes(media string) bool {
	if len(r.Consumes) > 0 {
		return slices.Contains(r.Consumes, media)
	}
	return media == jsonType || strings.HasSuffix(media, "+json")
}

// formType is the media type of forms: one text for each field. Routes that take it declare it
// in Consumes.
const formType = "application/x-www-form-urlencoded"

// consumes is what bodies should be sent as.
func (r *Route) consumes() string {
	if len(r.Consumes) > 0 {
		return strings.Join(r.Consumes, " or ")
	}
	return jsonType
}

// respond returns the response for the result of a Do.
func (r *Route) respond(v any) (Response, error) {
	a, whole := v.(Response)
	if !whole {
		a = Response{JSON: v}
	}
	if a.Status == 0 {
		a.Status = r.status()
	}
	if a.ContentType == "" {
		a.ContentType = r.produces()
	}
	if a.Body != nil || a.Stream != nil || bodyless(a.Status) {
		return a, nil
	}
	if a.JSON == nil {
		a.JSON = struct{}{}
	}
	var err error
	a.Body, err = json.Marshal(a.JSON)
	return a, err
}

// reject returns the response for an error.
func reject(c *Call, f *fault.Fault) Response {
	a := Response{Status: f.Status(), ContentType: jsonType}
	refusals := c.rejections
	if c.Route != nil {
		refusals = c.Route.Rejections
	}
	if refusals == nil {
		a.Body = f.AdminBody(c.RequestID)
		return a
	}
	body := refusals.Body(c, f)
	if own, ok := body.(Response); ok {
		own.Status = a.Status
		return own
	}
	var err error
	a.ContentType = refusals.ContentType
	if refusals.Challenge != "" && a.Status == http.StatusUnauthorized {
		a.Header = http.Header{"Www-Authenticate": {refusals.Challenge}}
	}
	if a.Body, err = json.Marshal(body); err != nil {
		a.Body = f.AdminBody(c.RequestID)
	}
	return a
}

func (a *Response) write(w http.ResponseWriter) {
	h := w.Header()
	for name, values := range a.Header {
		h[name] = values
	}
	if len(a.Body) > 0 || a.Stream != nil {
		h.Set("Content-Type", a.ContentType)
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(a.Status)
	// A caller who went away needs no response.
	if a.Stream == nil {
		_, _ = w.Write(a.Body)
		return
	}
	defer a.Stream.Close()
	if strings.HasPrefix(a.ContentType, eventsType) {
		w = flushed{w}
	}
	if _, err := io.Copy(w, a.Stream); err != nil {
		panic(http.ErrAbortHandler) // so that a truncated response does not look complete
	}
}

const eventsType = "text/event-stream"

// flushed sends each piece at once.
type flushed struct{ http.ResponseWriter }

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
		if errors.Is(err, http.ErrNotSupported) { // the host buffers responses
			err = nil
		}
	}
	return n, err
}

// complete fills in what the routes of a family do not say themselves. It runs once and
// writes nothing afterwards, because the document is made while the routes serve.
func (f *Family) complete() {
	for i := range f.Routes {
		r := &f.Routes[i]
		if r.Authenticate == nil && f.Authenticate != nil && !r.Public {
			r.Authenticate = f.Authenticate
		}
		if r.Rejections == nil && f.Rejections != nil {
			r.Rejections = f.Rejections
		}
		if r.Produces == "" && f.Produces != "" {
			r.Produces = f.Produces
		}
		if r.Consumes == nil && f.Consumes != nil {
			r.Consumes = f.Consumes
		}
		r.describeRehearsal()
	}
}

// responseSchema is the schema of what the route answers.
func (r *Route) responseSchema() Schema {
	if r.Response == nil && r.ResponseOf != nil {
		return r.ResponseOf()
	}
	return r.Response
}

// documentResponses are the responses of the route in the document.
func (r *Route) documentResponses() map[string]any {
	answer := r.responseSchema()
	if answer == nil {
		answer = Schema{}
	}
	done := map[string]any{"description": "Done."}
	if !bodyless(r.status()) {
		done["content"] = r.orBinary(map[string]any{r.produces(): map[string]any{"schema": answer}})
	}
	out := map[string]any{strconv.Itoa(r.status()): done}
	refusal, media := describedError, jsonType
	if r.Rejections != nil {
		refusal, media = r.Rejections.Schema, r.Rejections.ContentType
	}
	statuses := []int{400, 429, 500, 503}
	if !r.Public {
		statuses = append(statuses, 401, 403)
	}
	if strings.Contains(r.Path, "{") || r.Level == InWorkspace || r.Level == InEither { // also of a workspace that is named
		statuses = append(statuses, 404)
	}
	if r.Body != nil {
		statuses = append(statuses, 413)
	}
	for _, s := range append(statuses, r.Errors...) {
		if bodyless(s) || s == http.StatusAccepted {
			out[strconv.Itoa(s)] = map[string]any{"description": StatusDoc(s)}
			continue
		}
		content := map[string]any{media: map[string]any{"schema": refusal}}
		if page := r.produces(); strings.HasPrefix(page, "text/html") { // some errors are pages
			content[page] = map[string]any{"schema": answer}
		}
		description := StatusDoc(s)
		if s < http.StatusMultipleChoices {
			delete(content, media)
			description = "Done."
		}
		out[strconv.Itoa(s)] = map[string]any{"description": description, "content": r.orBinary(content)}
	}
	return out
}

// statusDocs describe responses with a status.
var statusDocs = map[int]string{
	202: "Accepted.", 204: "No content.", 302: "Redirect.", 303: "Redirect.", 304: "Not modified.",
	400: "Invalid request.", 401: "Missing or invalid credential.", 402: "Payment required.", 403: "Not permitted.", 404: "Not found.", 405: "Method not allowed.",
	406: "Response format not acceptable.", 408: "Timeout.", 409: "Conflict with the current state.", 412: "Precondition failed.", 413: "Body too large.", 415: "Unsupported media type.",
	429: "Rate limit exceeded.", 446: "Denied by a guardrail.", 500: "Internal error.", 501: "Not implemented.", 502: "Upstream error.", 503: "Temporarily unavailable.",
}

// StatusDoc describes responses with a status in the document.
func StatusDoc(status int) string {
	if doc, ok := statusDocs[status]; ok {
		return doc
	}
	return http.StatusText(status) + "."
}

// orBinary adds the binary form of a response.
func (r *Route) orBinary(content map[string]any) map[string]any {
	if r.Binary != "" {
		content[r.Binary] = map[string]any{"schema": Schema{"type": "string", "format": "binary"}}
	}
	return content
}

// A client that knows only the document manages resources by it. So the response of a create
// links to the operations on what it made; a field that names another resource says of
// which collection; and fields that are never read back, or never change, are marked.

// Extensions of the document.
const (
	refersTo  = "x-gateway-refers-to" // the collection that a value refers to
	immutable = "x-gateway-immutable" // an update may repeat the value, not change it
)

// use adds hints for clients to a field's schema.
func (f *Field) use(s Schema) {
	if f.Reference != "" {
		s[refersTo] = f.Reference
	}
	if f.Example != nil {
		s["example"] = f.Example
	}
	if f.unread {
		s["writeOnly"] = true
	}
	if f.Fixed {
		s[immutable] = true
	}
}

// actions on what a create made, by the methods of its path.
var actions = map[string]string{"get": "read", "put": "update", "delete": "delete"}

// link adds the OpenAPI links of a route that creates a resource: the operations on it, and the
// runtime expressions of their variables.
func (r *Route) link(paths map[string]map[string]any) {
	if r.Makes == "" {
		return
	}
	for n, path := range r.paths() {
		item := r.itemOf(n, path)
		operations, ok := paths[item]
		op, _ := paths[path][strings.ToLower(r.Method)].(map[string]any)
		if !ok || op == nil {
			continue
		}
		links := map[string]any{}
		for _, method := range slices.Sorted(maps.Keys(actions)) {
			if on, ok := operations[method].(map[string]any); ok {
				links[actions[method]] = map[string]any{"operationId": on["operationId"], "parameters": r.variablesOf(item)}
			}
		}
		answer, _ := op["responses"].(map[string]any)[strconv.Itoa(r.status())].(map[string]any)
		if answer != nil && len(links) > 0 {
			answer["links"] = links
		}
	}
}

// itemOf is the path of the item that the n-th path of the route makes.
func (r *Route) itemOf(n int, path string) string {
	rest, ok := strings.CutPrefix(r.Makes, r.Path)
	if n > 0 && ok {
		return path + rest
	}
	return r.Makes
}

// variablesOf are the runtime expressions of the variables of an item's path.
func (r *Route) variablesOf(item string) map[string]string {
	properties, at := r.responseSchema()["properties"], "$response.body#/"
	if p, ok := properties.(map[string]Schema); ok && p["data"] != nil && p["success"] != nil {
		properties, at = p["data"]["properties"], at+"data/"
	}
	answered, _ := properties.(map[string]Schema)
	out := map[string]string{}
	for _, seg := range strings.Split(item, "/") {
		name := strings.Trim(seg, "{}")
		if name == seg {
			continue
		}
		switch {
		case r.Named[name] != "":
			out[name] = r.Named[name]
		case strings.Contains(r.Path, seg):
			out[name] = "$request.path." + name
		case answered[name] != nil:
			out[name] = at + name
		default:
			out[name] = at + "id"
		}
	}
	for name, value := range r.Named {
		out[name] = value
	}
	if r.Level == InWorkspace || r.Level == InEither {
		out[workspaceID] = "$request.body#/" + workspaceID
	}
	return out
}
