package egress

import (
	"net"
	"net/netip"
	"os"
	"strings"
)

// prefixes parses a table of CIDRs written in this file.
func prefixes(cidrs ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(cidrs))
	for i, c := range cidrs {
		out[i] = netip.MustParsePrefix(c)
	}
	return out
}

// metadataPrefixes are the places where clouds hand out credentials. No policy
// opens them.
var metadataPrefixes = prefixes(
	"169.254.169.0/24",   // EC2, GCE, Azure, Oracle, DigitalOcean; Amazon time and DNS
	"169.254.170.0/24",   // ECS task credentials (.2), EKS pod identity (.23)
	"169.254.79.129/32",  // Lambda's X-Ray daemon
	"100.100.100.200/32", // Alibaba
	"168.63.129.16/32",   // Azure platform, a public address
	"192.0.0.192/32",     // Oracle
	"fd00:ec2::/96",      // EC2, ECS, EKS over IPv6
	"fd20:ce::254/128",   // GCE over IPv6
	"fe80::a9fe:a9fe/128",
)

// closedIPv4 are the ranges of IPv4 that are not the public Internet.
var closedIPv4 = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32",
	"169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
)

// globalIPv6 is the only part of IPv6 that is routed publicly; closedIPv6 are the
// exceptions inside it: protocol assignments with Teredo and ORCHID, 6to4, documentation.
// Loopback, mapped, compatible, NAT64, unique local, link and site local, discard and
// multicast addresses are all outside of globalIPv6.
var (
	globalIPv6 = netip.MustParsePrefix("2000::/3")
	closedIPv6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)

func within(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// plainAddr removes what would make one address look like another: IPv4 inside of IPv6, and
// zones. (netip.Prefix contains no address with a zone.)
func plainAddr(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// public reports whether a is an address of the public Internet that carries no
// closed IPv4 address inside. a is plain.
func public(a netip.Addr) bool {
	if a.Is4() {
		return !within(closedIPv4, a)
	}
	if !globalIPv6.Contains(a) || within(closedIPv6, a) {
		return false
	}
	var buf [5]netip.Addr
	for _, in := range appendEmbedded(buf[:0], a) {
		if within(closedIPv4, in) {
			return false
		}
	}
	return true
}

var (
	compatible  = netip.MustParsePrefix("::/96")
	translated  = netip.MustParsePrefix("::ffff:0:0:0/96")
	nat64       = netip.MustParsePrefix("64:ff9b::/96")
	nat64Local  = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour   = netip.MustParsePrefix("2002::/16")
	teredo      = netip.MustParsePrefix("2001::/32")
	unspecified = [2]netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
)

// appendEmbedded appends the IPv4 addresses that an IPv6 address may lead to: compatible,
// translated, NAT64, 6to4, Teredo and ISATAP forms. The mapped form cannot occur, because a
// is plain.
func appendEmbedded(dst []netip.Addr, a netip.Addr) []netip.Addr {
	if a.Is4() {
		return dst
	}
	b := a.As16()
	at := func(i, j, k, l int) netip.Addr { return netip.AddrFrom4([4]byte{b[i], b[j], b[k], b[l]}) }
	switch {
	case compatible.Contains(a), translated.Contains(a), nat64.Contains(a):
		dst = append(dst, at(12, 13, 14, 15))
	case nat64Local.Contains(a): // RFC 6052: the address comes after a /48, /56, /64 or /96
		dst = append(dst, at(6, 7, 9, 10), at(7, 9, 10, 11), at(9, 10, 11, 12), at(12, 13, 14, 15))
	case sixToFour.Contains(a):
		dst = append(dst, at(2, 3, 4, 5))
	case teredo.Contains(a): // server, and client with its bits inverted
		dst = append(dst, at(4, 5, 6, 7),
			netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}))
	}
	if b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe { // ISATAP
		dst = append(dst, at(12, 13, 14, 15))
	}
	return dst
}

// metadata reports whether a is, or embeds, an address that hands out
// credentials. a is plain.
func metadata(a netip.Addr) bool {
	if within(metadataPrefixes, a) {
		return true
	}
	var buf [5]netip.Addr
	for _, in := range appendEmbedded(buf[:0], a) {
		if within(metadataPrefixes, in) {
			return true
		}
	}
	return false
}

// never reports whether ap must not be reached, whatever the policy allows: metadata, the
// Lambda Runtime API, the gateway itself, and the unspecified address, which the kernel
// takes for loopback. ap is plain.
func (p *Policy) never(ap netip.AddrPort) bool {
	a := ap.Addr()
	if a == unspecified[0] || a == unspecified[1] || metadata(a) || runtimeAPI(ap) {
		return true
	}
	for _, own := range p.OwnAddrs {
		if own.Port() != ap.Port() {
			continue
		}
		oa := plainAddr(own.Addr())
		if oa == a || oa.IsUnspecified() && ownAddress(a) {
			return true
		}
	}
	var buf [5]netip.Addr
	for _, in := range appendEmbedded(buf[:0], a) {
		// Zeros are no address: they only fill what another layout of the form would use.
		if !in.IsUnspecified() && p.never(netip.AddrPortFrom(in, ap.Port())) {
			return true
		}
	}
	return false
}

// runtimePort is where Lambda serves its Runtime API on loopback.
const runtimePort = 9001

// runtimeAPI reports whether ap is the Lambda Runtime API: its usual place, or the place
// that AWS_LAMBDA_RUNTIME_API names. If that is a host name, its port is closed on every
// address that is not public.
func runtimeAPI(ap netip.AddrPort) bool {
	if ap.Port() == runtimePort && ap.Addr().IsLoopback() {
		return true
	}
	named := os.Getenv("AWS_LAMBDA_RUNTIME_API")
	if named == "" {
		return false
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(named, "http://"))
	if err != nil {
		host, port = named, "80"
	}
	n, ok := parsePort(port)
	if !ok || n != ap.Port() {
		return false
	}
	if a, err := netip.ParseAddr(host); err == nil {
		a = plainAddr(a)
		return a == ap.Addr() || a.IsUnspecified() && ownAddress(ap.Addr())
	}
	return !public(ap.Addr())
}

// ownAddress reports whether a belongs to this machine.
func ownAddress(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return true // to reject is safer
	}
	for _, one := range list {
		if n, ok := one.(*net.IPNet); ok {
			if own, ok := netip.AddrFromSlice(n.IP); ok && plainAddr(own) == a {
				return true
			}
		}
	}
	return false
}
