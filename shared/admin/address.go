package admin

import (
	"net/http"
	"strings"
)

// Address is where clients reach the API: public, which an operator sets, or else the host
// that the request named. It has no slash at its end.
func Address(public string, r *http.Request) string {
	if public != "" {
		return strings.TrimRight(public, "/")
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + "/v1"
}
