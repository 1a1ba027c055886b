package routes

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/fault/hint"
	"gateway/shared/wire/azure"
)

// AnyPath is the path of the route that serves all paths without another route.
const AnyPath = "/*"

// BasePath is the prefix of every route.
const BasePath = "/v1"

// Table finds the route of a request by one lookup of the path, or, for paths with variables, by
// a search of those with the same length. Paths are matched escaped, as received.
type Table struct {
	exact    map[string][]*Route // by path below BasePath
	variable map[int][]pattern   // by the number of segments
	greedy   []pattern           // that end with a variable for the rest
	any      *Route
}

// pattern is the path of a route with variables: {name} is any one segment that is not empty,
// {name+} at the end the rest.
type pattern struct {
	segments []string
	routes   []*Route
}

// NewTable returns the table of routes, which stay as they are: the table links copies. It
// panics on two routes with the same method and path.
func NewTable(routes []Route) *Table {
	t := &Table{exact: make(map[string][]*Route), variable: make(map[int][]pattern)}
	routes = slices.Clone(routes)
	for i := range routes {
		rt := &routes[i]
		if h, ok := rt.Handler.(*DryRun); ok {
			rt.Handler = &DryRun{Routes: h.Routes, table: NewTable(h.Routes)}
		}
		if rt.Scope == "" && rt.Endpoint != "" {
			panic("relay: the route " + rt.Path + " has no scope")
		}
		if rt.Path == AnyPath {
			t.any, rt.shadowed = rt, t
			rt.nameNative()
			continue
		}
		for _, other := range t.exact[rt.Path] {
			if other.Method == rt.Method {
				panic("relay: two routes for " + rt.Method + " " + rt.Path)
			}
		}
		t.exact[rt.Path] = append(t.exact[rt.Path], rt)
	}
	t.linkTurns()
	for path, routes := range t.exact {
		if strings.Contains(path, "{") {
			delete(t.exact, path)
			segments := strings.Split(path[1:], "/")
			if strings.HasSuffix(path, "+}") {
				t.greedy = append(t.greedy, pattern{segments, routes})
				continue
			}
			t.variable[len(segments)] = append(t.variable[len(segments)], pattern{segments, routes})
		}
	}
	return t
}

// linkTurns finds the routes that messages are posted to.
func (t *Table) linkTurns() {
	for _, routes := range t.exact {
		for _, rt := range routes {
			if h, ok := rt.Handler.(*Dialogue); ok {
				rt.Handler = h.linked(t.exact[h.Path])
			}
		}
	}
}

// take returns the value of the pattern's variable; ok is false if the path does not match.
func (p *pattern) take(below string) (id string, ok bool) {
	rest := below[1:]
	for i, want := range p.segments {
		segment, after, more := strings.Cut(rest, "/")
		if more != (i < len(p.segments)-1) {
			return "", false
		}
		switch {
		case want[0] != '{':
			if segment != want {
				return "", false
			}
		case segment == "":
			return "", false
		default:
			id = segment
		}
		rest = after
	}
	return id, true
}

// at returns the routes of a path below BasePath and the value of its variable.
func (t *Table) at(below string) (routes []*Route, id string) {
	if routes = t.exact[below]; routes != nil || len(t.variable)+len(t.greedy) == 0 {
		return routes, ""
	}
	for _, p := range t.variable[strings.Count(below, "/")] {
		if id, ok := p.take(below); ok {
			return p.routes, id
		}
	}
	for _, p := range t.greedy {
		if p.begins(below) {
			return p.routes, ""
		}
	}
	return nil, ""
}

// begins reports whether a path starts with the pattern's segments except the last, which
// matches the rest.
func (p *pattern) begins(below string) bool {
	parts := strings.SplitN(below[1:], "/", len(p.segments))
	if len(parts) < len(p.segments) {
		return false
	}
	head := pattern{segments: p.segments[:len(p.segments)-1]}
	_, ok := head.take("/" + strings.Join(parts[:len(parts)-1], "/"))
	return ok
}

// Find returns the route of a method and an escaped path; nil if there is none.
func (t *Table) Find(method, path string) *Route {
	rt, _ := t.Match(method, path)
	return rt
}

// Match also returns the value of the path's variable, escaped.
func (t *Table) Match(method, path string) (rt *Route, id string) {
	below, ok := strings.CutPrefix(path, BasePath)
	if !ok || !strings.HasPrefix(below, "/") {
		return nil, ""
	}
	routes, id := t.at(below)
	for _, rt := range routes {
		if rt.Method == method {
			return rt, id
		}
	}
	if t.any != nil && slices.Contains(t.any.Methods, method) && !IsReserved(below) {
		if own, model := t.any.nativeAt(method, below); own != nil {
			return own, model
		}
		return t.any, ""
	}
	return nil, ""
}

// Owns reports whether an escaped path is that of a route, with any method.
func (t *Table) Owns(path string) bool {
	below, ok := strings.CutPrefix(path, BasePath)
	if !ok || !strings.HasPrefix(below, "/") {
		return false
	}
	routes, _ := t.at(below)
	return routes != nil
}

// NotFound writes the response for a path without a route.
func NotFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(fault.New(fault.RouteNotFound, "", "").Status())
	_, _ = w.Write([]byte(`{"message":"Not Found","ok":false}`))
}

// Refuse responds to a request without a route: 404, or 405 with the allowed methods if the path
// is one of the administration API that is served here.
func (t *Table) Refuse(w http.ResponseWriter, req *http.Request) {
	below, ok := strings.CutPrefix(req.URL.EscapedPath(), BasePath)
	if !ok || !strings.HasPrefix(below, "/") || !IsReserved(below) {
		NotFound(w)
		return
	}
	f := fault.New(fault.RouteNotFound, "", "The administration API has no such route, and its paths are never forwarded to a provider; a provider's path with the same name can be reached below "+BasePath+"/proxy/")
	if routes, _ := t.at(below); routes != nil {
		allowed := strings.Join(methods(routes), ", ")
		w.Header().Set("Allow", allowed)
		f = fault.Newf(fault.MethodNotAllowed, "", "This route accepts %s", allowed)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status())
	_, _ = w.Write(f.AdminBody("")) // the client may be gone
}

// MisdirectedFault returns the fault of a request that is not meant for a provider: its path is that of
// a route with another method, or a misspelled one. It returns nil for other paths, and for
// routes other than that of AnyPath.
func (rt *Route) MisdirectedFault(method, path string) *fault.Fault {
	below, ok := strings.CutPrefix(path, BasePath)
	if rt.shadowed == nil || !ok || !strings.HasPrefix(below, "/") {
		return nil
	}
	if below == "/" {
		return fault.New(fault.RouteNotFound, "", "There is no such route; GET /v1/docs documents all")
	}
	if routes, _ := rt.shadowed.at(below); routes != nil {
		return fault.Newf(fault.MethodNotAllowed, "", "This route accepts %s, not %s", strings.Join(methods(routes), ", "), method)
	}
	if meant := hint.SuggestPath(below, rt.shadowed.known()); meant != "" {
		return fault.New(fault.RouteNotFound, "", "There is no such route"+meant+" A provider's path needs a workspace key, and x-gateway-config or x-gateway-provider")
	}
	return nil
}

// methods lists the methods of routes, sorted.
func methods(routes []*Route) []string {
	var out []string
	for _, rt := range routes {
		out = append(out, rt.Method)
	}
	slices.Sort(out)
	return out
}

// known lists the paths of the table, sorted, and the families of the administration.
func (t *Table) known() []string {
	out := slices.Collect(maps.Keys(t.exact))
	for _, patterns := range t.variable {
		for _, p := range patterns {
			out = append(out, "/"+strings.Join(p.segments, "/"))
		}
	}
	if t.any != nil { // paths beside these belong to providers as well
		for i := range t.any.Native {
			out = append(out, t.any.Native[i].Path)
		}
	}
	for _, row := range Reserved() {
		if first, _, _ := strings.Cut(row.Path[1:], "/"); !row.Passes && !slices.Contains(out, "/"+first) {
			out = append(out, "/"+first)
		}
	}
	slices.Sort(out)
	return out
}

// Some clients add the version to each path, others expect it in the base URL. So with one base
// URL it occurs twice, with the other not at all; both select the same route. Only these paths
// are corrected: routes of the table, paths of native clients, of Azure's clients and, at the
// root, further paths of Google's and Cohere's clients. In pass-through every byte of a path
// counts.

// Canonical returns a request with the canonical path of its route below BasePath; it is the
// request itself if it has that path, or if no route matches.
func (t *Table) Canonical(req *http.Request) *http.Request {
	path := req.URL.EscapedPath()
	below, ok := strings.CutPrefix(path, BasePath)
	atRoot := !ok || !strings.HasPrefix(below, "/")
	if atRoot {
		below = path
		if own, ok := strings.CutPrefix(path, azure.Base+BasePath+"/"); ok { // the Azure form
			return respelled(req, "/"+own, req.URL.RawQuery)
		}
	}
	if google, ok := googleModel(req.Method, below); ok && t.any != nil {
		return respelled(req, google, req.URL.RawQuery)
	}
	if one, ok := googleListed(req, below); ok && t.means(req.Method, one) {
		return respelled(req, one, req.URL.RawQuery)
	}
	if op, deployment, ok := azure.SplitPath(below, req.URL.RawQuery); ok && t.means(req.Method, op) {
		return respelled(req, op, azure.Query(req.URL.RawQuery, deployment))
	}
	if !atRoot {
		if below, ok = strings.CutPrefix(below, BasePath); !ok {
			return req
		}
	}
	if len(below) < 2 || below[0] != '/' || !(t.means(req.Method, below) || atRoot && t.passesAtRoot(req.Method, below)) {
		return req
	}
	return respelled(req, below, req.URL.RawQuery)
}

// rooted are the prefixes of paths that are passed through at the root: versions of Google's
// APIs, with which no route of the table begins, paths of Cohere's clients besides chat, and
// models of Bedrock's runtime (invoke, invoke-with-response-stream).
var rooted = []string{"/v1beta/", "/v1alpha/", "/v1beta1/", "/upload/v1beta/", "/upload/v1alpha/", "/v2/embed", "/v2/rerank", "/v2/embed-jobs", "/v2/datasets", "/model/"}

func (t *Table) passesAtRoot(method, path string) bool {
	return t.any != nil && slices.Contains(t.any.Methods, method) && slices.ContainsFunc(rooted, func(begins string) bool {
		return strings.HasPrefix(path, begins) && (begins[len(begins)-1] == '/' || len(path) == len(begins) || path[len(begins)] == '/')
	})
}

// respelled returns a request with another path below BasePath and another query.
func respelled(req *http.Request, below, query string) *http.Request {
	plain, err := url.PathUnescape(below)
	if err != nil {
		return req
	}
	other, u := *req, *req.URL
	u.Path, u.RawPath, u.RawQuery = BasePath+plain, "", query
	if plain != below {
		u.RawPath = BasePath + below
	}
	other.URL = &u
	if req.RequestURI != "" {
		other.RequestURI = BasePath + below
		if _, _, has := strings.Cut(req.RequestURI, "?"); query != "" || has && req.URL.RawQuery == "" {
			other.RequestURI += "?" + query
		}
	}
	return &other
}

// means reports whether a path below BasePath is that of a route with the method.
func (t *Table) means(method, below string) bool {
	routes, _ := t.at(below)
	for _, rt := range routes {
		if rt.Method == method {
			return true
		}
	}
	if t.any == nil {
		return false
	}
	own, _ := t.any.nativeAt(method, below)
	return own != nil
}

// googleMethods are the methods of a model in Google's API, as its SDKs call them.
var googleMethods = []string{
	"generateContent", "streamGenerateContent", "countTokens", "embedContent", "batchEmbedContents",
	"predict", "predictLongRunning", "batchGenerateContent", "asyncBatchEmbedContent",
}

// googleVersion is the version of Google's API in the paths of the gateway and its catalog.
const googleVersion = "/v1beta"

// googleNames begin the paths of what has these methods in Google's API.
var googleNames = []string{"models", "tunedModels", "dynamic", "projects", "publishers"}

// googleModel returns the path below BasePath of a call to a model by clients of Google's API that
// do not write /v1beta/models/{model}:generateContent. SDKs 3 and later use v1 instead of v1beta;
// it may already be removed from below, since it equals the gateway's own version. The AI SDK
// omits models/ before a name with a slash, such as @slug/model. ok is false for other paths.
func googleModel(method, below string) (path string, ok bool) {
	colon := strings.LastIndexByte(below, ':')
	if colon < 0 || method != http.MethodPost || !slices.Contains(googleMethods, below[colon+1:]) {
		return "", false
	}
	if rest, ok := strings.CutPrefix(below, BasePath+"/"); ok {
		below = "/" + rest
	}
	if rest, ok := strings.CutPrefix(below, "/models/"); ok {
		return googleVersion + below, rest[0] != ':'
	}
	name, versioned := strings.CutPrefix(below, googleVersion+"/")
	name = strings.TrimPrefix(name, "/")
	first, _, slash := strings.Cut(name, "/")
	if !slash || !strings.HasPrefix(first, "@") && !strings.HasPrefix(first, "%40") && (!versioned || slices.Contains(googleNames, first)) {
		return "", false
	}
	return googleVersion + "/models/" + name, true
}

// GoogleClient reports whether a request comes from a client of Google's API, which is told by
// its headers where its paths are those of OpenAI's: GET /v1/models and /v1/models/{model}.
func GoogleClient(h http.Header) bool {
	return h["Anthropic-Version"] == nil && (h["X-Goog-Api-Key"] != nil || h["X-Goog-Api-Client"] != nil)
}

// googleListed returns the path of a model that a Google client reads, with a name of several
// segments (@slug/model) as one.
func googleListed(req *http.Request, below string) (path string, ok bool) {
	below = strings.TrimPrefix(below, BasePath)
	rest, ok := strings.CutPrefix(below, "/models/")
	if !ok || req.Method != http.MethodGet || !strings.Contains(rest, "/") || !GoogleClient(req.Header) {
		return "", false
	}
	return "/models/" + strings.ReplaceAll(rest, "/", "%2F"), true
}
