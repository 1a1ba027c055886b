package body

import (
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/relay/admission"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/routes"
)

// StoredPath returns the stored objects named by the path.
func (b *path) StoredPath() *ownership.Path {
	if !b.keptRead {
		b.kept, b.keptRead = ownership.PathOf(b.RawPath()), true
	}
	return &b.kept
}

// Multipart reports whether the body is a form that is streamed through.
func (b *path) Multipart() bool {
	return strings.HasPrefix(strings.ToLower(admission.SingleHeader(b.Req.Req.Header, "Content-Type")), "multipart/form-data")
}

// Nameless reports whether the operation can be sent without a model.
func (b *path) Nameless() bool {
	return b.Req.Route.NoModel || b.Transcribes || b.Req.Route.Shape == routes.Resource || b.Form != nil && !b.Form.Complete()
}

// RawPath returns the path below the gateway's base, unchanged from the wire. /proxy/{anything}
// reaches paths that the gateway's own routes shadow.
func (b *path) RawPath() string {
	path := b.Req.Req.URL.EscapedPath()
	if strings.HasPrefix(b.Req.Req.RequestURI, "/") { // otherwise it is not what the route was found by
		path, _, _ = strings.Cut(b.Req.Req.RequestURI, "?")
	}
	path = strings.TrimPrefix(path, "/v1")
	if b.Slug != "" && b.Req.PathID != "" {
		if i := strings.LastIndex(path, b.Req.PathID); i >= 0 { // the saved provider was named in it
			path = path[:i] + url.PathEscape(b.ID) + path[i+len(b.Req.PathID):]
		}
	}
	if rest, ok := strings.CutPrefix(path, "/proxy/"); ok {
		return "/" + rest
	}
	return path
}

// Like returns the gateway's own route for the operation of a passed-through request; nil if
// there is none.
func (b *path) Like() *routes.Route {
	if b.Req.Req.Method != http.MethodPost {
		return nil
	}
	return b.Req.Route.Like(b.RawPath())
}

// Reached returns the types of requests that a passed-through request may reach.
func (b *path) Reached() []string { return b.Req.Route.Reached(b.Req.Req.Method, b.RawPath()) }

// With returns the body in a request with other headers, on a route that needs a provider.
func (b *Body) With(ask admission.Headers, h http.Header) *Body {
	other, in := *b, *b.Req
	req, rt := *in.Req, *in.Route
	req.Header, rt.Own = h, false
	in.Ask, in.Req, in.Route = ask, &req, &rt
	other.Req = &in
	other.params = nil // of the body of this one
	return &other
}
