package target

import (
	"net/url"

	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/route/saved"
)

// This file holds to one rule: what is saved, be it an integration, a config or a
// default, never goes to an address that a caller names. What a field does is told
// by provider.Part.

// storedWithAddress refuses an address of the caller's.
func storedWithAddress(field string) error {
	return fault.Newf(fault.BlockedHost, field, "%s says where the request goes, and cannot be combined with a stored credential unless it is what was saved with it; leave it out, or send a credential of your own", field)
}

// hostAsked is the custom host of the request or of the config, and where it
// stands.
func hostAsked(tg *Target) (host, field string) {
	if tg.Req.Ask.CustomHost != "" {
		return tg.Req.Ask.CustomHost, "x-gateway-custom-host"
	}
	return tg.To.Leaf.CustomHost, "custom_host"
}

// staysPut refuses what would move a saved provider: headers, and fields of a
// config that came with the request.
func staysPut(tg *Target, s *saved.Provider, cred *provider.Credential) error {
	if field := cred.MovedBy(s.Provider, tg.Req.Req.Header); field != "" {
		return storedWithAddress(field)
	}
	if tg.Plan.Config.ID != "" || len(tg.To.Leaf.Fields) == 0 {
		return nil
	}
	if field := cred.MovedByFields(s.Provider, tg.To.Leaf.Fields); field != "" {
		return storedWithAddress(field)
	}
	return nil
}

// staysWithConfig refuses a request that would send the credential of a saved config's
// target to another address. inline: the request chooses the provider, so it would choose
// who is given the key.
func staysWithConfig(tg *Target, p *provider.Provider, cred *provider.Credential, inline bool) error {
	if inline {
		return storedWithAddress("x-gateway-provider")
	}
	if host := tg.Req.Ask.CustomHost; host != "" && !sameHost(host, tg.To.Leaf.CustomHost) {
		return storedWithAddress("x-gateway-custom-host")
	}
	if field := cred.MovedBy(p, tg.Req.Req.Header); field != "" {
		return storedWithAddress(field)
	}
	return nil
}

// sameHost tells whether a custom host that came with a request is the one that is
// saved: scheme, host, port and path alike.
func sameHost(asked, own string) bool {
	a, errA := url.Parse(asked)
	b, errB := url.Parse(own)
	if errA != nil || errB != nil || own == "" {
		return false
	}
	return a.Scheme == b.Scheme && a.Host == b.Host && trimSlash(a.EscapedPath()) == trimSlash(b.EscapedPath()) && a.RawQuery == b.RawQuery && a.User == nil
}

func trimSlash(p string) string {
	for len(p) > 0 && p[len(p)-1] == '/' {
		p = p[:len(p)-1]
	}
	return p
}
