package host

import (
	"bytes"
	"crypto/subtle"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// originSecretHeader is set by the edge. A request that carries a current value
// came through it, so its X-Forwarded-For can be believed.
const originSecretHeader = "X-Gateway-Origin-Secret"

// OriginSecrets are the values, at most two at a time, that the edge proves
// itself with. Two are live while one is replaced by the next.
type OriginSecrets []string

// Restore gives h requests whose RemoteAddr is the caller's as the edge saw it,
// for hosts behind a load balancer. The secret does not reach h.
func (s OriginSecrets) Restore(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.restore(r)
		h.ServeHTTP(w, r)
	})
}

func (s OriginSecrets) restore(r *http.Request) {
	if ip := s.clientIP(r.Header); ip != "" {
		r.RemoteAddr = remoteAddr(ip)
	}
	r.Header.Del(originSecretHeader)
}

// remoteAddr is an address in the form of http.Request.RemoteAddr; the port is
// not known.
func remoteAddr(ip string) string { return net.JoinHostPort(ip, "0") }

// clientIP is the caller's address as the edge saw it: the second from the right
// of X-Forwarded-For, and only when the origin secret is right. Empty otherwise.
func (s OriginSecrets) clientIP(h http.Header) string {
	sent := h.Values(originSecretHeader)
	if len(sent) != 1 || sent[0] == "" {
		return ""
	}
	ok := 0
	for _, want := range s {
		if want != "" {
			ok |= subtle.ConstantTimeCompare([]byte(sent[0]), []byte(want))
		}
	}
	if ok == 0 {
		return ""
	}
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
