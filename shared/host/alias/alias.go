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

// Env names the prefixes of request headers that mean x-gateway; a
// comma list, empty by default.
const Env = "GATEWAY_HEADER_ALIASES"

// gatewayPrefix is that of the gateway's own headers, in canonical form.
const gatewayPrefix = "X-Gateway-"

// Prefixes are prefixes of headers in canonical form, with their last hyphen. A request's
// <alias><rest> is read as X-Gateway-<rest>, and the gateway's own headers of the answer go
// out under the alias. So a client of a comparable product needs only another address and
// key.
type Prefixes []string

// aliasForm is what a prefix may be, with at most maxAlias bytes.
var aliasForm = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

const maxAlias = 31

// taken are beginnings of headers that have another meaning: an alias with such a name
// would hide them from the provider or from the platform.
var taken = []string{
	"x", "x-gateway", "accept", "access", "access-control", "anthropic", "authorization", "cache", "cloudfront", "connection", "content", "cookie", "expect",
	"host", "idempotency", "if", "keep", "openai", "proxy", "sec", "te", "trace", "traceparent", "tracestate", "transfer", "upgrade", "user", "x-amz",
	"x-amzn", "x-api", "x-forwarded", "x-goog", "x-ms", "x-request", "x-stainless",
}

// Parse reads a comma list of prefixes, as x-acme.
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
		if slices.Contains(taken, name) || strings.HasPrefix(name, "x-gateway-") {
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

// Handler gives h requests, and takes its answers, under the gateway's own names. Without
// aliases it is h itself. It runs behind OriginSecrets.Restore, so that no alias reaches
// the headers of the edge.
func (a Prefixes) Handler(h http.Handler) http.Handler {
	if len(a) == 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		used, err := a.rename(r.Header)
		switch {
		case err != nil:
			refuseAlias(&aliased{ResponseWriter: w, prefix: used}, r, err)
		case used == "":
			h.ServeHTTP(w, r)
		default:
			h.ServeHTTP(&aliased{ResponseWriter: w, prefix: used}, r)
		}
	})
}

// rename gives headers their names of the gateway. None is left under an alias, so none
// goes to a provider. It returns the alias that was used: the first in the order of a if
// there are several.
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
					refused = fault.Invalid(strings.ToLower(name), "must be what %s says, or be sent without it: both mean the same", strings.ToLower(own))
				}
				continue
			}
			h[own] = values
		}
	}
	return used, refused
}

// refuseAlias answers a request whose headers contradict each other.
func refuseAlias(w http.ResponseWriter, r *http.Request, f *fault.Fault) {
	body := f.AdminBody("")
	if strings.HasSuffix(r.URL.Path, "/messages") {
		body = f.DataBody(true)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status())
	_, _ = w.Write(body)
}

// aliased gives the gateway's own headers of an answer the prefix that the request
// used.
type aliased struct {
	http.ResponseWriter
	prefix string
	sent   bool // the head has its names
}

func (w *aliased) head() {
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
func (w *aliased) WriteHeader(status int) {
	w.head()
	w.sent = w.sent || status >= 200
	w.ResponseWriter.WriteHeader(status)
}

// Write sends the head, if it is not sent yet, and b.
func (w *aliased) Write(b []byte) (int, error) {
	w.head()
	w.sent = true
	return w.ResponseWriter.Write(b)
}

// Flush sends what is written.
func (w *aliased) Flush() {
	w.head()
	w.sent = true
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// EndBody ends the answer; see host.BodyEnder.
func (w *aliased) EndBody() {
	if e, ok := w.ResponseWriter.(interface{ EndBody() }); ok {
		e.EndBody()
	}
}

// Unwrap is for http.ResponseController.
func (w *aliased) Unwrap() http.ResponseWriter { return w.ResponseWriter }
