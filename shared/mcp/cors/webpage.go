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

// Env names the origins of pages that may call besides the gateway's own, separated by
// commas.
const Env = "MCP_ALLOWED_ORIGINS"

// maxOrigins is how many there may be.
const maxOrigins = 100

// Pages are the pages that may call.
type Pages struct {
	Origins []string // besides those of the gateway itself
	// Public is the address that clients reach the gateway at; "": where the request went.
	Public string
}

// Parse reads a list such as https://app.example.com,http://localhost:6274.
func Parse(list string) (out []string, err error) {
	for o := range strings.SplitSeq(list, ",") {
		if o = strings.TrimSpace(o); o == "" {
			continue
		}
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Scheme+"://"+strings.ToLower(u.Host) != o {
			return nil, fmt.Errorf("%s: %q must be an origin as browsers send it: https:// or http://, a host in small letters and perhaps a port, without a path", Env, o)
		}
		out = append(out, o)
	}
	if len(out) > maxOrigins {
		return nil, fmt.Errorf("%s: has %d origins, %d are allowed", Env, len(out), maxOrigins)
	}
	return out, nil
}

// FromEnvironment reads Env. public is what granted.Public gave.
func FromEnvironment(public string) (Pages, error) {
	origins, err := Parse(os.Getenv(Env))
	return Pages{Origins: origins, Public: public}, err
}

// Welcomes tells whether a page may call, by its Origin; what is no browser has none.
func (p Pages) Welcomes(r *http.Request) bool {
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

// rebound tells whether a name that is none of the gateway's leads to this machine: a
// page that has its own name point here is of the same origin to the browser.
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
