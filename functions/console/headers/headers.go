// Package headers holds the response headers of the console, for the hosts that serve it from
// the binary and for the template of the CDN.
package headers

import "net/http"

// Policy is the content security policy of the console. It allows no inline script or style,
// no other host and no embedding.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// Values of Cache-Control. The names of assets contain a hash of their content.
const (
	CacheAssets = "public, max-age=31536000, immutable"
	CacheIndex  = "no-cache"
)

// Names and values of the other security headers.
const (
	ReferrerPolicy = "no-referrer"
	OpenerPolicy   = "same-origin"
)

// Set sets the security headers of a response.
func Set(h http.Header) {
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", ReferrerPolicy)
	h.Set("Cross-Origin-Opener-Policy", OpenerPolicy)
}
