package admission

import (
	"net/http"
	"slices"
	"strings"
)

// A browser cannot set headers on a WebSocket, so it sends their values as these
// subprotocols.
const (
	protocolKey  = "openai-insecure-api-key."
	protocolBeta = "openai-beta."
)

// protocols is the header that lists the subprotocols of a WebSocket.
const protocols = "Sec-Websocket-Protocol"

// Subprotocols returns a request with its subprotocols converted to headers, without those that
// are only for the gateway. An existing header is not replaced.
func Subprotocols(req *http.Request) *http.Request {
	if len(req.Header[protocols]) == 0 {
		return req
	}
	h := req.Header.Clone()
	var others []string
	for _, p := range SplitList(req.Header[protocols]) {
		if key, ok := strings.CutPrefix(p, protocolKey); ok {
			if h["X-Gateway-Api-Key"] == nil && h["Authorization"] == nil {
				h["X-Gateway-Api-Key"] = []string{key}
			}
			continue
		}
		if beta, ok := strings.CutPrefix(p, protocolBeta); ok {
			if h["Openai-Beta"] == nil {
				h["Openai-Beta"] = []string{strings.Replace(beta, "-", "=", 1)}
			}
			continue
		}
		if strings.HasPrefix(p, "openai-organization.") || strings.HasPrefix(p, "openai-project.") {
			continue // of the caller's own account, which is not used
		}
		others = append(others, p)
	}
	delete(h, protocols)
	if len(others) > 0 {
		h[protocols] = []string{strings.Join(others, ", ")}
	}
	own := *req
	own.Header = h
	return &own
}

// Protocols returns the subprotocols that a request offers.
func Protocols(h http.Header) []string { return SplitList(h[protocols]) }

// AgreedProtocol chooses the subprotocol of a connection: the first of preferred that the request
// offers, else the first that it offers, since browsers reject a response that names none of
// theirs; "" if it offers none.
func AgreedProtocol(h http.Header, preferred ...string) string {
	offered := Protocols(h)
	for _, p := range preferred {
		if slices.Contains(offered, p) {
			return p
		}
	}
	if len(offered) == 0 {
		return ""
	}
	return offered[0]
}

// SplitList returns the entries of a header that is a list, in one line or in several.
func SplitList(values []string) (out []string) {
	for _, v := range values {
		for p := range strings.SplitSeq(v, ",") {
			if p = strings.TrimSpace(p); p != "" {
				out = append(out, p)
			}
		}
	}
	return out
}
