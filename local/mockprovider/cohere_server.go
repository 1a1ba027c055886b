package mockprovider

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// cohereShape serves Cohere: /v2/chat, /v2/embed, /v2/rerank and /v1/generate.
var cohereShape = &shape{name: "cohere", match: cohereMatch, authenticate: cohereAuthenticate, refuse: cohereRefuse}

var cohereHandlers = map[string]func(*exchange) *apiError{
	"/v2/chat":     cohereChat,
	"/v2/embed":    cohereEmbed,
	"/v2/rerank":   cohereRerank,
	"/v1/generate": cohereGenerate,
}

func cohereMatch(x *exchange) func(*exchange) *apiError {
	handle := cohereHandlers[x.path]
	if handle == nil {
		return nil
	}
	return func(x *exchange) *apiError {
		if x.r.Method != http.MethodPost {
			return &apiError{status: http.StatusMethodNotAllowed, message: "method not allowed"}
		}
		return handle(x)
	}
}

func cohereAuthenticate(x *exchange) *apiError {
	key, _ := strings.CutPrefix(x.r.Header.Get("Authorization"), "Bearer ")
	switch {
	case key == "":
		return &apiError{status: http.StatusUnauthorized, message: "no api key supplied"}
	case key == "mock-limited":
		return &apiError{status: http.StatusTooManyRequests, message: "You are using a Trial key, which is limited to 10 API calls / minute.", retryAfter: "1"}
	case !strings.HasPrefix(key, "mock-"):
		return &apiError{status: http.StatusUnauthorized, message: "invalid api token"}
	}
	return nil
}

// cohereRefuse answers with {id, message}.
func cohereRefuse(x *exchange, e *apiError) {
	h := x.w.Header()
	id := x.newID("", uint32(e.status))
	h["Content-Type"] = []string{"application/json"}
	if e.retryAfter != "" {
		h["Retry-After"] = []string{e.retryAfter}
	}
	if !x.hasRow {
		x.row = x.s.bill.begin(x.path, x.model, id, false)
	}
	x.row.close(e.status, Usage{}, x.gone(), "")
	x.w.WriteHeader(e.status)
	b := appendString([]byte(`{"id":`), id)
	b = appendString(append(b, `,"message":`...), e.message)
	_, _ = x.w.Write(append(b, '}'))
}

func cohereBad(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, message: "invalid request: " + fmt.Sprintf(format, args...)}
}

// cohereBody reads a body that has only the named members, and its model.
func cohereBody(x *exchange, names ...string) (value, *apiError) {
	v, e := parseBody(x)
	if e != nil {
		return v, cohereBad("%s", e.message)
	}
	for _, m := range v.obj {
		if !slices.Contains(names, m.name) {
			return v, &apiError{status: http.StatusUnprocessableEntity, message: "invalid request: json: unknown field " + quoted(m.name)}
		}
	}
	m := v.get("model")
	if m.kind != text || m.s == "" {
		return v, cohereBad("model is required")
	}
	name, err := splitModel(m.s, &x.st)
	if err != nil {
		return v, cohereBad("%s", err)
	}
	if x.model = name; strings.Contains(name, "does-not-exist") {
		return v, &apiError{status: http.StatusNotFound, message: "model '" + name + "' not found, make sure the correct model ID was used and that you have access to the model."}
	}
	return v, nil
}

// within refuses a number out of bounds.
func within(v value, name string, low, high float64) *apiError {
	n := v.get(name)
	if n.given() && (n.kind != number || n.float() < low || n.float() > high) {
		return cohereBad("%s must be between %g and %g inclusive.", name, low, high)
	}
	return nil
}
