package cors

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
)

// Env is the environment variable with the allowed origins besides the gateway's own, separated
// by commas.
const Env = "MCP_ALLOWED_ORIGINS"

// maxOrigins is the number of origins in Env.
const maxOrigins = 100

// Pages are the allowed origins.
type Pages struct {
	Origins []string // in addition to the gateway's own
	// Public is the gateway's public address. If empty, the address of the request is used.
	Public string
}

// Parse parses a list such as https://app.example.com,http://localhost:6274.
func Parse(list string) (out []string, err error) { return parse(Env, list) }

// parse parses the value of an environment variable.
func parse(name, list string) (out []string, err error) {
	for o := range strings.SplitSeq(list, ",") {
		if o = strings.TrimSpace(o); o == "" {
			continue
		}
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Scheme+"://"+strings.ToLower(u.Host) != o {
			return nil, fmt.Errorf("%s: %q must be an origin as browsers send it: https:// or http://, a host in small letters and perhaps a port, without a path", name, o)
		}
		out = append(out, o)
	}
	if len(out) > maxOrigins {
		return nil, fmt.Errorf("%s: has %d origins, %d are allowed", name, len(out), maxOrigins)
	}
	return out, nil
}

// FromEnvironment reads Env. public is the result of oauthserver.Public.
func FromEnvironment(public string) (Pages, error) {
	origins, err := Parse(os.Getenv(Env))
	return Pages{Origins: origins, Public: public}, err
}

// Allows reports whether a page may call, by its Origin. Requests without an Origin are not
// from a page.
func (p Pages) Allows(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(p.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	if loopback(u.Hostname()) && loopback(hostname(r.Host)) {
		return true
	}
	return u.Host == r.Host && !p.rebound(r)
}

// rebound reports whether a foreign host name resolves to this machine (DNS rebinding): the
// page of such a name has the same origin for the browser.
func (p Pages) rebound(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() || r.TLS != nil {
		return false
	}
	public, err := url.Parse(p.Public)
	return err != nil || public.Host != r.Host
}

func hostname(host string) string {
	u, err := url.Parse("//" + host)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func loopback(name string) bool {
	return name == "localhost" || name == "127.0.0.1" || name == "::1"
}
