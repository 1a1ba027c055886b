package a2a

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Shown is what clients of the gateway are shown of an agent's card.
type Shown struct {
	Address  string // of the agent at the gateway
	Agent    string // its own address, as it is registered
	Push     bool   // clients may have the agent push to addresses of theirs
	Disabled func(skill string) bool
}

// scheme is how clients sign in to the gateway, in both versions of the protocol.
const scheme = `{"gateway":{"type":"apiKey","in":"header","name":"x-gateway-api-key","apiKeySecurityScheme":{"location":"header","name":"x-gateway-api-key"}}}`

// Rewrite is a card as clients of the gateway get it, readable for both versions. Its
// addresses and the way to sign in are the gateway's. Disabled skills and the agent's
// signatures, which no longer match, are left out; see Sign.
func Rewrite(card json.RawMessage, as Shown) (json.RawMessage, error) {
	var c map[string]json.RawMessage
	if err := json.Unmarshal(card, &c); err != nil {
		return nil, fmt.Errorf("a2a: stored card: %w", err)
	}
	delete(c, "signatures")
	put := func(name string, v any) {
		if raw, err := json.Marshal(v); err == nil { // texts and raw members that were JSON
			c[name] = raw
		}
	}
	put("url", as.Address)
	put("preferredTransport", JSONRPC)
	put("protocolVersion", "0.3.0")
	put("additionalInterfaces", []any{map[string]string{"url": as.Address, "transport": JSONRPC}, map[string]string{"url": as.Address, "transport": REST}})
	put("supportedInterfaces", interfaces(Interfaces(card, as.Agent), as.Address))
	put("capabilities", capabilities(c["capabilities"], as.Push))
	put("supportsAuthenticatedExtendedCard", extended(c))
	put("securitySchemes", json.RawMessage(scheme))
	put("security", []any{map[string][]string{"gateway": {}}})
	put("securityRequirements", json.RawMessage(`[{"schemes":{"gateway":{"list":[]}}}]`))
	if raw, has := c["skills"]; has {
		skills, err := without(raw, as.Disabled)
		if err != nil {
			return nil, err
		}
		c["skills"] = skills
	}
	return json.Marshal(c)
}

// interfaces are those that the gateway serves: each version in both bindings, the agent's
// preferred version first, and again for each of the agent's tenants.
func interfaces(of []Interface, address string) (out []any) {
	tenants := []string{""}
	for _, i := range of {
		if !slices.Contains(tenants, i.Tenant) {
			tenants = append(tenants, i.Tenant)
		}
	}
	versions := []string{Version, Older}
	if len(of) > 0 && of[0].Old {
		versions = []string{Older, Version}
	}
	for _, tenant := range tenants {
		for _, version := range versions {
			for _, binding := range []string{JSONRPC, REST} {
				i := map[string]string{"url": address, "protocolBinding": binding, "protocolVersion": version}
				if tenant != "" {
					if version == Older {
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

func members(raw json.RawMessage) map[string]json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil || o == nil {
		o = map[string]json.RawMessage{} // anything but an object has no members
	}
	return o
}

func capabilities(raw json.RawMessage, push bool) map[string]json.RawMessage {
	c := members(raw)
	if string(c["pushNotifications"]) != "true" || !push {
		c["pushNotifications"] = json.RawMessage("false")
	}
	if string(c["streaming"]) != "true" {
		c["streaming"] = json.RawMessage("false")
	}
	return c
}

// extended tells whether there is a card for signed-in clients. The two versions say so in
// different places.
func extended(c map[string]json.RawMessage) bool {
	return string(c["supportsAuthenticatedExtendedCard"]) == "true" || string(members(c["capabilities"])["extendedAgentCard"]) == "true"
}

// without leaves out disabled skills, and what skills say about signing in to the agent
// itself.
func without(raw json.RawMessage, disabled func(string) bool) (json.RawMessage, error) {
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return json.RawMessage("[]"), nil
	}
	out := make([]json.RawMessage, 0, len(all))
	for _, one := range all {
		var s map[string]json.RawMessage
		if json.Unmarshal(one, &s) != nil || s == nil || disabled(text(s["id"])) {
			continue
		}
		if s["security"] != nil || s["securityRequirements"] != nil {
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
