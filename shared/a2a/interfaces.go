package a2a

import (
	"encoding/json"
	"net/url"
	"strings"
)

// Protocol bindings that the gateway supports.
const (
	JSONRPC = "JSONRPC"
	REST    = "HTTP+JSON"
)

// Protocol versions.
const (
	Version    = "1.0"
	OldVersion = "0.3"
)

// Interface is an address at which an agent is called.
type Interface struct {
	URL      string
	Binding  string // JSONRPC or REST
	Old      bool   // version 0.3
	Tenant   string
	SameHost bool // on the host of the integration's address
}

// Interfaces returns the supported interfaces of an agent in the order of its card. An agent
// without a card is assumed to use 0.3 at its address.
func Interfaces(card json.RawMessage, address string) (out []Interface) {
	var c struct {
		URL, PreferredTransport, ProtocolVersion string
		AdditionalInterfaces                     []struct{ URL, Transport string }
		SupportedInterfaces                      []struct{ URL, ProtocolBinding, ProtocolVersion, Tenant string }
	}
	home, err := url.Parse(address)
	if err != nil {
		return nil
	}
	add := func(at, binding string, old bool, tenant string) {
		u, err := url.Parse(at)
		if err != nil || u.Host == "" || u.Fragment != "" {
			return
		}
		i := Interface{strings.TrimRight(at, "/"), strings.ToUpper(binding), old, tenant, strings.EqualFold(u.Scheme, home.Scheme) && strings.EqualFold(u.Host, home.Host)}
		if i.Binding != JSONRPC && i.Binding != REST {
			return
		}
		for _, known := range out {
			if known == i {
				return
			}
		}
		out = append(out, i)
	}
	if len(card) == 0 {
		add(address, JSONRPC, true, "")
		return out
	}
	_ = json.Unmarshal(card, &c) // unexpected types name no interface
	for _, i := range c.SupportedInterfaces {
		add(i.URL, i.ProtocolBinding, strings.HasPrefix(i.ProtocolVersion, "0."), i.Tenant)
	}
	preferred := c.PreferredTransport
	if preferred == "" {
		preferred = JSONRPC
	}
	add(c.URL, preferred, true, "")
	for _, i := range c.AdditionalInterfaces {
		add(i.URL, i.Transport, true, "")
	}
	return out
}
