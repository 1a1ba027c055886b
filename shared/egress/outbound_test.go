package egress

import (
	"context"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/fault"
)

// Each test of this file is one line of the outbound security rules.

func mustAllow(t testing.TB, s string) Policy {
	t.Helper()
	p, err := ParseAllow(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func checkAddr(p Policy, addr string, v verdict) error {
	g := &guard{policy: p}
	network := "tcp4"
	if strings.HasPrefix(addr, "[") {
		network = "tcp6"
	}
	return g.check(network, addr, v)
}

var closedAddresses = []string{
	"0.0.0.0:443", "0.1.2.3:443", "10.0.0.1:443", "10.255.255.255:443", "100.64.0.1:443",
	"100.127.255.255:443", "127.0.0.1:443", "127.9.9.9:443", "169.254.0.1:443",
	"172.16.0.1:443", "172.31.255.255:443", "192.0.0.1:443", "192.0.2.1:443",
	"192.88.99.1:443", "192.168.1.1:443", "198.18.0.1:443", "198.19.255.255:443",
	"198.51.100.1:443", "203.0.113.1:443", "224.0.0.1:443", "239.255.255.255:443",
	"240.0.0.1:443", "255.255.255.255:443",
	"[::]:443", "[::1]:443", "[::7f00:1]:443", "[::ffff:10.0.0.1]:443", "[::ffff:127.0.0.1]:443",
	"[::ffff:0:10.0.0.1]:443", "[64:ff9b::a00:1]:443", "[64:ff9b::808:808]:443", "[64:ff9b:1::a00:1]:443",
	"[100::1]:443", "[100:0:0:1::1]:443", "[2001::1]:443", "[2001:0:4136:e378:8000:63bf:3fff:fdd2]:443",
	"[2001:db8::1]:443", "[2002:a00:1::]:443", "[2002:808:808::1]:443", "[3fff::1]:443",
	"[fc00::1]:443", "[fd12:3456::1]:443", "[fe80::1]:443", "[fe80::1%eth0]:443", "[fec0::1]:443",
	"[ff02::1]:443", "[2606:4700::5efe:a00:1]:443", "[2606:4700::200:5efe:7f00:1]:443",
}

var metadataAddresses = []string{
	"169.254.169.254:80", "169.254.169.253:443", "169.254.169.123:443", "169.254.170.2:80", "169.254.170.23:80",
	"169.254.79.129:2000", "100.100.100.200:80", "168.63.129.16:80", "192.0.0.192:80",
	"[fd00:ec2::254]:80", "[fd00:ec2::23]:80", "[fd20:ce::254]:80", "[fe80::a9fe:a9fe]:80",
	"[fe80::a9fe:a9fe%eth0]:80", "[::ffff:169.254.169.254]:80", "[::a9fe:a9fe]:80",
	"[64:ff9b::a9fe:a9fe]:80", "[64:ff9b:1::a9fe:a9fe]:80", "[64:ff9b:1:a9fe:a9:fe00::]:80",
	"[2002:a9fe:a9fe::]:80", "[2001:0:a9fe:a9fe::]:80", "[2001::5601:5601]:80",
	"[2606:4700::5efe:a9fe:a9fe]:80", "[::ffff:0:169.254.169.254]:80",
}

var publicAddresses = []string{
	"8.8.8.8:443", "1.1.1.1:443", "104.18.6.192:443", "172.15.0.1:443", "172.32.0.1:443",
	"100.63.0.1:443", "100.128.0.1:443", "192.0.3.1:443", "198.17.0.1:443", "198.20.0.1:443", "223.255.255.255:443",
	"[2606:4700::6812:6c0]:443", "[2a00:1450:4001:82a::200e]:443", "[2600:1f18::1]:8443", "[::ffff:8.8.8.8]:443",
}

func TestClosedAddressesAreRefusedAtTheSocket(t *testing.T) {
	for _, addr := range append(append([]string{}, closedAddresses...), metadataAddresses...) {
		if err := checkAddr(Policy{}, addr, verdict{}); !IsBlocked(err) {
			t.Errorf("%s: %v, want refused", addr, err)
		}
	}
	for _, addr := range publicAddresses {
		if err := checkAddr(Policy{}, addr, verdict{}); err != nil {
			t.Errorf("%s: %v, want reachable", addr, err)
		}
	}
	if err := (&guard{}).check("udp4", "8.8.8.8:443", verdict{}); !IsBlocked(err) {
		t.Errorf("udp: %v, want refused", err)
	}
}

func TestNoPolicyOpensMetadataRuntimeAPIOrTheGatewayItself(t *testing.T) {
	p := mustAllow(t, "0.0.0.0/0, ::/0, 169.254.169.254:80, 127.0.0.1:9001, 127.0.0.1:8787, [fd00:ec2::254]:80")
	p.TrustedHosts = []string{"169.254.169.254", "127.0.0.1", "::1"}
	p.OwnAddrs = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8787"), netip.MustParseAddrPort("[::]:9797")}
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9555")
	refused := append([]string{
		"127.0.0.1:9001", "127.0.0.53:9001", "[::1]:9001", "[::ffff:127.0.0.1]:9001", "127.0.0.1:9555",
		"127.0.0.1:8787", "[::ffff:127.0.0.1]:8787", "[64:ff9b::7f00:1]:8787", "0.0.0.0:8787", "[::]:8787",
		"127.0.0.1:9797", "127.3.2.1:9797", "[::1]:9797",
	}, metadataAddresses...)
	all := verdict{named: true, listed: true}
	for _, addr := range refused {
		if err := checkAddr(p, addr, all); !IsBlocked(err) {
			t.Errorf("%s: %v, want refused", addr, err)
		}
	}
	for _, addr := range []string{"127.0.0.1:9002", "127.0.0.1:8788", "10.0.0.1:80", "[fd12::1]:80", "[::1]:8080"} {
		if err := checkAddr(p, addr, verdict{plain: true}); err != nil {
			t.Errorf("%s: %v, want allowed", addr, err)
		}
	}
}

func TestRuntimeAPINamedByHostClosesItsPortOffThePublicInternet(t *testing.T) {
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "runtime.sandbox:9777")
	p := mustAllow(t, "0.0.0.0/0,::/0")
	for addr, want := range map[string]bool{"127.0.0.1:9777": true, "10.1.2.3:9777": true, "8.8.8.8:9777": false, "10.1.2.3:9778": false} {
		if got := IsBlocked(checkAddr(p, addr, verdict{})); got != want {
			t.Errorf("%s refused = %v, want %v", addr, got, want)
		}
	}
}

func TestOwnInterfaceAddressesAreRefusedWhenListeningEverywhere(t *testing.T) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	p := mustAllow(t, "0.0.0.0/0,::/0")
	p.OwnAddrs = []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:8787")}
	for _, one := range list {
		a, _ := netip.AddrFromSlice(one.(*net.IPNet).IP)
		if err := checkAddr(p, netip.AddrPortFrom(a.Unmap(), 8787).String(), verdict{}); !IsBlocked(err) {
			t.Errorf("%s: %v, want refused", a, err)
		}
	}
}

func TestAllowedNetworksDoNotOpenAddressesEmbeddedInThem(t *testing.T) {
	p := mustAllow(t, "64:ff9b::/96")
	for addr, want := range map[string]bool{
		"[64:ff9b::808:808]:443": false, // NAT64 to a public address
		"[64:ff9b::a00:1]:443":   true,  // NAT64 to 10.0.0.1
	} {
		if got := IsBlocked(checkAddr(p, addr, verdict{})); got != want {
			t.Errorf("%s refused = %v, want %v", addr, got, want)
		}
	}
}

func TestPortsOfInternalServicesAreRefusedOnAnyHost(t *testing.T) {
	p := mustAllow(t, "10.0.0.0/8,10.0.0.5:6379,db.example:5432")
	for _, addr := range []string{"8.8.8.8:22", "8.8.8.8:25", "8.8.8.8:445", "8.8.8.8:3306", "8.8.8.8:5432", "8.8.8.8:6379", "8.8.8.8:6443", "8.8.8.8:9200", "8.8.8.8:27017", "10.0.0.1:6379"} {
		if err := checkAddr(p, addr, verdict{}); !IsBlocked(err) {
			t.Errorf("%s: %v, want refused", addr, err)
		}
	}
	if err := checkAddr(p, "10.0.0.5:6379", verdict{}); err != nil {
		t.Errorf("a listed address and port: %v, want allowed", err)
	}
	if err := checkAddr(p, "10.9.9.9:5432", verdict{named: true, listed: true}); err != nil {
		t.Errorf("a listed name and port: %v, want allowed", err)
	}
	if err := checkAddr(p, "10.9.9.9:5432", verdict{named: true}); !IsBlocked(err) {
		t.Errorf("a trusted host on a closed port: %v, want refused", err)
	}
}

// counted serves h over loopback and counts connections.
func counted(t *testing.T, h http.HandlerFunc) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			n.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s, &n
}

func get(t *testing.T, c *http.Client, url string) (*http.Response, error) {
	t.Helper()
	resp, err := c.Get(url)
	if err == nil {
		t.Cleanup(func() { resp.Body.Close() })
	}
	return resp, err
}

func TestEverySpellingOfLoopbackIsRefusedBeforeConnecting(t *testing.T) {
	s, n := counted(t, func(http.ResponseWriter, *http.Request) {})
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	c := NewClient(Policy{})
	for _, host := range []string{"127.0.0.1", "localhost", "localhost.", "LOCALHOST", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "0", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[0:0:0:0:0:ffff:7f00:1]"} {
		for _, scheme := range []string{"http://", "https://"} {
			if _, err := get(t, c, scheme+host+port); err == nil {
				t.Errorf("%s%s: answered", scheme, host)
			}
		}
	}
	if n.Load() != 0 {
		t.Errorf("%d connections were made", n.Load())
	}
	if _, err := get(t, c, s.URL); !IsBlocked(err) || strings.Contains(errors.Unwrap(err).Error(), "10.") {
		t.Errorf("error is %v, want a blocked_host fault", err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	inner, n := counted(t, func(http.ResponseWriter, *http.Request) {})
	outer, _ := counted(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inner.URL, http.StatusFound) })
	resp, err := get(t, NewClient(mustAllow(t, "127.0.0.0/8")), outer.URL)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusFound || n.Load() != 0 {
		t.Errorf("status %d, %d connections to the target; want 302 and none", resp.StatusCode, n.Load())
	}
}

// dnsAnswering serves A records over UDP on loopback: the n-th question gets the n-th
// address, the last one forever.
func dnsAnswering(t *testing.T, addrs ...string) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { pc.Close(); <-done })
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		queries := 0
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			end := 12
			for end < n && buf[end] != 0 {
				end += int(buf[end]) + 1
			}
			end += 5
			if end > n {
				continue
			}
			q := append([]byte{}, buf[:end]...)
			a := binary.BigEndian.Uint16(q[end-4:]) == 1
			copy(q[2:], []byte{0x84, 0, 0, 1, 0, 0, 0, 0, 0, 0})
			if a {
				ip := net.ParseIP(addrs[min(queries, len(addrs)-1)]).To4()
				queries++
				q[7] = 1
				q = append(q, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				q = append(q, ip...)
			}
			pc.WriteTo(q, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp4", pc.LocalAddr().String())
	}}
}

func TestANameThatTurnsToAnotherAddressIsCheckedOnEveryConnection(t *testing.T) {
	s, n := counted(t, func(http.ResponseWriter, *http.Request) {})
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	// 127.0.0.1 is allowed and is the harmless first result; the second result is loopback too,
	// but not allowed.
	p := mustAllow(t, "127.0.0.1")
	tr := newTransport(p, dnsAnswering(t, "127.0.0.1", "127.0.0.2"))
	tr.DisableKeepAlives = true
	c := &http.Client{Transport: tr}
	if _, err := get(t, c, "http://rebind.example"+port); err != nil {
		t.Fatalf("first look-up: %v", err)
	}
	if _, err := get(t, c, "http://rebind.example"+port); !IsBlocked(err) {
		t.Errorf("second look-up: %v, want refused", err)
	}
	if n.Load() != 1 {
		t.Errorf("%d connections, want 1", n.Load())
	}
	// A name that passed CheckURL gets no further with a private address.
	if _, err := (Policy{}).CheckURL("https://rebind.example", "custom_host"); err != nil {
		t.Fatal(err)
	}
	tr = newTransport(Policy{}, dnsAnswering(t, "169.254.169.254"))
	if _, err := get(t, &http.Client{Transport: tr}, "https://rebind.example/"); !IsBlocked(err) {
		t.Errorf("metadata behind a public name: %v, want refused", err)
	}
}

func TestATrustedNameMayBePrivateButNeverMetadata(t *testing.T) {
	s, _ := counted(t, func(http.ResponseWriter, *http.Request) {})
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	p := Policy{TrustedHosts: []string{"*.models.example"}}
	if _, err := get(t, &http.Client{Transport: newTransport(p, dnsAnswering(t, "127.0.0.1"))}, "http://a.models.example"+port); err != nil {
		t.Errorf("trusted name: %v", err)
	}
	if _, err := get(t, &http.Client{Transport: newTransport(p, dnsAnswering(t, "127.0.0.1"))}, "http://models.example.evil"+port); !IsBlocked(err) {
		t.Errorf("name that only looks trusted: %v, want refused", err)
	}
	if _, err := get(t, &http.Client{Transport: newTransport(p, dnsAnswering(t, "169.254.169.254"))}, "http://a.models.example/"); !IsBlocked(err) {
		t.Errorf("trusted name leading to metadata: %v, want refused", err)
	}
}

func TestAListedHostAndPortOpensThatPairOnly(t *testing.T) {
	s, _ := counted(t, func(http.ResponseWriter, *http.Request) {})
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	p := mustAllow(t, "Ollama.default.svc.cluster.local"+port)
	c := &http.Client{Transport: newTransport(p, dnsAnswering(t, "127.0.0.1"))}
	if _, err := get(t, c, "http://ollama.default.svc.cluster.local"+port); err != nil {
		t.Errorf("listed pair: %v", err)
	}
	if _, err := get(t, c, "http://ollama.default.svc.cluster.local:1"); !IsBlocked(err) {
		t.Errorf("other port: %v, want refused", err)
	}
	if _, err := get(t, c, "http://other.default.svc.cluster.local"+port); !IsBlocked(err) {
		t.Errorf("other host: %v, want refused", err)
	}
}

func TestPlainHTTPReachesOnlyWhatThePolicyNames(t *testing.T) {
	if err := checkAddr(Policy{}, "8.8.8.8:80", verdict{plain: true}); !IsBlocked(err) {
		t.Errorf("public address over http: %v, want refused", err)
	}
	if err := checkAddr(Policy{}, "8.8.8.8:80", verdict{}); err != nil {
		t.Errorf("public address over TLS: %v", err)
	}
	// Through the transport: the scheme, not the port, decides.
	tr := newTransport(Policy{}, dnsAnswering(t, "8.8.8.8"))
	if _, err := get(t, &http.Client{Transport: tr}, "http://public.example:443/"); !IsBlocked(err) {
		t.Errorf("http to a public host: %v, want refused", err)
	}
}

func TestProxySettingsAreIgnored(t *testing.T) {
	proxy, n := counted(t, func(http.ResponseWriter, *http.Request) {})
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	tr := newTransport(mustAllow(t, "127.0.0.0/8"), dnsAnswering(t, "10.0.0.1"))
	for _, url := range []string{"http://public.example/", "https://public.example/"} {
		if _, err := get(t, &http.Client{Transport: tr}, url); !IsBlocked(err) {
			t.Errorf("%s: %v, want refused", url, err)
		}
	}
	if tr.Proxy != nil || n.Load() != 0 {
		t.Errorf("the proxy saw %d connections", n.Load())
	}
}

func tlsServer(t *testing.T, h http.HandlerFunc) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = discardLog
	s.StartTLS()
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return s, pool
}

func TestCertificatesAreVerified(t *testing.T) {
	s, pool := tlsServer(t, func(http.ResponseWriter, *http.Request) {})
	p := mustAllow(t, "127.0.0.0/8")
	var unknown x509.UnknownAuthorityError
	if _, err := get(t, NewClient(p), s.URL); !errors.As(err, &unknown) {
		t.Errorf("unknown authority: %v", err)
	}
	p.RootCAs = pool
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	c := &http.Client{Transport: newTransport(p, dnsAnswering(t, "127.0.0.1"))}
	var wrong x509.HostnameError
	if _, err := get(t, c, "https://other.example"+port); !errors.As(err, &wrong) {
		t.Errorf("certificate of another host: %v", err)
	}
	if _, err := get(t, c, "https://example.com"+port); err != nil {
		t.Errorf("certificate of the host: %v", err)
	}
}

func TestHTTP2ForwardsBytesUnchanged(t *testing.T) {
	s, pool := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Got-Accept-Encoding", r.Header.Get("Accept-Encoding"))
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, "not gzip at all")
	})
	p := mustAllow(t, "127.0.0.0/8")
	p.RootCAs = pool
	resp, err := get(t, NewClient(p), s.URL)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if resp.ProtoMajor != 2 || string(body) != "not gzip at all" || err != nil {
		t.Errorf("protocol %s, body %q, %v", resp.Proto, body, err)
	}
	if got := resp.Header.Get("Got-Accept-Encoding"); got != "" {
		t.Errorf("Accept-Encoding %q was added", got)
	}
}

func TestAHandshakeIsBoundedByTheRequestContext(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // accepted by the kernel, never answered
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	g := &guard{policy: mustAllow(t, "127.0.0.0/8")}
	if _, err := g.dialTLS(ctx, "tcp", l.Addr().String(), NewTransport(Policy{}).TLSClientConfig); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("silent server: %v, want the deadline", err)
	}
}

func TestCustomHostAnswersAreCapped(t *testing.T) {
	p := Policy{MaxResponse: 10}
	for size, ok := range map[int]bool{0: true, 9: true, 10: true, 11: false, 5000: false} {
		for _, announced := range []bool{true, false} {
			resp := &http.Response{ContentLength: -1, Body: io.NopCloser(strings.NewReader(strings.Repeat("x", size)))}
			if announced {
				resp.ContentLength = int64(size)
			}
			err := p.Cap(resp)
			var body []byte
			if err == nil {
				body, err = io.ReadAll(resp.Body)
			}
			if ok && (err != nil || len(body) != size) || !ok && (!fault.Is(err, fault.InvalidProviderResponse) || len(body) > 10) {
				t.Errorf("size %d announced %v: %d bytes, %v", size, announced, len(body), err)
			}
		}
	}
	resp := &http.Response{ContentLength: 1 << 40, Body: io.NopCloser(strings.NewReader(""))}
	if err := (&Policy{}).Cap(resp); err != nil {
		t.Errorf("no bound: %v", err)
	}
}
