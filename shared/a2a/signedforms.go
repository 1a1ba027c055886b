package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gateway/shared/identity/bearer"
	"gateway/shared/identity/signing"
	"gateway/shared/wire"
)

// A signature covers the canonical JSON of a card (RFC 8785) without its signatures, in one of
// two forms: the card as it is sent, or only the fields of the 1.0 data model without empty
// values, because libraries decode cards into that model.

// signedForms returns both forms.
func signedForms(card json.RawMessage) (sent, modelled []byte, err error) {
	var c map[string]any
	if err := json.Unmarshal(card, &c); err != nil {
		return nil, nil, fmt.Errorf("a2a: card: %w", err)
	}
	whole := fields(card)
	delete(whole, "signatures")
	raw, err := json.Marshal(whole)
	if err == nil {
		sent, err = wire.AppendCanonical(nil, raw)
	}
	if err != nil {
		return nil, nil, err
	}
	// The model has no numbers except in the params of extensions, which are formatted as in
	// ECMAScript.
	signed, _ := dropEmpty(cardModel.project(c)).(map[string]any)
	if signed == nil {
		signed = map[string]any{}
	}
	raw, err = json.Marshal(signed)
	if err == nil {
		modelled, err = wire.AppendCanonical(nil, raw)
	}
	return sent, modelled, err
}

// model describes the fields of an object in the 1.0 data model. A field with a nil model is
// copied verbatim. With each set, the model applies to the entries of a list or map.
type model struct {
	members    map[string]*model
	each       bool
	unsetFalse []string // booleans for which false means the same as absent
}

func verbatimFields(names ...string) map[string]*model {
	out := make(map[string]*model, len(names))
	for _, n := range names {
		out[n] = nil
	}
	return out
}

var cardModel = func() *model {
	with := func(m map[string]*model, more map[string]*model) map[string]*model {
		for name, of := range more {
			m[name] = of
		}
		return m
	}
	extensions := &model{members: verbatimFields("uri", "description", "required", "params"), each: true, unsetFalse: []string{"required"}}
	return &model{members: with(verbatimFields("name", "description", "version", "documentationUrl", "iconUrl", "defaultInputModes", "defaultOutputModes", "securityRequirements"), map[string]*model{
		"supportedInterfaces": {members: verbatimFields("url", "protocolBinding", "tenant", "protocolVersion"), each: true},
		"provider":            {members: verbatimFields("url", "organization")},
		"capabilities":        {members: with(verbatimFields("streaming", "pushNotifications", "extendedAgentCard"), map[string]*model{"extensions": extensions})},
		"skills":              {members: verbatimFields("id", "name", "description", "tags", "examples", "inputModes", "outputModes", "securityRequirements"), each: true},
		"securitySchemes":     {members: verbatimFields("apiKeySecurityScheme", "httpAuthSecurityScheme", "oauth2SecurityScheme", "openIdConnectSecurityScheme", "mtlsSecurityScheme"), each: true},
	})}
}()

// project returns the part of a value that the model contains.
func (m *model) project(v any) any {
	if m == nil {
		return v
	}
	if list, ok := v.([]any); ok && m.each {
		out := make([]any, 0, len(list))
		for _, one := range list {
			out = append(out, m.projectObject(one))
		}
		return out
	}
	if o, ok := v.(map[string]any); ok && m.each {
		out := make(map[string]any, len(o))
		for name, one := range o {
			out[name] = m.projectObject(one)
		}
		return out
	}
	return m.projectObject(v)
}

func (m *model) projectObject(v any) any {
	o, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	out := map[string]any{}
	for name, of := range m.members {
		if v, has := o[name]; has {
			out[name] = of.project(v)
		}
	}
	for _, name := range m.unsetFalse {
		if out[name] == false {
			delete(out, name)
		}
	}
	return out
}

// dropEmpty removes empty values recursively. It returns nil if nothing is left.
func dropEmpty(v any) any {
	switch v := v.(type) {
	case string:
		if v == "" {
			return nil
		}
	case []any:
		out := make([]any, 0, len(v))
		for _, one := range v {
			if one = dropEmpty(one); one != nil {
				out = append(out, one)
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, one := range v {
			if one = dropEmpty(one); one != nil {
				out[name] = one
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	}
	return v
}

// maxSignatures is the number of signatures that are checked.
const maxSignatures = 8

// signature is an entry of a card's signatures.
type signature struct {
	Protected string `json:"protected"`
	Signature string `json:"signature"`
}

// Sign replaces the signatures of a card by the gateway's, one for each form that libraries
// verify. keySet is the address of the public keys. The result is deterministic.
func Sign(card json.RawMessage, key *signing.Key, keySet string) (json.RawMessage, error) {
	sent, modelled, err := signedForms(card)
	if err != nil {
		return nil, err
	}
	all := [][]byte{sent}
	if !bytes.Equal(sent, modelled) {
		all = append(all, modelled)
	}
	var list []signature
	for _, form := range all {
		var s signature
		if s.Protected, s.Signature, err = key.Sign(map[string]any{"typ": "JOSE", "jku": keySet}, form); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	c := fields(card)
	if c["signatures"], err = json.Marshal(list); err != nil {
		return nil, err
	}
	return json.Marshal(c)
}

// Values of Verified.Status.
const (
	SignatureValid     = "valid"
	SignatureInvalid   = "invalid"   // the key was read and does not match the card
	SignatureUnchecked = "unchecked" // the key cannot be read or is of an unsupported type
)

// Verified is the result of checking the signatures of an agent's card.
type Verified struct {
	Status string `json:"status" enum:"valid,invalid,unchecked"`
	KeyID  string `json:"key_id,omitempty"`
	KeySet string `json:"key_set,omitempty"`
}

// Verify checks the signatures of the card of the agent at an address. It returns nil if the
// card has none. One valid signature suffices. Key sets are read over https or from the agent's
// host.
func Verify(ctx context.Context, via http.RoundTripper, card json.RawMessage, address string) *Verified {
	var c struct {
		Signatures []signature `json:"signatures"`
	}
	if json.Unmarshal(card, &c) != nil || len(c.Signatures) == 0 {
		if raw := fields(card)["signatures"]; raw == nil || string(raw) == "null" || string(raw) == "[]" {
			return nil
		}
		return &Verified{Status: SignatureUnchecked}
	}
	sent, modelled, err := signedForms(card)
	if err != nil {
		return &Verified{Status: SignatureUnchecked}
	}
	checker := bearer.NewChecker(time.Now)
	client := &http.Client{Transport: via, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	out := &Verified{Status: SignatureUnchecked}
	for _, s := range c.Signatures[:min(len(c.Signatures), maxSignatures)] {
		d := bearer.Detached(s)
		_, kid, jku, ok := d.Head()
		if !ok || !readable(jku, address) {
			continue
		}
		valid, known, err := checker.Detached(ctx, client, jku, &d, sent, modelled)
		switch {
		case valid:
			return &Verified{SignatureValid, truncate(kid), jku}
		case known && err == nil:
			out = &Verified{SignatureInvalid, truncate(kid), jku}
		}
	}
	return out
}

// readable reports whether a key set may be read from an address.
func readable(jku, address string) bool {
	of, err := url.Parse(jku)
	if err != nil || of.Host == "" || of.User != nil || len(jku) > 2048 {
		return false
	}
	home, err := url.Parse(address)
	return of.Scheme == "https" || err == nil && of.Scheme == home.Scheme && strings.EqualFold(of.Host, home.Host)
}

// truncate limits the length of a name.
func truncate(s string) string { return s[:min(len(s), 255)] }
