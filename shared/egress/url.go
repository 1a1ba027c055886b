package egress

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"gateway/shared/fault"
)

const (
	maxURL    = 2048
	maxLabels = 10
)

// CheckURL checks the address of a host that a caller names (custom_host, MCP
// server, agent, webhook) before anything is sent there, and returns it with the
// host in its one spelling. field names where the address came from. The error
// is a 400 fault: invalid_request for a malformed address, blocked_host for one
// that must not be reached.
//
// The order is: syntax; what is always blocked; the trusted list; private and
// reserved addresses and names. Names are not looked up here: the dialer checks
// every address they resolve to.
func (p Policy) CheckURL(raw string, field string) (*url.URL, error) {
	u, host, port, why := splitURL(raw)
	if why != "" {
		return nil, invalidHost(fault.InvalidRequest, field, why)
	}
	if why := p.checkHost(host, port, u.Scheme == "http"); why != "" {
		return nil, invalidHost(fault.BlockedHost, field, why)
	}
	return u, nil
}

func invalidHost(code fault.Code, field, why string) *fault.Fault {
	what := "Invalid URL: "
	if strings.Contains(field, "custom_host") || strings.Contains(strings.ToLower(field), "custom-host") {
		what = "Invalid custom host: "
	}
	return fault.New(code, field, what+why)
}

// splitURL checks the syntax and returns the URL, its host in lower case (an address
// without brackets, in its one spelling) and its port.
func splitURL(raw string) (u *url.URL, host string, port uint16, why string) {
	if raw == "" {
		return nil, "", 0, "it is empty"
	}
	if len(raw) > maxURL {
		return nil, "", 0, "it is longer than 2048 characters"
	}
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c < 0x20 || c == 0x7f:
			return nil, "", 0, "it contains a control character"
		case c == ' ' || c == '\\' || c > 0x7f:
			return nil, "", 0, "it contains a space, a backslash or a character outside ASCII"
		}
	}
	beforeQuery, _, _ := strings.Cut(raw, "?")
	if strings.ContainsRune(beforeQuery, '@') {
		return nil, "", 0, "it must not contain user information or @"
	}
	if strings.ContainsRune(raw, '#') {
		return nil, "", 0, "it must not contain a fragment"
	}
	if strings.ContainsRune(raw, '?') {
		return nil, "", 0, "it must not contain a query (?): the path of each call is appended to it"
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, "", 0, "it is not a URL" // the parser's text may quote the address
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return nil, "", 0, "the scheme must be https (http only for trusted hosts)"
	}
	if u.Opaque != "" || u.User != nil || u.Host == "" {
		return nil, "", 0, "it must have the form https://host[:port][/path]"
	}
	host, port, why = splitAuthority(rawAuthority(raw), u.Scheme)
	if why != "" {
		return nil, "", 0, why
	}
	u.Host = joinAuthority(host, port, u.Scheme)
	return u, host, port, ""
}

// rawAuthority is the host part as it was written, because url.Parse has already decoded
// its percent signs.
func rawAuthority(raw string) string {
	_, rest, _ := strings.Cut(raw, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

func splitAuthority(s, scheme string) (host string, port uint16, why string) {
	if strings.ContainsRune(s, '%') {
		return "", 0, "the host must not contain %"
	}
	port = 443
	if scheme == "http" {
		port = 80
	}
	host = s
	if i := strings.LastIndexByte(s, ':'); i > strings.LastIndexByte(s, ']') {
		n, ok := parsePort(s[i+1:])
		if !ok {
			return "", 0, "the port must be between 1 and 65535"
		}
		host, port = s[:i], n
	}
	host = strings.ToLower(host)
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		if !ok || err != nil || !a.Is6() {
			return "", 0, "the host is not an IPv6 address"
		}
		if a.Is4In6() {
			return "", 0, "write an IPv4 address as four decimal numbers"
		}
		return a.String(), port, ""
	}
	if why := checkName(host); why != "" {
		return "", 0, why
	}
	return host, port, ""
}

func joinAuthority(host string, port uint16, scheme string) string {
	if strings.ContainsRune(host, ':') {
		host = "[" + host + "]"
	}
	if scheme == "https" && port == 443 || scheme == "http" && port == 80 {
		return host
	}
	return host + ":" + strconv.Itoa(int(port))
}

// checkName returns the error of a host name or dotted IPv4 address in lower case; "" if
// it is valid.
func checkName(host string) string {
	switch {
	case host == "":
		return "the host is missing"
	case len(host) > 253:
		return "the host is longer than 253 characters"
	case host[len(host)-1] == '.':
		return "the host must not end in a dot"
	}
	labels, start := 0, 0
	for i := 0; i <= len(host); i++ {
		if i < len(host) && host[i] != '.' {
			c := host[i]
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return "the host may contain only letters, digits, dots and hyphens"
			}
			continue
		}
		label := host[start:i]
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return "the host has an empty or malformed label"
		}
		if strings.HasPrefix(label, "xn--") {
			return "internationalized host names (xn--) are not accepted"
		}
		labels++
		start = i + 1
	}
	if labels > maxLabels {
		return "the host has more than 10 labels"
	}
	if numeric(host[strings.LastIndexByte(host, '.')+1:]) {
		if _, err := netip.ParseAddr(host); err != nil {
			return "write an IPv4 address as four decimal numbers"
		}
	}
	return ""
}

// numeric reports whether the last label makes the host an IPv4 address for
// browsers and C libraries: decimal or octal digits, or 0x and hexadecimal ones.
func numeric(label string) bool {
	hex, ok := strings.CutPrefix(label, "0x")
	if ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// checkHost returns why host:port is not allowed; "" if it is.
func (p *Policy) checkHost(host string, port uint16, plain bool) string {
	a, err := netip.ParseAddr(host)
	literal := err == nil
	if literal {
		a = plainAddr(a)
		if p.never(netip.AddrPortFrom(a, port)) {
			return "this address is never reachable from the gateway"
		}
	} else if anyUnder(metadataNames, host) {
		return "this host is never reachable from the gateway"
	}
	if p.listed(host, port) {
		return ""
	}
	if !literal && internalName(host) {
		return "this host is never reachable from the gateway"
	}
	if closedPort(port) {
		return "this port belongs to another kind of service"
	}
	if p.trusted(host, port) || literal && p.allowed(a) || !literal && p.allowedLocalhost(host) {
		return ""
	}
	switch {
	case plain:
		return "http is accepted only for trusted hosts (TRUSTED_CUSTOM_HOSTS); use https"
	case literal && !public(a):
		return "private and reserved addresses are accepted only if TRUSTED_CUSTOM_HOSTS or GATEWAY_EGRESS_ALLOW of the gateway allows them"
	case !literal && closedTLD(host):
		return "this kind of private name is accepted only if TRUSTED_CUSTOM_HOSTS of the gateway lists it"
	}
	return ""
}

// allowedLocalhost reports whether host is a name of this machine (RFC 6761) and
// loopback is allowed.
func (p *Policy) allowedLocalhost(host string) bool {
	if host != "localhost" && !under(host, "localhost") {
		return false
	}
	return within(p.Allow, netip.AddrFrom4([4]byte{127, 0, 0, 1})) || within(p.Allow, netip.IPv6Loopback())
}

// metadataNames are names of credential services. As with their addresses, no policy opens
// them. A name includes everything below it.
var metadataNames = []string{
	"metadata.google.internal", "metadata.gce.internal", "metadata.goog",
	"metadata.azure.com", "metadata.azure.internal", "instance-data.ec2.internal",
	"metadata.internal", "metadata.do.internal", "metadata.packet.net",
	"metadata.platformequinix.com", "metadata.tencentyun.com", "metadata.cloud.ibm.com",
	"metadata.oraclecloud.com", "metadata", "instance-data",
}

// internalNames are names inside a cloud account or a cluster, and services
// that turn a public name into any address. Only an exact host:port of
// AllowHostPorts opens them.
var internalNames = []string{
	"ec2.internal", "compute.internal", "internal.cloudapp.net",
	"kubernetes.default", "kubernetes.default.svc", "cluster.local", "consul",
	"nip.io", "sslip.io", "xip.io", "localtest.me", "lvh.me", "vcap.me",
	"traefik.me", "localhost.run",
}

// internalExact are blocked only as a complete name.
var internalExact = []string{"kubernetes"}

// closedTLDs are top-level names without a public meaning; a trusted host may
// end in them.
var closedTLDs = []string{
	"local", "localdomain", "internal", "intranet", "lan", "home", "corp",
	"test", "invalid", "onion", "localhost",
}

func anyUnder(list []string, host string) bool {
	for _, name := range list {
		if host == name || under(host, name) {
			return true
		}
	}
	return false
}

func internalName(host string) bool {
	for _, name := range internalExact {
		if host == name {
			return true
		}
	}
	return anyUnder(internalNames, host)
}

func closedTLD(host string) bool {
	return anyUnder(closedTLDs, host[strings.LastIndexByte(host, '.')+1:])
}

// closedPort reports whether a port belongs to services that are not HTTP
// model hosts: mail, remote login, file shares, databases, brokers, cluster
// control. Only an exact host:port of AllowHostPorts opens one.
func closedPort(port uint16) bool {
	switch port {
	case 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79,
		87, 95, 101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137,
		138, 139, 143, 161, 162, 179, 389, 427, 445, 465, 500, 512, 513, 514, 515,
		526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 623, 631, 636, 873,
		989, 990, 992, 993, 995:
		return true
	case 1099, 1433, 1434, 1521, 1719, 1720, 1723, // RMI, SQL Server, Oracle, H.323, PPTP
		2049, 2181, 2375, 2376, 2377, 2379, 2380, // NFS, ZooKeeper, Docker, etcd
		3306, 3389, 3659, 4045, 4190, 4369, // MySQL, RDP, lockd, ManageSieve, epmd
		5060, 5061, 5432, 5433, 5671, 5672, 5900, 5901, 5984, 5985, 5986, // SIP, PostgreSQL, AMQP, VNC, CouchDB, WinRM
		6000, 6379, 6380, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6697, // X11, Redis, Kubernetes, IRC
		7000, 7001, 7199, 7473, 7474, 7687, // Cassandra, Neo4j
		8086, 8300, 8301, 8302, 8500, 8501, 8502, 8600, // InfluxDB, Consul
		9042, 9092, 9093, 9160, 9200, 9300, // Cassandra, Kafka, Elasticsearch
		10080, 10250, 10255, 10256, 10257, 10259, // kubelet and its neighbours
		11211, 15672, 16379, 25672, 26257, 26379, // memcached, RabbitMQ, CockroachDB, Redis cluster and Sentinel
		27017, 27018, 27019, 28017: // MongoDB; higher ports are given to clients
		return true
	}
	return false
}
