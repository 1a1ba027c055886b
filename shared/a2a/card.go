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

// Bounds of cards, in bytes: of a card that is fetched, and of one that is kept with its
// integration.
const (
	MaxCard     = 1 << 20
	MaxKeptCard = 200 << 10
	maxDepth    = 64
)

// Paths of a card below an agent's address. The first is the protocol's; the other was used
// by its first versions.
var cardPaths = []string{"/.well-known/agent-card.json", "/.well-known/agent.json"}

// Fetch returns the card of the agent at an address, requested with headers, of which those
// named in secret came from a secret manager.
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
			break // the other path is at the same host, which gave no answer
		}
	}
	return nil, last
}

func fetch(ctx context.Context, via http.RoundTripper, at string, headers http.Header, secret []string) (json.RawMessage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, upstream.Fail(0, "the agent's address cannot be called")
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
		return nil, upstream.Fail(resp.StatusCode, "the agent answers with status %d and no card", resp.StatusCode)
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

// CheckCard tells whether something is the card of an agent: an object with a name,
// and addresses as either version of the protocol writes them.
func CheckCard(raw []byte) error {
	var card struct {
		Name       *string         `json:"name"`
		URL        *string         `json:"url"`
		Interfaces json.RawMessage `json:"supportedInterfaces"`
	}
	if wire.CheckStrict(raw, maxDepth) != nil || json.Unmarshal(raw, &card) != nil {
		return upstream.Fail(http.StatusOK, "what the agent shows is not the JSON of a card")
	}
	list := bytes.TrimSpace(card.Interfaces)
	if card.Name == nil || *card.Name == "" || (card.URL == nil || *card.URL == "") && (len(list) == 0 || list[0] != '[') {
		return upstream.Fail(http.StatusOK, "what the agent shows is no card: it has no name, or neither url nor supportedInterfaces")
	}
	return nil
}

// Skill is a skill of a card.
type Skill struct {
	ID, Name, Description string
	Tags                  []string
}

// Skills are the skills of a card that have an id, in its order.
func Skills(card json.RawMessage) []Skill {
	var c struct {
		Skills []struct {
			ID, Name, Description string
			Tags                  []string
		} `json:"skills"`
	}
	if json.Unmarshal(card, &c) != nil {
		return nil // a card without a list of skills has none
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
	_ = json.Unmarshal(raw, &s) // another form is none
	return s
}
