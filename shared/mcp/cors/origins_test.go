package cors

import (
	"crypto/tls"
	"net/http/httptest"
	"testing"
)

// TestAllowsChecksTheOrigin: pages of other origins may not, nor those whose name was made to
// lead to this machine.
func TestAllowsChecksTheOrigin(t *testing.T) {
	t.Parallel()
	const here, elsewhere = "127.0.0.1:5000", "192.0.2.7:5000"
	for _, c := range []struct {
		origin, host, from, public string
		secure, welcome            bool
	}{
		{"", "gateway.example.com", here, "", false, true},
		{"http://localhost:3000", "127.0.0.1:8787", here, "", false, true},
		{"http://127.0.0.1:8787", "localhost:8787", here, "", false, true},
		{"https://listed.example.com", "gateway.example.com", elsewhere, "", false, true},
		{"https://gateway.example.com", "gateway.example.com", elsewhere, "", false, true},
		{"http://evil.example.com", "evil.example.com", here, "", false, false},
		{"http://evil.example.com:8787", "evil.example.com:8787", "[::1]:5000", "", false, false},
		{"http://evil.example.com", "evil.example.com", "[::ffff:127.0.0.1]:5000", "", false, false},
		{"https://gateway.example.com", "gateway.example.com", here, "https://gateway.example.com/v1", false, true},
		{"https://evil.example.com", "evil.example.com", here, "https://gateway.example.com/v1", false, false},
		{"https://gateway.example.com", "gateway.example.com", here, "", true, true},
		{"http://evil.example.com", "gateway.example.com", elsewhere, "", false, false},
		{"http://evil.example.com", "127.0.0.1:8787", here, "", false, false},
		{"http://localhost:3000", "gateway.example.com", elsewhere, "", false, false},
		{"null", "gateway.example.com", elsewhere, "", false, false},
		{"%zz", "gateway.example.com", elsewhere, "", false, false},
	} {
		p := Pages{Origins: []string{"https://listed.example.com"}, Public: c.public}
		r := httptest.NewRequest("POST", "/", nil)
		if r.Host, r.RemoteAddr = c.host, c.from; c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if c.secure {
			r.TLS = new(tls.ConnectionState)
		}
		if got := p.Allows(r); got != c.welcome {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
