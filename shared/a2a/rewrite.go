package a2a

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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
