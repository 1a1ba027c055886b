package toolbox

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/mcp"
	"gateway/shared/mcp/protocolversion"
)

// Path is where the server is; no server of a workspace can have it as its slug.
const Path = "/mcp"

// Bounds.
const (
	pageSize    = 60
	maxResponse = 200_000 // bytes of the response of a tool
)

// Server is the administration as a server of the protocol.
type Server struct {
	api   API
	tools func() ([]Tool, error)
}

// New makes the server of a document, which is read when the first caller comes.
func New(api API, document func() (json.RawMessage, error)) *Server {
	return &Server{api, sync.OnceValues(func() ([]Tool, error) {
		text, err := document()
		if err != nil {
			return nil, err
		}
		return Catalog(text)
	})}
}

// Calling returns the route of a document's server, whose tools call api.
func Calling(api API) func(document func() (json.RawMessage, error)) admin.Route {
	return func(document func() (json.RawMessage, error)) admin.Route { return New(api, document).Route() }
}

// Route is the server's own.
func (s *Server) Route() admin.Route {
	message := admin.Schema{"type": "object", "description": "A JSON-RPC message."}
	return admin.Route{
		Method: "POST", Path: Path, Name: "callAdministration", Public: true, OptionalAuth: true, Unrecorded: true,
		Doc: "Use the administration API as an MCP server: one tool for each operation that the scopes of the caller's API key allow. Tool calls are recorded in the audit log like the operations.",
		Body: []admin.Field{
			{Name: "jsonrpc", Type: admin.String, Required: true, Enum: []string{"2.0"}, Doc: "The version of JSON-RPC."},
			{Name: "id", Type: admin.String, Form: admin.Schema{"type": []string{"string", "integer"}}, Doc: "Id of a request, which its response repeats."},
			{Name: "method", Type: admin.String, Required: true, Max: 256, Doc: "Such as tools/list or tools/call.", Example: "tools/list"},
			{Name: "params", Type: admin.Object, Open: true, Doc: "As defined by the method."},
		}, Unparsed: true, Consumes: []string{jsonType}, Response: message, Errors: []int{202, 401, 403, 404, 406},
		Query: []admin.Field{
			{Name: "writes", Type: admin.Boolean, Doc: "Include tools that change something."},
			{Name: "families", Type: admin.String, Max: 1000, Doc: "Only the tools of these families, separated by commas, such as configs,prompts."},
		},
		Rejections: &admin.Rejections{ContentType: jsonType, Schema: message, Body: func(c *admin.Call, f *fault.Fault) any {
			return errorResponse(f.Status(), nil, rejection(f, c.RequestID)).JSON
		}},
		Do: s.serve,
	}
}

// visit is one message.
type visit struct {
	*Server
	call  *admin.Call
	req   *protocolversion.Request
	tools []Tool // those that the address selects
}

func (s *Server) serve(c *admin.Call) (any, error) {
	if !fromHere(c.Request) {
		return nil, fault.New(fault.NotAllowed, "origin", "Pages of this origin may not call the gateway")
	}
	if c.Caller.Scope.Org == "" {
		a := errorResponse(http.StatusUnauthorized, nil, rejection(fault.New(fault.Unauthorized, "x-gateway-api-key", "An API key of the gateway is needed, in x-gateway-api-key or as a bearer token"), c.RequestID))
		a.Header = http.Header{"Www-Authenticate": {"Bearer"}}
		return a, nil
	}
	v := &visit{Server: s, call: c}
	if err := v.choose(); err != nil {
		return nil, err
	}
	req, refused := protocolversion.Read(c.Request.Header, c.Raw())
	v.req = req
	if refused != nil {
		return errorResponse(refused.Status, req.ID, &refused.Error), nil
	}
	if !req.IsRequest() {
		return admin.Response{Status: http.StatusAccepted, ContentType: jsonType, Body: []byte{}}, nil
	}
	return v.respond()
}

// fromHere reports whether a page may call, by the Origin header. Clients other than browsers
// send none.
func fromHere(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	u, err := url.Parse(origin)
	return origin == "" || err == nil && u.Host != "" && u.Host == r.Host
}

// choose selects the tools by the address.
func (v *visit) choose() error {
	all, err := v.Server.tools()
	if err != nil {
		return err
	}
	var families []string
	for f := range strings.SplitSeq(v.call.Query.Text("families"), ",") {
		f = strings.TrimSpace(f)
		if f == "" {
			continue
		}
		if !slices.ContainsFunc(all, func(t Tool) bool { return t.Family == f }) {
			return fault.Invalid("families", "must contain only %s", strings.Join(familiesOf(all), ", "))
		}
		families = append(families, f)
	}
	writes := v.call.Query.Bool("writes")
	for _, t := range all {
		if (writes || t.Reads()) && (families == nil || slices.Contains(families, t.Family)) {
			v.tools = append(v.tools, t)
		}
	}
	return nil
}

func familiesOf(tools []Tool) (names []string) {
	for _, t := range tools {
		if !slices.Contains(names, t.Family) {
			names = append(names, t.Family)
		}
	}
	return names
}

func (v *visit) respond() (any, error) {
	modern := v.req.Kind == protocolversion.Stateless
	switch {
	case v.req.Method == "initialize" && !modern:
		return v.result(v.hello()), nil
	case v.req.Method == "ping" && !modern:
		return v.result(map[string]any{}), nil
	case v.req.Method == "server/discover" && modern:
		return v.result(v.discovered()), nil
	case v.req.Method == "tools/list":
		return v.list()
	case v.req.Method == "tools/call":
		return v.use()
	}
	return v.wrong(http.StatusNotFound, mcp.CodeMethodNotFound, "this server only supports tools"), nil
}

// about is how the server introduces itself to clients.
const about = "The administration of the AI gateway. Tools are its operations, named as in its OpenAPI document; parameters of the path and the query are arguments beside body, which is the JSON of the request. " +
	"With a key of the organization most tools need workspace_id. Tools that change something are there when the address of this server has ?writes=true."

func (v *visit) hello() map[string]any {
	version := v.req.Text("protocolVersion")
	if !slices.Contains(mcp.Versions, version) {
		version = mcp.Versions[0]
	}
	return map[string]any{"protocolVersion": version, "capabilities": map[string]any{"tools": struct{}{}}, "serverInfo": mcp.ClientInfo, "instructions": about}
}

func (v *visit) discovered() map[string]any {
	return v.private(map[string]any{
		"supportedVersions": append([]string{protocolversion.Version}, mcp.Versions...), "capabilities": map[string]any{"tools": struct{}{}}, "instructions": about,
		"_meta": map[string]any{mcp.MetaServer: mcp.ClientInfo},
	})
}

// private marks a result that only this caller may keep, and not for long.
func (v *visit) private(result map[string]any) map[string]any {
	if v.req.Kind == protocolversion.Stateless {
		result["ttlMs"], result["cacheScope"] = 0, "private"
	}
	return result
}

// list is a page of the tools that the caller's scopes allow.
func (v *visit) list() (any, error) {
	from := 0
	if v.req.Fields["cursor"] != nil {
		after, err := base64.RawURLEncoding.DecodeString(v.req.Text("cursor"))
		n := slices.IndexFunc(v.tools, func(t Tool) bool { return t.Name == string(after) })
		if err != nil || n < 0 {
			return v.wrong(http.StatusOK, mcp.CodeInvalidParams, "params.cursor is unknown; use nextCursor of the previous page"), nil
		}
		from = n + 1
	}
	shown, next := []any{}, ""
	for i := from; i < len(v.tools); i++ {
		t := &v.tools[i]
		if !v.call.Caller.HasAny(t.Scopes) {
			continue
		}
		if len(shown) == pageSize {
			next = base64.RawURLEncoding.EncodeToString([]byte(v.tools[i-1].Name))
			break
		}
		shown = append(shown, t.shown())
	}
	out := v.private(map[string]any{"tools": shown})
	if next != "" {
		out["nextCursor"] = next
	}
	return v.result(out), nil
}

// use calls a tool. A rejection of the API is a response of the tool.
func (v *visit) use() (any, error) {
	name := v.req.Text("name")
	n := slices.IndexFunc(v.tools, func(t Tool) bool { return t.Name == name })
	if n < 0 {
		return v.wrong(http.StatusOK, mcp.CodeInvalidParams, v.unknown(name)), nil
	}
	t := &v.tools[n]
	r, why := t.request(v.call.Context, v.req.Fields["arguments"])
	if why != "" {
		return v.toolResult(why, true), nil
	}
	got, err := v.api.Call(v.call.Request, r, maxResponse)
	switch {
	case err != nil:
		return nil, err
	case got.Large:
		why := fmt.Sprintf("The response has more than %d bytes.", maxResponse)
		if less := t.paging(); less != "" {
			why += " Request less: " + less + "."
		}
		return v.toolResult(why, true), nil
	case !utf8.Valid(got.Body):
		return v.toolResult("The response is not text.", true), nil
	}
	return v.toolResult(string(got.Body), got.Status >= http.StatusBadRequest), nil
}

// unknown explains why there is no such tool.
func (v *visit) unknown(name string) string {
	all, err := v.Server.tools()
	if err == nil && slices.ContainsFunc(all, func(t Tool) bool { return t.Name == name && !t.Reads() }) && !v.call.Query.Bool("writes") {
		return "this tool changes something: connect to the address with ?writes=true"
	}
	return "unknown tool"
}

// toolResult returns a tool result with a text for the model.
func (v *visit) toolResult(text string, failed bool) admin.Response {
	out := map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}}
	if failed {
		out["isError"] = true
	}
	return v.result(out)
}

func (v *visit) result(members map[string]any) admin.Response {
	if v.req.Kind == protocolversion.Stateless {
		members["resultType"] = "complete"
	}
	return admin.Response{Status: http.StatusOK, JSON: map[string]any{"jsonrpc": "2.0", "id": v.req.ID, "result": members}}
}

// wrong is an error of the protocol. In eras with sessions its HTTP status is 200.
func (v *visit) wrong(status, code int, message string) admin.Response {
	if v.req.Kind != protocolversion.Stateless {
		status = http.StatusOK
	}
	return errorResponse(status, v.req.ID, &mcp.Error{Code: code, Message: message})
}

// rejection returns a fault as an error of the protocol.
func rejection(f *fault.Fault, id string) *mcp.Error {
	wrong := []map[string]string{}
	for _, d := range f.Details {
		wrong = append(wrong, map[string]string{"field": d.Field, "message": d.Message})
	}
	data, _ := json.Marshal(map[string]any{"field": f.Field, "errors": wrong, "request_id": id}) // texts
	return &mcp.Error{Code: f.Status(), Message: f.Message, Data: data}
}

// errorResponse is an error; one to a message that was not read has no id.
func errorResponse(status int, id json.RawMessage, e *mcp.Error) admin.Response {
	out := map[string]any{"jsonrpc": "2.0", "error": e}
	if id != nil {
		out["id"] = id
	}
	return admin.Response{Status: status, ContentType: jsonType, JSON: out}
}
