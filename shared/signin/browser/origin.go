package browser

import (
	"net/http"
	"net/url"
	"strings"
)

// SameOrigin reports whether a request may come from a page of the gateway. Browsers set
// Sec-Fetch-Site and Origin, and pages cannot change them. Each must match the gateway if it is
// present; other programs send neither. public is the address of the installation, or "" for
// the address of the request.
//
// Every change that a cookie authorizes must pass this check.
func SameOrigin(r *http.Request, public string) bool {
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" {
			return false
		}
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin {
			return false // also "null"
		}
		if !strings.EqualFold(u.Host, r.Host) && !sameOrigin(u, public) {
			return false
		}
	}
	return true
}

func sameOrigin(u *url.URL, address string) bool {
	own, err := url.Parse(address)
	return err == nil && own.Host != "" && own.Scheme == u.Scheme && strings.EqualFold(own.Host, u.Host)
}

// CrossSite reports whether another site, or another host of the same site, led the browser
// here.
func CrossSite(r *http.Request) bool {
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" {
			return true
		}
	}
	return false
}
