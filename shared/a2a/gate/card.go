package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"gateway/shared/a2a"
	"gateway/shared/a2a/authz"
	"gateway/shared/fault"
	"gateway/shared/identity/signing"
)

// isCard reports whether a path below an agent's address is that of its card.
func isCard(below []string) bool {
	return len(below) == 2 && below[0] == ".well-known" && (below[1] == "agent-card.json" || below[1] == "agent.json")
}

// serveCard responds with the agent's card.
func serveCard(v *requestState) error {
	v.record.Method = "agent-card"
	v.req.rest = true
	updateRecord(v)
	if v.call.Request.Method == http.MethodDelete {
		v.call.Header().Set("Allow", "GET, POST")
		return fault.New(fault.MethodNotAllowed, "", "This address takes GET, POST")
	}
	card, err := cardOf(v)
	if err != nil {
		return err
	}
	shown, err := rewriteCard(v, card)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(shown)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	h := v.call.Header()
	h.Set("Etag", tag)
	h.Set("Cache-Control", "private, no-cache")
	h.Add("Vary", "x-gateway-api-key, authorization")
	if strings.Contains(v.call.Request.Header.Get("If-None-Match"), tag) {
		v.call.Send(http.StatusNotModified, "", nil, nil)
		return nil
	}
	v.call.Send(http.StatusOK, "application/json", shown, nil)
	return nil
}

// rewriteCard returns a card for the caller: with the gateway's addresses and signature, and
// only with skills that the caller may use.
func rewriteCard(v *requestState, card json.RawMessage) (json.RawMessage, error) {
	if a2a.CheckCard(card) != nil {
		return nil, malformed(v, http.StatusOK, "is no card")
	}
	made, err := a2a.Rewrite(card, a2a.CardOptions{
		Address: v.call.Base + "/" + v.facts.Server.Record.Slug, Agent: v.facts.Integration.URL, Push: v.facts.Integration.AllowsPush(),
		Disabled: func(skill string) bool { return v.facts.Decide(skill) != authz.Allowed },
	})
	if err != nil || v.call.Signing == nil {
		return made, err
	}
	key, err := v.call.Signing.For(v.call.Context, signing.ES256)
	if err != nil {
		return nil, err
	}
	return a2a.Sign(made, key, strings.TrimSuffix(v.call.Base, pathPrefix)+keySetPath)
}

// pathPrefix is the path of all agents; keySetPath is the path of the public keys.
const (
	pathPrefix = "/agent"
	keySetPath = "/.well-known/jwks.json"
)

// cardOf returns the agent's card: the stored one, otherwise the current one.
func cardOf(v *requestState) (json.RawMessage, error) {
	i := v.facts.Integration
	if len(i.Card) > 0 {
		return i.Card, nil
	}
	return v.host.cards.get(i.Fingerprint, v.call.Now(), func() (json.RawMessage, error) {
		ctx, cancel := context.WithTimeout(v.call.Context, min(v.host.Timeout, cardWait))
		defer cancel()
		return v.host.opener.Card(ctx, i.Record, v.facts.Server.Record.Scope)
	})
}

// Limits of cards that are not stored because they are large or because the agent was
// unreachable at registration.
const (
	cardLife = time.Minute
	cardWait = 10 * time.Second
	maxCards = 64
)

// cardCache caches such cards.
type cardCache struct {
	mu      sync.Mutex
	entries map[string]cachedCard
}

type cachedCard struct {
	card  json.RawMessage
	err   error
	until time.Time
}

func (c *cardCache) get(print string, now time.Time, fetch func() (json.RawMessage, error)) (json.RawMessage, error) {
	c.mu.Lock()
	held, ok := c.entries[print]
	c.mu.Unlock()
	if ok && now.Before(held.until) {
		return held.card, held.err
	}
	card, err := fetch()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxCards {
		c.entries = map[string]cachedCard{}
	}
	c.entries[print] = cachedCard{card, err, now.Add(cardLife)}
	return card, err
}
