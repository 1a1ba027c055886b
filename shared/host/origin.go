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

// BehindEdge gives h the requests that come through the edge, with the caller's
// address as the edge saw it, for hosts behind a load balancer. The secret does not
// reach h.
func BehindEdge(d *originauth.Door, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := enter(d, r); err != nil {
			f := fault.From(err)
			f.SetHeaders(w.Header())
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(f.Status())
			_, _ = w.Write(f.DataBody(false)) // the caller may be gone
			return
		}
		h.ServeHTTP(w, r)
	})
}

// enter lets a request in or gives the fault that says why not. Its address is the
// caller's then: what the header says is believed of the edge alone.
func enter(d *originauth.Door, r *http.Request) error {
	if err := d.Enter(r.Context(), r.Header); err != nil {
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

// remoteAddr is an address in the form of http.Request.RemoteAddr; the port is
// not known.
func remoteAddr(ip string) string { return net.JoinHostPort(ip, "0") }

// clientIP is the caller's address as the edge saw it: the second from the right
// of X-Forwarded-For. Empty when there is none.
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
