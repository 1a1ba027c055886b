package browser

import (
	"net/http/httptest"
	"testing"
)

func TestSameOriginNeedsEveryHeaderToNameTheGateway(t *testing.T) {
	t.Parallel()
	const public = "https://gateway.example.com/v1"
	for _, c := range []struct {
		site, origin, public string
		want                 bool
	}{
		{"", "", "", true},
		{"same-origin", "", "", true},
		{"same-origin", "http://inner.example", "", true},
		{"", "http://inner.example", "", true},
		{"", "https://INNER.example", "", true}, // TLS ends before the gateway
		{"same-origin", "https://gateway.example.com", public, true},
		{"", "http://gateway.example.com", public, false},
		{"", "https://gateway.example.com", "", false},
		{"", "https://gateway.example.com:8443", public, false},
		{"", "https://gateway.example.com.evil.example", public, false},
		{"", "https://evil.example/gateway.example.com", public, false},
		{"", "https://gateway.example.com@evil.example", public, false},
		{"", "null", public, false},
		{"same-origin", "null", public, false},
		{"same-origin", "https://evil.example", public, false},
		{"cross-site", "", public, false},
		{"same-site", "", public, false},
		{"none", "", public, false},
		{"cross-site", "https://gateway.example.com", public, false},
		{"Same-Origin", "", public, false},
	} {
		r := httptest.NewRequest("POST", "http://inner.example/v1/x", nil)
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if got := SameOrigin(r, c.public); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
	r := httptest.NewRequest("POST", "http://inner.example/v1/x", nil)
	r.Header["Sec-Fetch-Site"] = []string{"same-origin", "cross-site"}
	if SameOrigin(r, "") {
		t.Error("a second header is not read")
	}
}
