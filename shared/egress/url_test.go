package egress

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/fault"
)

func TestCheckURLTakesPublicHosts(t *testing.T) {
	for raw, want := range map[string]string{
		"https://api.example.com":                    "https://api.example.com",
		"HTTPS://API.Example.COM/v1/":                "https://api.example.com/v1/",
		"https://api.example.com:443/v1":             "https://api.example.com/v1",
		"https://api.example.com:8443/a%2Fb%3Fx=1&y": "https://api.example.com:8443/a%2Fb%3Fx=1&y",
		"https://8.8.8.8/v1":                         "https://8.8.8.8/v1",
		"https://[2606:4700:0::6812:6c0]:9000/v1":    "https://[2606:4700::6812:6c0]:9000/v1",
		"https://a.b.c.d.e.f.g.h.example.com":        "https://a.b.c.d.e.f.g.h.example.com",
		"https://my-org.openai.azure.com/openai":     "https://my-org.openai.azure.com/openai",
		"https://vllm":                               "https://vllm",
		"https://notlocal":                           "https://notlocal",
		"https://mymetadata.google.internal.com/v1":  "https://mymetadata.google.internal.com/v1",
		"https://kubernetes.example.com":             "https://kubernetes.example.com",
		"https://0x7f.example.com":                   "https://0x7f.example.com",
	} {
		u, err := (Policy{}).CheckURL(raw, "custom_host")
		if err != nil || u.String() != want {
			t.Errorf("%s: %v, %v; want %s", raw, u, err, want)
		}
	}
}

func TestCheckURLRefusesMalformedAddresses(t *testing.T) {
	for _, raw := range []string{
		"https://example.com?", "https://example.com/?", "https://example.com?x=1", "https://example.com/v1?", "https://example.com/v1?api-version=1", "https://example.com/v1??", "https://example.com/%3f?a/../b", "https://example.com/v1?x#y",
		"", "example.com", "//example.com", "ftp://example.com", "file:///etc/passwd", "gopher://x", "https:example.com",
		"https://", "https:///v1", "https://?x", "https://example.com:0", "https://example.com:65536", "https://example.com:", "https://example.com:+1",
		"https://example.com:8 ", "https://user@example.com", "https://user:pw@example.com", "https://example.com/@x",
		"https://example.com\\@evil.com", "https://example.com#@evil.com", "https://exam%70le.com", "https://%31.1.1.1",
		"https://example.com.", "https://.example.com", "https://a..b.com", "https://-a.com", "https://a-.com", "https://a_b.com",
		"https://xn--e1afmkfd.com", "https://a.xn--p1ai", "https://пример.com", "https://example.com\n", "https://exa\tmple.com", "https://example.com/\x00",
		"https://exa mple.com", "https://1.2.3.4.5.6.7.8.9.a.com", "https://" + strings.Repeat("a", 64) + ".com",
		"https://example.com/" + strings.Repeat("a", 2048),
		// other notations of IPv4
		"https://2130706433", "https://0x7f000001", "https://0x7f.0.0.1", "https://0177.0.0.1", "https://127.1", "https://127.0.1",
		"https://127.0.0.1.", "https://017700000001", "https://0", "https://0x", "https://134744072", "https://08.8.8.8", "https://8.8.8.08",
		"https://8.8.8", "https://256.1.1.1", "https://1.2.3.4.5", "https://foo.0x1", "https://foo.1",
		// IPv6
		"https://[::1", "https://::1", "https://[::1%25eth0]", "https://[fe80::1%eth0]", "https://[::ffff:8.8.8.8]", "https://[::ffff:808:808]", "https://[1.2.3.4]", "https://[v1.x]", "https://[::1]x",
	} {
		_, err := (Policy{TrustedHosts: DefaultTrusted(false)}).CheckURL(raw, "custom_host")
		f := fault.From(err)
		if err == nil || f.Code != fault.InvalidRequest || f.Status() != 400 || f.Field != "custom_host" {
			t.Errorf("%q: %v, want 400 invalid_request at custom_host", raw, err)
		}
	}
}

func TestCheckURLAlwaysBlocks(t *testing.T) {
	p := mustAllow(t, "0.0.0.0/0,::/0")
	p.TrustedHosts = []string{"*.internal", "*.local", "*.io", "*.me", "metadata", "169.254.169.254", "fd00:ec2::254", "kubernetes", "example.com", "localhost"}
	p.OwnAddrs = append(p.OwnAddrs, netip.MustParseAddrPort("127.0.0.1:8787"))
	for _, host := range []string{
		"169.254.169.254", "169.254.169.1", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16", "192.0.0.192",
		"[fd00:ec2::254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::1]", "[::a9fe:a9fe]", "[2600::5efe:a9fe:a9fe]",
		"metadata", "instance-data", "kubernetes", "METADATA.google.internal", "x.metadata.google.internal", "metadata.gce.internal", "metadata.goog",
		"metadata.azure.com", "vm1.internal.cloudapp.net", "metadata.internal", "metadata.do.internal", "metadata.packet.net",
		"ip-10-0-0-1.ec2.internal", "ip-10-0-0-1.eu-west-1.compute.internal", "metadata.cloud.ibm.com", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local", "ollama.default.svc.cluster.local", "consul", "api.service.consul",
		"127.0.0.1.nip.io", "nip.io", "a.sslip.io", "10.0.0.1.xip.io", "localtest.me", "x.lvh.me", "vcap.me", "a.traefik.me", "x.localhost.run",
		"example.com:22", "example.com:25", "example.com:445", "example.com:3306", "example.com:5432", "example.com:6379", "example.com:6443", "example.com:9200", "example.com:27017",
		"localhost:6379", "127.0.0.1:9001", "127.0.0.1:8787", "0.0.0.0", "[::]",
	} {
		_, err := p.CheckURL("https://"+host+"/v1", "x-gateway-custom-host")
		if !fault.Is(err, fault.BlockedHost) || fault.From(err).Status() != 400 {
			t.Errorf("%s: %v, want 400 blocked_host", host, err)
		}
	}
}

var privateHosts = []string{
	"10.0.0.1", "172.16.0.1", "172.31.1.1", "192.168.0.1", "127.0.0.1", "127.1.2.3", "169.254.1.1", "100.64.0.1", "0.1.1.1", "224.0.0.1", "255.255.255.255",
	"198.18.0.1", "192.0.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1",
	"printer.local", "a.localdomain", "svc.internal", "x.intranet", "nas.lan", "nas.home", "git.corp", "a.test", "a.invalid", "a.onion", "localhost", "app.localhost", "host.docker.internal",
	"[::1]", "[fc00::1]", "[fd00::1]", "[fe80::1]", "[fec0::1]", "[ff02::1]", "[2001::1]", "[100:0:0:1::1]", "[::a00:1]", "[64:ff9b::a00:1]", "[2002:a00:1::]", "[64:ff9b:1::a00:1]", "[2600::5efe:a00:1]",
}

func TestCheckURLBlocksPrivateHostsUnlessTrusted(t *testing.T) {
	for _, host := range privateHosts {
		for _, scheme := range []string{"https://", "http://"} {
			if _, err := (Policy{}).CheckURL(scheme+host+":8000/v1", "custom_host"); !fault.Is(err, fault.BlockedHost) {
				t.Errorf("%s%s untrusted: %v, want blocked_host", scheme, host, err)
			}
			trusted, err := ParseTrusted(host)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := (Policy{TrustedHosts: trusted}).CheckURL(scheme+host+":8000/v1", "custom_host"); err != nil {
				t.Errorf("%s%s trusted: %v", scheme, host, err)
			}
		}
	}
	if _, err := (Policy{}).CheckURL("http://example.com", "custom_host"); !fault.Is(err, fault.BlockedHost) {
		t.Errorf("http to a public host: %v, want blocked_host", err)
	}
}

func TestTrustedHosts(t *testing.T) {
	list, err := ParseTrusted(" Models.Example , *.ai.corp, 10.1.2.3, [FD00::5], localhost, Gpu.lan:8000, 10.9.9.9:80, [fd00::7]:443,")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"models.example", "*.ai.corp", "10.1.2.3", "fd00::5", "localhost", "gpu.lan:8000", "10.9.9.9:80", "[fd00::7]:443"}, list); diff != "" {
		t.Error(diff)
	}
	p := Policy{TrustedHosts: list}
	for raw, ok := range map[string]bool{
		"http://models.example": true, "http://a.models.example": false, "http://ai.corp": true, "http://x.y.ai.corp:11434": true,
		"http://evilai.corp": false, "http://ai.corp.evil.com": false, "http://10.1.2.3:8000": true, "http://10.1.2.4": false,
		"https://[fd00::5]:8000": true, "https://[fd00::6]": false, "http://localhost:11434": true, "http://app.localhost": true, "http://notlocalhost": false,
		"http://gpu.lan:8000": true, "http://gpu.lan": false, "http://gpu.lan:8001": false, "http://10.9.9.9": true, "https://10.9.9.9": false, "https://[fd00::7]": true,
	} {
		if _, err := p.CheckURL(raw, "f"); (err == nil) != ok {
			t.Errorf("%s: %v, want ok = %v", raw, err, ok)
		}
		if _, err := p.WithoutTrusted().CheckURL(raw, "f"); err == nil {
			t.Errorf("%s may be reached although it is no custom host", raw)
		}
	}
	for _, bad := range []string{"a b", "*.", "http://x", "a:0", "*:80", "*", "fe80::1%eth0", "a/b", "*.*.com", "1.2.3"} {
		if _, err := ParseTrusted(bad); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%q: %v, want a fault", bad, err)
		}
	}
	if len(DefaultTrusted(true)) != 0 || len(DefaultTrusted(false)) != 4 {
		t.Error("default trust")
	}
}

func TestParseAllow(t *testing.T) {
	p := mustAllow(t, "127.0.0.0/8, ::1 ,10.1.2.3/16,::ffff:10.9.0.0/112,Ollama.Internal:11434,[::1]:80,10.0.0.5:6379,")
	wantNets := []string{"127.0.0.0/8", "::1/128", "10.1.0.0/16", "10.9.0.0/16"}
	var nets []string
	for _, n := range p.Allow {
		nets = append(nets, n.String())
	}
	if diff := cmp.Diff(wantNets, nets); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]struct{}{"ollama.internal:11434": {}, "[::1]:80": {}, "10.0.0.5:6379": {}}, p.AllowHostPorts); diff != "" {
		t.Error(diff)
	}
	for raw, ok := range map[string]bool{
		"http://localhost:8000": true, "http://127.0.0.1:8000": true, "http://[::1]:8000": true, "http://ollama.internal:11434/v1": true,
		"http://ollama.internal:11435": false, "http://10.0.0.5:6379": true, "http://10.0.0.5:6380": false, "http://10.2.0.1": false, "http://10.1.255.1": true,
	} {
		if _, err := p.CheckURL(raw, "f"); (err == nil) != ok {
			t.Errorf("%s: %v, want ok = %v", raw, err, ok)
		}
	}
	if p, err := ParseAllow("  "); err != nil || p.Allow != nil || p.AllowHostPorts != nil {
		t.Errorf("empty: %+v, %v", p, err)
	}
	for _, bad := range []string{"localhost", "10.0.0.0/33", "a:0", "a:65536", "a:b", "[fe80::1%eth0]:80", "fe80::1%eth0", "http://a:80", ":80", "a b:80", "127.1:80", "::ffff:1.2.3.4/64"} {
		if _, err := ParseAllow("10.0.0.0/8," + bad); !fault.Is(err, fault.InvalidRequest) || !strings.Contains(err.Error(), "entry 2") {
			t.Errorf("%q: %v, want a fault naming entry 2", bad, err)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, h := range privateHosts {
		f.Add("https://" + h + "/v1")
	}
	for _, s := range []string{"https://api.example.com:8443/v1?x=1", "http://2130706433", "https://a@b", "https://[::ffff:7f00:1]", "https://exa%6dple.com", "HTTP://X:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := (Policy{}).CheckURL(raw, "custom_host")
		if err != nil {
			if s := fault.From(err).Status(); s != 400 {
				t.Fatalf("status %d", s)
			}
			return
		}
		// What passes is https, lower case, and the same URL when read again; an
		// address in it is one that the dialer would connect to.
		if u.Scheme != "https" || u.User != nil || u.Host != strings.ToLower(u.Host) || u.Fragment != "" {
			t.Fatalf("%q passed as %q", raw, u)
		}
		host := u.Hostname()
		if strings.ContainsAny(host, "%@\\ \t") || strings.HasSuffix(host, ".") {
			t.Fatalf("%q passed with host %q", raw, host)
		}
		if a, err := netip.ParseAddr(host); err == nil && !public(plainAddr(a)) {
			t.Fatalf("%q passed with the closed address %s", raw, a)
		}
		if len(raw) < 2000 {
			again, err := (Policy{}).CheckURL(u.String(), "custom_host")
			if err != nil || again.String() != u.String() {
				t.Fatalf("%q became %q, which gave %v, %v", raw, u, again, err)
			}
		}
	})
}

func FuzzParseAllow(f *testing.F) {
	for _, s := range []string{"", "127.0.0.0/8,::1", "a.b:1,[::1]:2,10.0.0.0/8", "::ffff:0.0.0.0/96", ",,", "fe80::1%a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParseAllow(s)
		if err != nil {
			if p.Allow != nil || p.AllowHostPorts != nil || !fault.Is(err, fault.InvalidRequest) {
				t.Fatalf("%q: %+v, %v", s, p, err)
			}
			return
		}
		for _, n := range p.Allow {
			if !n.IsValid() || n != n.Masked() || n.Addr().Is4In6() {
				t.Fatalf("%q gave %s", s, n)
			}
		}
		for _, addr := range metadataAddresses {
			if err := checkAddr(p, addr, verdict{}); !IsBlocked(err) {
				t.Fatalf("%q opened %s", s, addr)
			}
		}
	})
}

func BenchmarkCheckURL(b *testing.B) {
	p := Policy{TrustedHosts: DefaultTrusted(false)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.CheckURL("https://api.example.com/v1", "custom_host"); err != nil {
			b.Fatal(err)
		}
	}
}
