// Package alias accepts request headers under other prefixes than the gateway's, and
// sends response headers under the prefix that was used.
package alias

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"gateway/shared/fault"
)

// Env is the variable with the prefixes of request headers that are aliases of x-gateway;
// a comma-separated list, empty by default.
const Env = "GATEWAY_HEADER_ALIASES"

// gatewayPrefix is the prefix of the gateway's headers, in canonical form.
const gatewayPrefix = "X-Gateway-"

// Prefixes are prefixes of headers in canonical form, with their last hyphen. A request's
// <alias><rest> is read as X-Gateway-<rest>, and the gateway's headers of the response
// are sent under the alias. So a client of a comparable product needs only another
// address and key.
type Prefixes []string

// aliasForm is the format of a prefix, with at most maxAlias bytes.
var aliasForm = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

const maxAlias = 31

// reservedPrefixes are prefixes of headers with another meaning: such an alias would hide
// them from the provider or from the platform.
var reservedPrefixes = []string{
	"x", "x-gateway", "accept", "access", "access-control", "anthropic", "authorization", "cache", "cloudfront", "connection", "content", "cookie", "expect",
	"host", "idempotency", "if", "keep", "openai", "proxy", "sec", "te", "trace", "traceparent", "tracestate", "transfer", "upgrade", "user", "x-amz",
	"x-amzn", "x-api", "x-forwarded", "x-goog", "x-ms", "x-request", "x-stainless",
}

// Parse parses a comma-separated list of prefixes, such as x-acme.
func Parse(list string) (Prefixes, error) {
	var out Prefixes
	for part := range strings.SplitSeq(list, ",") {
		name := strings.TrimSpace(part)
		if name == "" {
			continue
		}
		if len(name) > maxAlias || !aliasForm.MatchString(name) || strings.HasSuffix(name, "-") {
			return nil, fmt.Errorf("%s: %q must be 1 to 31 small letters, digits and hyphens, begin with a letter and not end with a hyphen", Env, name)
		}
		if slices.Contains(reservedPrefixes, name) || strings.HasPrefix(name, "x-gateway-") {
			return nil, fmt.Errorf("%s: %q is the beginning of headers that mean something else; choose another prefix", Env, name)
		}
		prefix := http.CanonicalHeaderKey(name) + "-"
		for _, other := range out {
			if strings.HasPrefix(prefix, other) || strings.HasPrefix(other, prefix) {
				return nil, fmt.Errorf("%s: %q and %q overlap; no prefix may begin with another", Env, strings.ToLower(strings.TrimSuffix(other, "-")), name)
			}
		}
		out = append(out, prefix)
	}
	return out, nil
}

// FromEnvironment reads Env.
func FromEnvironment() (Prefixes, error) { return Parse(os.Getenv(Env)) }

// Handler translates the headers of requests to h and of its responses. Without aliases
// it returns h. It runs after RequireEdge, so that no alias affects the headers of the
// edge.
func (a Prefixes) Handler(h http.Handler) http.Handler {
	if len(a) == 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		used, err := a.rename(r.Header)
		switch {
		case err != nil:
			rejectAlias(&aliasWriter{ResponseWriter: w, prefix: used}, r, err)
		case used == "":
			h.ServeHTTP(w, r)
		default:
			h.ServeHTTP(&aliasWriter{ResponseWriter: w, prefix: used}, r)
		}
	})
}

// rename renames aliased headers. No header keeps an alias, so none is sent to a
// provider. It returns the alias used: the first in the order of a if there are several.
func (a Prefixes) rename(h http.Header) (used string, refused *fault.Fault) {
	for _, prefix := range a {
		var sent []string
		for name := range h {
			if len(name) > len(prefix) && strings.HasPrefix(name, prefix) {
				sent = append(sent, name)
			}
		}
		slices.Sort(sent)
		if len(sent) > 0 && used == "" {
			used = prefix
		}
		for _, name := range sent {
			values, own := h[name], gatewayPrefix+name[len(prefix):]
			delete(h, name)
			if there, ok := h[own]; ok && !slices.Equal(there, values) {
				if refused == nil {
					refused = fault.Invalid(strings.ToLower(name), "must equal %s, of which it is an alias; send only one of them", strings.ToLower(own))
				}
				continue
			}
			h[own] = values
		}
	}
	return used, refused
}

// rejectAlias responds to a request with contradictory headers.
func rejectAlias(w http.ResponseWriter, r *http.Request, f *fault.Fault) {
	body := f.AdminBody("")
	if strings.HasSuffix(r.URL.Path, "/messages") {
		body = f.DataBody(true)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status())
	_, _ = w.Write(body)
}

// aliasWriter gives the gateway's headers of a response the prefix that the request used.
type aliasWriter struct {
	http.ResponseWriter
	prefix string
	sent   bool // the head has been renamed
}

func (w *aliasWriter) head() {
	if w.sent || w.prefix == "" {
		return
	}
	h := w.Header()
	var own []string
	for name := range h {
		if strings.HasPrefix(name, gatewayPrefix) {
			own = append(own, name)
		}
	}
	for _, name := range own {
		h[w.prefix+name[len(gatewayPrefix):]] = h[name]
		delete(h, name)
	}
}

// WriteHeader sends the head.
func (w *aliasWriter) WriteHeader(status int) {
	w.head()
	w.sent = w.sent || status >= 200
	w.ResponseWriter.WriteHeader(status)
}

// Write sends the head, if necessary, and b.
func (w *aliasWriter) Write(b []byte) (int, error) {
	w.head()
	w.sent = true
	return w.ResponseWriter.Write(b)
}

// Flush sends the buffered data.
func (w *aliasWriter) Flush() {
	w.head()
	w.sent = true
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// EndBody ends the response; see host.BodyEnder.
func (w *aliasWriter) EndBody() {
	if e, ok := w.ResponseWriter.(interface{ EndBody() }); ok {
		e.EndBody()
	}
}

// Unwrap is for http.ResponseController.
func (w *aliasWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
