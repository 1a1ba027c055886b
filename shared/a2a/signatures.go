package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gateway/shared/identity/bearer"
	"gateway/shared/identity/signing"
)

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
