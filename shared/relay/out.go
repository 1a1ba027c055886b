package relay

import (
	"net/http"
	"net/url"
	"strings"
)

// out is the way to the target: custom hosts alone may be trusted ones.
func (tg *target) out() http.RoundTripper {
	if host, _ := tg.to.target.OwnHost(); host != "" {
		return tg.Trusting
	}
	return tg.Transport
}

// ownHost tells whether an address is at the target's custom host, by the same
// scheme and port.
func (tg *target) ownHost(address string) bool {
	host, _ := tg.to.target.OwnHost()
	own, err := url.Parse(host)
	if host == "" || err != nil {
		return false
	}
	u, err := url.Parse(address)
	return err == nil && u.User == nil && strings.EqualFold(u.Scheme, own.Scheme) && strings.EqualFold(u.Host, own.Host)
}
