package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"gateway/shared/provider"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
	"gateway/shared/wire/mask"
)

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
