package routes

import (
	"net/http"
	"strings"

	"gateway/shared/fault"
)

// Refuse responds to a request without a route: 404, or 405 with the allowed methods if the path
// is one of the administration API that is served here.
func (t *Table) Refuse(w http.ResponseWriter, req *http.Request) {
	below, ok := strings.CutPrefix(req.URL.EscapedPath(), BasePath)
	if !ok || !strings.HasPrefix(below, "/") || !Takes(below) {
		NotFound(w)
		return
	}
	f := fault.New(fault.RouteNotFound, "", "The administration API has no such route, and its paths are never forwarded to a provider; a provider's path with the same name can be reached below "+BasePath+"/proxy/")
	if routes, _ := t.at(below); routes != nil {
		allowed := strings.Join(methods(routes), ", ")
		w.Header().Set("Allow", allowed)
		f = fault.Newf(fault.MethodNotAllowed, "", "This route takes %s", allowed)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status())
	_, _ = w.Write(f.AdminBody("")) // the client may be gone
}
