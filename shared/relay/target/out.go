package target

import (
	"errors"
	"net"
	"net/url"
	"strings"

	"gateway/shared/egress"
	"gateway/shared/fault"
)

// AtOwnHost reports whether the target is at a custom host. Only such a host may be a trusted
// one.
func (t *Choice) AtOwnHost() bool {
	host, _ := t.Target.OwnHost()
	return host != ""
}

// OwnHost reports whether an address is at the target's custom host, by the same scheme and
// port.
func (t *Choice) OwnHost(address string) bool {
	host, _ := t.Target.OwnHost()
	own, err := url.Parse(host)
	if host == "" || err != nil {
		return false
	}
	u, err := url.Parse(address)
	return err == nil && u.User == nil && strings.EqualFold(u.Scheme, own.Scheme) && strings.EqualFold(u.Host, own.Host)
}

// Unreachable returns the fault for a call without a response.
func (t *Choice) Unreachable(err error) *fault.Fault {
	if egress.Refused(err) {
		return fault.From(err)
	}
	why := "did not answer"
	var dns *net.DNSError
	if errors.As(err, &dns) {
		why = "has an address that cannot be resolved"
	}
	f := fault.Newf(fault.ProviderUnreachable, "", "The provider %s %s", t.Target.Provider.ID, why).WithCause(err)
	f.Source = fault.SourceProvider
	return f
}

// StreamBroke returns the fault for a response that ended prematurely.
func (t *Choice) StreamBroke(err error) *fault.Fault {
	var f *fault.Fault
	if errors.As(err, &f) {
		return f
	}
	return fault.Newf(fault.InvalidProviderResponse, "", "The stream of %s was truncated", t.Target.Provider.ID).WithCause(err)
}
