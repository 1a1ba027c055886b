package chosen

import (
	"net/url"
	"strings"
)

// AtOwnHost tells whether the target is at a custom host. Only such a host may be a trusted
// one.
func (tg *Target) AtOwnHost() bool {
	host, _ := tg.To.Target.OwnHost()
	return host != ""
}

// OwnHost tells whether an address is at the target's custom host, by the same
// scheme and port.
func (tg *Target) OwnHost(address string) bool {
	host, _ := tg.To.Target.OwnHost()
	own, err := url.Parse(host)
	if host == "" || err != nil {
		return false
	}
	u, err := url.Parse(address)
	return err == nil && u.User == nil && strings.EqualFold(u.Scheme, own.Scheme) && strings.EqualFold(u.Host, own.Host)
}
