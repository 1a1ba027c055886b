package host

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/host/originauth"
)

// RequireEdge returns a handler that passes h only requests from the edge, with the caller's
// address as seen by the edge, for hosts of a load balancer. The secret is removed.
func RequireEdge(d *originauth.Verifier, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := verifyOrigin(d, r); err != nil {
			f := fault.From(err)
			f.SetHeaders(w.Header())
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(f.Status())
			_, _ = w.Write(f.DataBody(false)) // the caller may have disconnected
			return
		}
		h.ServeHTTP(w, r)
	})
}

// verifyOrigin admits a request or returns the fault of its rejection. It sets the
// caller's address from the header, which is trusted only from the edge.
func verifyOrigin(d *originauth.Verifier, r *http.Request) error {
	if err := d.Verify(r.Context(), r.Header); err != nil {
		return err
	}
	if d != nil {
		if ip := clientIP(r.Header); ip != "" {
			r.RemoteAddr = remoteAddr(ip)
		}
	}
	r.Header.Del(originauth.Header)
	return nil
}

// remoteAddr formats an address like http.Request.RemoteAddr; the port is unknown.
func remoteAddr(ip string) string { return net.JoinHostPort(ip, "0") }

// clientIP returns the caller's address as seen by the edge: the second from the right of
// X-Forwarded-For, or "".
func clientIP(h http.Header) string {
	hops := strings.Split(strings.Join(h.Values("X-Forwarded-For"), ","), ",")
	if len(hops) < 2 {
		return ""
	}
	ip, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-2]))
	if err != nil {
		return ""
	}
	return ip.Unmap().WithZone("").String()
}

// body is a request body in memory.
type body struct{ *bytes.Reader }

func newBody(b []byte) io.ReadCloser { return body{bytes.NewReader(b)} }

func (body) Close() error { return nil }
