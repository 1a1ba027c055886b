package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/provider"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
	"gateway/shared/wire/mask"
)

// CardOptions are the settings of a rewritten card.
type CardOptions struct {
	Address  string // of the agent at the gateway
	Agent    string // the agent's registered address
	Push     bool   // clients may register push notifications
	Disabled func(skill string) bool
}

// scheme is the security scheme of the gateway, in the form of both protocol versions.
const scheme = `{"gateway":{"type":"apiKey","in":"header","name":"x-gateway-api-key","apiKeySecurityScheme":{"location":"header","name":"x-gateway-api-key"}}}`

// Rewrite returns a card for clients of the gateway, readable by both protocol versions. It
// replaces the addresses and security schemes, and removes disabled skills and the agent's
// signatures, which no longer match; see Sign.
func Rewrite(card json.RawMessage, as CardOptions) (json.RawMessage, error) {
	var c map[string]json.RawMessage
	if err := json.Unmarshal(card, &c); err != nil {
		return nil, fmt.Errorf("a2a: stored card: %w", err)
	}
	dropMisspelled(c, "signatures", "url", "preferredTransport", "protocolVersion", "additionalInterfaces", "supportedInterfaces", "capabilities",
		"supportsAuthenticatedExtendedCard", "securitySchemes", "security", "securityRequirements", "skills")
	delete(c, "signatures")
	put := func(name string, v any) {
		if raw, err := json.Marshal(v); err == nil { // strings and decoded JSON
			c[name] = raw
		}
	}
	put("url", as.Address)
	put("preferredTransport", JSONRPC)
	put("protocolVersion", "0.3.0")
	put("additionalInterfaces", []any{map[string]string{"url": as.Address, "transport": JSONRPC}, map[string]string{"url": as.Address, "transport": REST}})
	put("supportedInterfaces", interfaces(Interfaces(card, as.Agent), as.Address))
	put("capabilities", capabilities(c["capabilities"], as.Push))
	put("supportsAuthenticatedExtendedCard", hasExtendedCard(c))
	put("securitySchemes", json.RawMessage(scheme))
	put("security", []any{map[string][]string{"gateway": {}}})
	put("securityRequirements", json.RawMessage(`[{"schemes":{"gateway":{"list":[]}}}]`))
	if raw, has := c["skills"]; has {
		skills, err := filterSkills(raw, as.Disabled)
		if err != nil {
			return nil, err
		}
		c["skills"] = skills
	}
	return json.Marshal(c)
}

// dropMisspelled removes members whose names differ from one of names in case alone, and reports
// whether there were any. Some clients, such as those in Go, take them for that member.
func dropMisspelled(of map[string]json.RawMessage, names ...string) (dropped bool) {
	for member := range of {
		for _, name := range names {
			if member != name && strings.EqualFold(member, name) {
				delete(of, member)
				dropped = true
			}
		}
	}
	return dropped
}

// interfaces returns the interfaces that the gateway serves: each version in both bindings, the
// agent's preferred version first, and again for each tenant.
func interfaces(of []Interface, address string) (out []any) {
	tenants := []string{""}
	for _, i := range of {
		if !slices.Contains(tenants, i.Tenant) {
			tenants = append(tenants, i.Tenant)
		}
	}
	versions := []string{Version, OldVersion}
	if len(of) > 0 && of[0].Old {
		versions = []string{OldVersion, Version}
	}
	for _, tenant := range tenants {
		for _, version := range versions {
			for _, binding := range []string{JSONRPC, REST} {
				i := map[string]string{"url": address, "protocolBinding": binding, "protocolVersion": version}
				if tenant != "" {
					if version == OldVersion {
						continue
					}
					i["tenant"] = tenant
				}
				out = append(out, i)
			}
		}
	}
	return out
}

func fields(raw json.RawMessage) map[string]json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil || o == nil {
		o = map[string]json.RawMessage{} // a value that is not an object has no fields
	}
	return o
}

func capabilities(raw json.RawMessage, push bool) map[string]json.RawMessage {
	c := fields(raw)
	if string(c["pushNotifications"]) != "true" || !push {
		c["pushNotifications"] = json.RawMessage("false")
	}
	if string(c["streaming"]) != "true" {
		c["streaming"] = json.RawMessage("false")
	}
	return c
}

// hasExtendedCard reports whether there is a card for authenticated clients, which the versions
// declare in different places.
func hasExtendedCard(c map[string]json.RawMessage) bool {
	return string(c["supportsAuthenticatedExtendedCard"]) == "true" || string(fields(c["capabilities"])["extendedAgentCard"]) == "true"
}

// filterSkills removes disabled skills, and the security requirements of skills.
func filterSkills(raw json.RawMessage, disabled func(string) bool) (json.RawMessage, error) {
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return json.RawMessage("[]"), nil
	}
	out := make([]json.RawMessage, 0, len(all))
	for _, one := range all {
		var s map[string]json.RawMessage
		if json.Unmarshal(one, &s) != nil || s == nil {
			continue
		}
		dropped := dropMisspelled(s, "id", "security", "securityRequirements")
		if disabled(text(s["id"])) {
			continue
		}
		if dropped || s["security"] != nil || s["securityRequirements"] != nil {
			delete(s, "security")
			delete(s, "securityRequirements")
			plain, err := json.Marshal(s)
			if err != nil {
				return nil, err
			}
			one = plain
		}
		out = append(out, one)
	}
	return json.Marshal(out)
}

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

// Size limits of a fetched card and of a stored card, in bytes.
const (
	MaxCard       = 1 << 20
	MaxStoredCard = 200 << 10
	maxDepth      = 64
)

// cardPaths are the paths of a card below an agent's address. The second is that of early
// versions of the protocol.
var cardPaths = []string{"/.well-known/agent-card.json", "/.well-known/agent.json"}

// Fetch returns the card of the agent at an address. secret lists the headers with values from
// a secret manager.
func Fetch(ctx context.Context, via http.RoundTripper, address string, headers http.Header, secret []string) (json.RawMessage, error) {
	if strings.Contains(address, "#") {
		return nil, upstream.Fail(0, "the agent's address has a fragment")
	}
	base, query, _ := strings.Cut(address, "?")
	var last error
	for _, path := range cardPaths {
		at := strings.TrimRight(base, "/") + path
		if query != "" {
			at += "?" + query
		}
		card, err := fetch(ctx, via, at, headers, secret)
		if err == nil {
			return card, nil
		}
		var f *upstream.Failure
		if last == nil || errors.As(err, &f) && f.Status != http.StatusNotFound {
			last = err
		}
		if !errors.As(err, &f) || f.Status == 0 {
			break // the host is unreachable, so the other path would fail as well
		}
	}
	return nil, last
}

func fetch(ctx context.Context, via http.RoundTripper, at string, headers http.Header, secret []string) (json.RawMessage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, upstream.Fail(0, "the agent's address is invalid")
	}
	for name, values := range headers {
		req.Header[name] = values
	}
	req.Header.Set("Accept", "application/json")
	resp, err := via.RoundTrip(req)
	if err != nil {
		return nil, upstream.Unreachable("the agent", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, upstream.Fail(resp.StatusCode, "the agent responded with status %d and no card", resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, MaxCard+1))
	switch {
	case err != nil:
		return nil, upstream.Fail(resp.StatusCode, "the agent's card ended early")
	case len(raw) > MaxCard:
		return nil, upstream.Fail(resp.StatusCode, "the agent's card has more than %d bytes", MaxCard)
	}
	mask.Bytes(raw, provider.HeaderSecrets(nil, headers, nil, secret))
	return raw, CheckCard(raw)
}

// CheckCard reports whether raw is the card of an agent: an object with a name and with
// addresses in the form of either protocol version.
func CheckCard(raw []byte) error {
	var card struct {
		Name       *string         `json:"name"`
		URL        *string         `json:"url"`
		Interfaces json.RawMessage `json:"supportedInterfaces"`
	}
	if wire.CheckStrict(raw, maxDepth) != nil || json.Unmarshal(raw, &card) != nil {
		return upstream.Fail(http.StatusOK, "the agent's card is not valid JSON")
	}
	list := bytes.TrimSpace(card.Interfaces)
	if card.Name == nil || *card.Name == "" || (card.URL == nil || *card.URL == "") && (len(list) == 0 || list[0] != '[') {
		return upstream.Fail(http.StatusOK, "the agent's card has no name, or neither url nor supportedInterfaces")
	}
	return nil
}

// Skill is a skill of a card.
type Skill struct {
	ID, Name, Description string
	Tags                  []string
}

// Skills returns the skills of a card that have an id, in order.
func Skills(card json.RawMessage) []Skill {
	var c struct {
		Skills []struct {
			ID, Name, Description string
			Tags                  []string
		} `json:"skills"`
	}
	if json.Unmarshal(card, &c) != nil {
		return nil // an unexpected type counts as empty
	}
	var out []Skill
	for _, s := range c.Skills {
		if s.ID != "" && len(s.ID) <= MaxSkill && !slices.ContainsFunc(out, func(o Skill) bool { return o.ID == s.ID }) {
			out = append(out, Skill(s))
		}
	}
	return out
}

func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // an unexpected type counts as empty
	return s
}
