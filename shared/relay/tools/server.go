package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/mcp"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/wire"
)

// Limits of lists.
const (
	maxPages = 50
	maxTools = 512 // offered per server
	// maxListed limits the bytes of all tool descriptions of a run: each turn sends them again.
	maxListed = 4 << 20
	// timesResult is the maximum size of a message relative to the result in it: texts are
	// escaped there, and often occur twice.
	timesResult = 4
)

// rejection is the reason why a server returned no result.
type rejection struct {
	status  int // of HTTP; 200 if only the protocol has an error
	code    int // of the protocol
	message string
	address string // where the user must sign in; "": nowhere
	fault   string // the gateway's own code; "": none
}

// ask sends a request to a server through the pipeline and reads its result.
func (r *run) ask(ctx context.Context, slug, method string, params map[string]any, h http.Header) (object, *rejection) {
	params["_meta"] = map[string]any{mcp.MetaVersion: protocolversion.Version, mcp.MetaCapabilities: struct{}{}, mcp.MetaClient: mcp.ClientInfo}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return nil, &rejection{status: http.StatusOK, code: mcp.CodeInvalidParams, message: "the arguments are not JSON"}
	}
	h[mcp.HeaderVersion], h[mcp.HeaderMethod] = []string{protocolversion.Version}, []string{method}
	h["Content-Type"], h["Accept"] = []string{"application/json"}, []string{"application/json, text/event-stream"}
	limit := r.MaxResponse
	if method == "tools/call" {
		limit = min(limit, timesResult*r.Result+4096)
	}
	w := &partResponse{header: http.Header{}, limit: limit}
	broken := r.loop.Call(ctx, w, slug, h, body)
	switch {
	case ctx.Err() != nil:
		return nil, &rejection{status: http.StatusGatewayTimeout, message: "the tool run ended before the server responded"}
	case broken || w.tooLong:
		return nil, &rejection{status: http.StatusBadGateway, message: "the server's response was truncated"}
	}
	return readResponse(w)
}

// readResponse reads the response message; of a stream, the last one.
func readResponse(w *partResponse) (object, *rejection) {
	body := w.body.Bytes()
	if strings.HasPrefix(w.header.Get("Content-Type"), "text/event-stream") {
		var p wire.SSEParser
		var last []byte
		keep := func(_ string, data []byte) error {
			last = append(last[:0], data...)
			return nil
		}
		if p.Feed(body, keep) == nil {
			_ = p.End(keep) // never fails
		}
		body = last
	}
	var m struct {
		Result object `json:"result"`
		Error  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
			Data    struct {
				Error   json.RawMessage `json:"error"`
				Address json.RawMessage `json:"authorization_url"`
			} `json:"data"`
		} `json:"error"`
	}
	status := max(w.status, http.StatusOK)
	if err := json.Unmarshal(body, &m); err != nil && m.Error == nil {
		return nil, &rejection{status: http.StatusBadGateway, message: "the server's response is not a message of the protocol"}
	}
	switch {
	case m.Error != nil:
		return nil, &rejection{status, m.Error.Code, m.Error.Message, text(m.Error.Data.Address), text(m.Error.Data.Error)}
	case m.Result == nil:
		return nil, &rejection{status: http.StatusBadGateway, message: "the server's response has no result"}
	}
	return m.Result, nil
}

// list requests the tools of the server and names them. size is the number of bytes of the
// descriptions so far; it returns it with those of the server.
func (s *server) list(r *run, n *names, size int) (int, error) {
	cursor := ""
	for range maxPages {
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		result, refused := r.ask(r.ctx, s.slug, "tools/list", params, http.Header{})
		if refused != nil {
			return 0, refused.ofList(s)
		}
		var page []object
		if json.Unmarshal(result["tools"], &page) != nil {
			return 0, (&rejection{status: http.StatusBadGateway, message: "the server's list does not match the protocol"}).ofList(s)
		}
		for _, of := range page {
			if t := readTool(s, n, of); t != nil {
				s.tools, n.tools[t.as] = append(s.tools, t), t
				size += len(t.name) + len(t.description) + len(t.schema) + len(t.annotations)
			}
			if size > maxListed {
				return 0, fault.Invalid(s.field()+".allowed_tools", "must choose fewer tools of the MCP server %s: the names, descriptions and schemas of all tools of a request must have at most %d bytes together", s.slug, maxListed)
			}
		}
		if len(s.tools) > maxTools {
			return 0, fault.Invalid(s.field()+".allowed_tools", "must choose at most %d of the server's tools", maxTools)
		}
		if cursor = text(result["nextCursor"]); cursor == "" {
			return size, nil
		}
	}
	return 0, (&rejection{status: http.StatusBadGateway, message: "the server's list has too many pages"}).ofList(s)
}

func (s *server) field() string { return "tools[" + strconv.Itoa(s.at) + "]" }

// readTool reads one tool of a list; nil if it is not offered.
func readTool(s *server, n *names, of object) *tool {
	var hints struct {
		ReadOnly bool `json:"readOnlyHint"`
	}
	_ = json.Unmarshal(of["annotations"], &hints) // another format has no hints
	name := text(of["name"])
	marks, ok := protocolversion.HeaderParams(of["inputSchema"])
	if name == "" || !ok || s.allowed != nil && !s.allowed.has(name, hints.ReadOnly) {
		return nil
	}
	var schema object
	if json.Unmarshal(of["inputSchema"], &schema) != nil || schema == nil {
		schema = object{}
	}
	if schema["type"] == nil {
		schema["type"] = quoted("object")
	}
	if schema["properties"] == nil {
		schema["properties"] = json.RawMessage("{}") // providers require it
	}
	delete(schema, "$schema")
	return &tool{
		of: s, name: name, as: n.free(s, name), description: text(of["description"]),
		schema: encoded(schema), annotations: of["annotations"], readOnly: hints.ReadOnly, marks: marks,
	}
}

// ofList returns the error for a server without a list of tools.
func (f *rejection) ofList(s *server) error {
	code, status := fault.ProviderError, http.StatusFailedDependency
	message := "The tools of the MCP server " + s.slug + " cannot be listed: " + fault.Clip(f.message, 500)
	switch {
	case f.address != "":
		message = "The user has to sign in at the MCP server " + s.slug + " first: open " + f.address
	case f.fault != "" && f.status >= 400 && f.status != http.StatusUnauthorized && fault.IsKnown(fault.Code(f.fault)):
		code, status, message = fault.Code(f.fault), f.status, f.message
	}
	return &fault.Fault{Code: code, StatusCode: status, Field: s.field() + ".server_label", Message: message}
}

// outcome is the result of a call.
type outcome struct {
	text   string
	images []image
	failed bool
	code   int // of the protocol, if it was rejected; 0: the tool itself has failed
}

// image is one of a result, in base64.
type image struct{ media, data string }

func failure(code int, message string) *outcome {
	return &outcome{text: message, failed: true, code: code}
}

// make calls a tool. Failures are reported to the model.
func (r *run) make(ctx context.Context, t *tool, args string) *outcome {
	if strings.TrimSpace(args) == "" {
		args = "{}"
	}
	if wire.CheckStrict([]byte(args), maxDepth) != nil || wire.KindOf([]byte(args)) != wire.KindObject {
		return failure(mcp.CodeInvalidParams, "The arguments of the call are not a JSON object.")
	}
	h := http.Header{mcp.HeaderName: {protocolversion.EncodeHeader(t.name)}}
	protocolversion.SetParams(h, t.marks, json.RawMessage(args))
	result, refused := r.ask(ctx, t.of.slug, "tools/call", map[string]any{"name": t.name, "arguments": json.RawMessage(args)}, h)
	switch {
	case refused == nil:
		return r.judged(ctx, t, result)
	case refused.address != "":
		return failure(refused.code, "The user has to sign in at the MCP server first: open "+refused.address)
	}
	return r.judgedRejection(ctx, t, refused)
}

// judgedRejection returns the error of a server after guardrails, because the model reads its
// text like that of a result.
func (r *run) judgedRejection(ctx context.Context, t *tool, refused *rejection) *outcome {
	message := "The call failed: " + fault.Clip(refused.message, 2000)
	part := append(wire.AppendJSONString([]byte(`[{"type":"text","text":`), message), "}]"...)
	out := r.judged(ctx, t, object{"content": part, "isError": json.RawMessage("true")})
	if out.code == 0 {
		out.code = refused.code
	}
	return out
}

// judged returns the result of a tool after guardrails. A denied result reaches neither the
// model nor the client.
func (r *run) judged(ctx context.Context, t *tool, result object) *outcome {
	if r.loop.Judge == nil {
		return readResult(result)
	}
	now, denied := r.loop.Judge(ctx, t.name, encoded(result))
	var changed object
	switch {
	case denied != nil:
		return failure(mcp.CodeInternal, "The result was withheld: "+denied.Message)
	case now == nil:
		return readResult(result)
	case json.Unmarshal(now, &changed) != nil:
		return failure(mcp.CodeInternal, "The result was withheld: a guardrail changed it into an invalid result.")
	}
	return readResult(changed)
}

// readResult reads the result of a tool.
func readResult(result object) *outcome {
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Data     string          `json:"data"`
		Media    string          `json:"mimeType"`
		URI      string          `json:"uri"`
		Resource json.RawMessage `json:"resource"`
	}
	if kind := text(result["resultType"]); kind != "" && kind != "complete" {
		return failure(mcp.CodeInternal, "The tool requests user input, which the gateway does not support.")
	}
	if result["content"] != nil && json.Unmarshal(result["content"], &parts) != nil {
		return failure(mcp.CodeInternal, "The tool's result does not conform to the protocol.")
	}
	out := &outcome{failed: string(bytes.TrimSpace(result["isError"])) == "true"}
	var said []string
	for _, p := range parts {
		switch {
		case p.Type == "text":
			said = append(said, p.Text)
		case p.Type == "image" && strings.HasPrefix(p.Media, "image/") && p.Data != "":
			out.images = append(out.images, image{p.Media, p.Data})
		case p.Type == "resource":
			said = append(said, embedded(p.Resource))
		case p.Type == "resource_link":
			said = append(said, p.URI)
		default:
			said = append(said, "["+p.Type+" "+p.Media+"]")
		}
	}
	if len(parts) == 0 && result["structuredContent"] != nil {
		said = append(said, string(result["structuredContent"]))
	}
	out.text = strings.Join(said, "\n")
	return out
}

// embedded returns the text for a resource within a result.
func embedded(raw json.RawMessage) string {
	var of struct {
		URI   string  `json:"uri"`
		Media string  `json:"mimeType"`
		Text  *string `json:"text"`
	}
	if json.Unmarshal(raw, &of) != nil {
		return "[resource]"
	}
	if of.Text != nil {
		return *of.Text
	}
	return "[resource " + of.URI + " " + of.Media + "]"
}

// partResponse is the response to one part of a run: an http.ResponseWriter. Events of a stream are
// forwarded as they arrive if event is set; everything else is buffered.
type partResponse struct {
	header  http.Header
	status  int
	limit   int // bytes of the buffer
	tooLong bool
	body    bytes.Buffer
	event   func(w *partResponse, data []byte) error // nil: events are not read
	events  bool                                     // it is a stream of events
	parser  wire.SSEParser
}

var errTooLong = errors.New("toolrun: the response is too long")

// Header implements http.ResponseWriter.
func (w *partResponse) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *partResponse) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
		w.events = w.event != nil && status < 300 && strings.HasPrefix(w.header.Get("Content-Type"), "text/event-stream")
	}
}

// Flush implements http.Flusher. It does nothing: events are forwarded as soon as they are
// complete.
func (w *partResponse) Flush() {}

// Write implements io.Writer.
func (w *partResponse) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.events {
		if err := w.parser.Feed(p, w.handOn); err != nil {
			w.tooLong = true
			return 0, err
		}
		return len(p), nil
	}
	if w.body.Len()+len(p) > w.limit {
		w.tooLong = true
		return 0, errTooLong
	}
	return w.body.Write(p)
}

func (w *partResponse) handOn(_ string, data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return nil // the end of streams in other dialects
	}
	return w.event(w, data)
}

// end forwards a final event without a trailing blank line.
func (w *partResponse) end() {
	if w.events && w.parser.End(w.handOn) != nil {
		w.tooLong = true
	}
}

// fault returns the fault in an error response.
func (w *partResponse) fault() *fault.Fault {
	var told struct {
		Error struct {
			Message json.RawMessage `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(w.body.Bytes(), &told) // another format has no message
	return &fault.Fault{
		Code:       fault.Code(cmp.Or(w.header.Get("X-Gateway-Error-Code"), string(fault.ProviderError))),
		StatusCode: cmp.Or(w.status, http.StatusBadGateway),
		Message:    cmp.Or(fault.Clip(text(told.Error.Message), 2000), "The request for a turn of the model was rejected"),
		Source:     fault.SourceProvider,
	}
}
