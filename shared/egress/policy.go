package egress

import (
	"crypto/x509"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"gateway/shared/fault"
)

// Policy specifies what may be reached besides the public Internet over TLS. The zero
// value opens nothing more. It is read concurrently and not changed after use.
type Policy struct {
	// Allow holds networks that may be reached, also by plain http.
	Allow []netip.Prefix
	// AllowHostPorts holds "host:port" pairs, lower case and IPv6 in brackets,
	// that may be reached, also by plain http and on ports of internal services.
	AllowHostPorts map[string]struct{}
	// OwnAddrs holds the gateway's own listen addresses; an unspecified one represents
	// every address of this machine. They are rejected even when allowed.
	OwnAddrs []netip.AddrPort
	// TrustedHosts are custom hosts that may be reached although they are not public: exact
	// names, "*.domain" (the domain and all below it), exact IP literals, and host:port for
	// one port alone; "localhost" includes *.localhost. Lower case. See ParseTrusted.
	// Everything but custom hosts is dialled by WithoutTrusted.
	TrustedHosts []string
	// MaxResponse bounds the response body of a custom host, in bytes; see Cap. 0 means
	// no limit.
	MaxResponse int64
	// RootCAs verifies servers; nil means the system's roots.
	RootCAs *x509.CertPool
}

// WithoutTrusted is the policy for everything except custom hosts: media, token services,
// addresses that a provider gives, and providers' own hosts.
func (p Policy) WithoutTrusted() Policy {
	p.TrustedHosts = nil
	return p
}

const allowField = "GATEWAY_EGRESS_ALLOW"

// ParseAllow parses GATEWAY_EGRESS_ALLOW: a comma-separated list of CIDRs, addresses and
// host:port pairs; "" allows nothing. The error is a 400 fault with the entry's position
// and the allowed values.
func ParseAllow(s string) (Policy, error) {
	var p Policy
	if strings.TrimSpace(s) == "" {
		return p, nil
	}
	for i, entry := range strings.Split(s, ",") {
		entry = strings.ToLower(strings.TrimSpace(entry))
		if entry == "" {
			continue
		}
		if pre, ok := parseNetwork(entry); ok {
			p.Allow = append(p.Allow, pre)
			continue
		}
		pair, ok := parseHostPort(entry)
		if !ok {
			return Policy{}, fault.Invalid(allowField, "entry %d is none of: CIDR (10.0.0.0/8), address (::1), host:port (ollama.internal:11434)", i+1)
		}
		if p.AllowHostPorts == nil {
			p.AllowHostPorts = map[string]struct{}{}
		}
		p.AllowHostPorts[pair] = struct{}{}
	}
	return p, nil
}

// parseNetwork reads a CIDR or a single address, with IPv4 always as IPv4.
func parseNetwork(s string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		if a.Zone() != "" {
			return netip.Prefix{}, false
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	pre, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, false
	}
	if a := pre.Addr(); a.Is4In6() {
		if pre.Bits() < 96 {
			return netip.Prefix{}, false
		}
		pre = netip.PrefixFrom(a.Unmap(), pre.Bits()-96)
	}
	return pre.Masked(), true
}

// parseHostPort reads host:port and gives its one spelling.
func parseHostPort(s string) (string, bool) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", false
	}
	n, ok := parsePort(port)
	if !ok {
		return "", false
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return "", false
		}
		return netip.AddrPortFrom(a.Unmap(), n).String(), true
	}
	if checkName(host) != "" {
		return "", false
	}
	return host + ":" + strconv.Itoa(int(n)), true
}

// parsePort reads 1 to 65535, digits only.
func parsePort(s string) (uint16, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil && n > 0
}

// DefaultTrusted is TRUSTED_CUSTOM_HOSTS when it and GATEWAY_EGRESS_ALLOW are
// unset: this machine while developing, nothing in production.
func DefaultTrusted(production bool) []string {
	if production {
		return nil
	}
	return []string{"localhost", "127.0.0.1", "::1", "host.docker.internal"}
}

// ParseTrusted reads TRUSTED_CUSTOM_HOSTS: a comma list of names, "*.domain",
// addresses and host:port pairs. The error is a 400 fault naming the entry's position.
func ParseTrusted(s string) ([]string, error) {
	var out []string
	for i, entry := range strings.Split(s, ",") {
		entry = strings.ToLower(strings.TrimSpace(entry))
		if entry == "" {
			continue
		}
		bare := strings.TrimSuffix(strings.TrimPrefix(entry, "["), "]")
		if a, err := netip.ParseAddr(bare); err == nil && a.Zone() == "" {
			out = append(out, a.Unmap().String())
			continue
		}
		if pair, ok := parseHostPort(entry); ok {
			out = append(out, pair)
			continue
		}
		if checkName(strings.TrimPrefix(entry, "*.")) != "" {
			return nil, fault.Invalid("TRUSTED_CUSTOM_HOSTS", "entry %d is none of: host name, *.domain, IP address, host:port", i+1)
		}
		out = append(out, entry)
	}
	return out, nil
}

// trusted reports whether host is on the trusted list, alone or with the port. It
// must be in lower case, and an address in its plain form.
func (p *Policy) trusted(host string, port uint16) bool {
	if len(p.TrustedHosts) == 0 {
		return false
	}
	pair := net.JoinHostPort(host, strconv.Itoa(int(port)))
	for _, t := range p.TrustedHosts {
		if t == host || t == pair {
			return true
		}
		if domain, ok := strings.CutPrefix(t, "*."); ok && (host == domain || under(host, domain)) {
			return true
		}
		if t == "localhost" && under(host, "localhost") {
			return true
		}
	}
	return false
}

// under reports whether host is a name below domain.
func under(host, domain string) bool {
	n := len(host) - len(domain)
	return n > 1 && host[n-1] == '.' && host[n:] == domain
}

// listed reports whether the pair is one of AllowHostPorts.
func (p *Policy) listed(host string, port uint16) bool {
	if len(p.AllowHostPorts) == 0 {
		return false
	}
	_, ok := p.AllowHostPorts[net.JoinHostPort(host, strconv.Itoa(int(port)))]
	return ok
}

// allowed reports whether a is in an allowed network. If a contains an IPv4 address, that
// must be public or allowed too. a is plain.
func (p *Policy) allowed(a netip.Addr) bool {
	if !within(p.Allow, a) {
		return false
	}
	if a.IsLoopback() { // ::1 looks like a compatible address
		return true
	}
	var buf [5]netip.Addr
	for _, in := range appendEmbedded(buf[:0], a) {
		if within(closedIPv4, in) && !within(p.Allow, in) {
			return false
		}
	}
	return true
}

// Hosts checks addresses as CheckURL does and remembers those that passed. Whether an
// address passes does not change while a process runs. What its name resolves to may
// change, and the dialer checks that each time.
type Hosts struct {
	policy Policy
	known  sync.Map // raw address -> its one spelling
	n      atomic.Int64
}

// maxHosts bounds the addresses that are remembered, because callers choose them.
const maxHosts = 1000

// NewHosts returns an empty memory for a policy.
func NewHosts(p Policy) *Hosts { return &Hosts{policy: p} }

// Check returns the address in its one spelling, or the error of CheckURL.
func (h *Hosts) Check(raw, field string) (string, error) {
	if s, ok := h.known.Load(raw); ok {
		return s.(string), nil
	}
	u, err := h.policy.CheckURL(raw, field)
	if err != nil {
		return "", err
	}
	s := u.String()
	if h.n.Add(1) <= maxHosts {
		h.known.Store(raw, s)
	}
	return s, nil
}
