package meter

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"

	"gateway/shared/fault"
)

// EnvMetrics is the variable that disables /metrics at the gateway's address: "off".
const EnvMetrics = "GATEWAY_METRICS"

// pagePath is the path of the metrics.
const pagePath = "/metrics"

// Page serves /metrics at the gateway's address before next: to programs on this machine,
// and to callers that allowed admits. With EnvMetrics "off" it is next.
func Page(t *Totals, allowed func(*http.Request) error, next http.Handler) http.Handler {
	if os.Getenv(EnvMetrics) == "off" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != pagePath {
			next.ServeHTTP(w, r)
			return
		}
		if !local(r) {
			if err := allowed(r); err != nil {
				f := fault.From(err)
				f.SetHeaders(w.Header())
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(f.Status())
				_, _ = w.Write(f.AdminBody("")) // the client may have disconnected
				return
			}
		}
		t.ServeHTTP(w, r)
	})
}

// local reports whether a request comes from a program on this machine: neither through a
// proxy nor from a browser page on a domain that resolves to it.
func local(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	for _, name := range [...]string{"X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Forwarded", "Via", "Origin"} {
		if len(r.Header[name]) > 0 {
			return false
		}
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}
