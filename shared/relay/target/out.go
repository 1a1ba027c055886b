package target

import (
	"errors"
	"net/url"
	"slices"
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

// NoAnswer is the cause of a call without a response. Its text is the message for the record,
// which states the cause and no address.
type NoAnswer struct {
	text string
	err  error
}

func (n *NoAnswer) Error() string { return n.text }

func (n *NoAnswer) Unwrap() error { return n.err }

// seesProviders are the scopes of callers that may know the address of a provider.
var seesProviders = []string{"providers.read", "virtual_keys.read"}

// Unreachable returns the fault for a call of a host without a response. Callers that may read
// providers are told the address and the cause.
func Unreachable(tg *Target, host string, err error) *fault.Fault {
	if egress.Refused(err) {
		return fault.From(err)
	}
	name := "The provider " + tg.To.Target.Provider.ID
	why := &NoAnswer{name + " " + egress.NoAnswer(err), err}
	f := fault.New(fault.ProviderUnreachable, "", name+" did not answer").WithCause(why)
	if slices.ContainsFunc(seesProviders, tg.Req.Who.Has) {
		at := host
		if tg.To.Saved != nil {
			at = "@" + tg.To.Saved.Slug + " at " + host
		}
		f.Message = name + " (" + at + ") " + egress.NoAnswer(err)
	}
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
