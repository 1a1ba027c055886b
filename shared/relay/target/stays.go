package target

import (
	"net/url"

	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/route/saved"
)

// This file enforces one rule: a stored credential, of an integration, a config or a default, is
// never sent to an address that a caller names. provider.Part states the purpose of each field.

// storedWithAddress returns the fault for an address from the caller.
func storedWithAddress(field string) error {
	return fault.Newf(fault.BlockedHost, field, "%s sets the destination of the request, and cannot be combined with a stored credential unless it equals the value saved with it; omit it, or send your own credential", field)
}

// hostAsked returns the custom host of the request or of the config, and the field that holds
// it.
func hostAsked(tg *Target) (host, field string) {
	if tg.Req.Ask.CustomHost != "" {
		return tg.Req.Ask.CustomHost, "x-gateway-custom-host"
	}
	return tg.To.Leaf.CustomHost, "custom_host"
}

// staysPut rejects values that would redirect a saved provider: headers, and fields of a config
// in the request.
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

// staysWithConfig rejects a request that would send the credential of a saved config's target to
// another address. inline: the request chooses the provider, so it would choose who gets the
// key.
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

// sameHost reports whether a custom host from a request equals the saved one: scheme, host, port
// and path.
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
