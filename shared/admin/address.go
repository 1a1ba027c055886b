package admin

import (
	"net/http"
	"strings"
)

// Address is where clients reach the API: public, an operator's setting, else the host
// that the request named. Without a slash at its end.
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
