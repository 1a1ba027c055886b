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

// isCard tells whether a path behind an agent's address is that of its card.
func isCard(below []string) bool {
	return len(below) == 2 && below[0] == ".well-known" && (below[1] == "agent-card.json" || below[1] == "agent.json")
}

// serveCard answers with the agent's card.
func serveCard(v *visit) error {
	v.note.Method = "agent-card"
	v.req.rest = true
	noted(v)
	if v.call.Request.Method == http.MethodDelete {
		v.call.Header().Set("Allow", "GET, POST")
		return fault.New(fault.MethodNotAllowed, "", "This address takes GET, POST")
	}
	card, err := cardOf(v)
	if err != nil {
		return err
	}
	shown, err := rewrite(v, card)
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

// rewrite is a card as the caller gets it, signed by the gateway. It lists only skills that
// the caller may use.
func rewrite(v *visit, card json.RawMessage) (json.RawMessage, error) {
	if a2a.CheckCard(card) != nil {
		return nil, garbage(v, http.StatusOK, "is no card")
	}
	made, err := a2a.Rewrite(card, a2a.Shown{
		Address: v.call.Base + "/" + v.facts.Server.Record.Slug, Agent: v.facts.Integration.URL, Push: v.facts.Integration.Pushes(),
		Disabled: func(skill string) bool { return v.facts.Decide(skill) != authz.Allowed },
	})
	if err != nil || v.call.Signing == nil {
		return made, err
	}
	key, err := v.call.Signing.For(v.call.Context, signing.ES256)
	if err != nil {
		return nil, err
	}
	return a2a.Sign(made, key, strings.TrimSuffix(v.call.Base, belowAll)+keySet)
}

// belowAll is the path that all agents are below; keySet is the path of the public keys.
const (
	belowAll = "/agent"
	keySet   = "/.well-known/jwks.json"
)

// cardOf is the agent's own card: the one that is kept with the integration, or else the
// one that the agent shows now.
func cardOf(v *visit) (json.RawMessage, error) {
	i := v.facts.Integration
	if len(i.Card) > 0 {
		return i.Card, nil
	}
	return v.host.cards.get(i.Print, v.call.Now(), func() (json.RawMessage, error) {
		ctx, cancel := context.WithTimeout(v.call.Context, min(v.host.Timeout, cardWait))
		defer cancel()
		return v.host.opener.Card(ctx, i.Record, v.facts.Server.Record.Scope)
	})
}

// Bounds of the cards that are not kept with their integration, because they are larger, or
// because the agent could not be reached when it was registered.
const (
	cardLife = time.Minute
	cardWait = 10 * time.Second
	maxCards = 64
)

// cards holds such cards for a while.
type cards struct {
	mu  sync.Mutex
	all map[string]heldCard
}

type heldCard struct {
	card  json.RawMessage
	err   error
	until time.Time
}

func (c *cards) get(print string, now time.Time, fetch func() (json.RawMessage, error)) (json.RawMessage, error) {
	c.mu.Lock()
	held, ok := c.all[print]
	c.mu.Unlock()
	if ok && now.Before(held.until) {
		return held.card, held.err
	}
	card, err := fetch()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= maxCards {
		c.all = map[string]heldCard{}
	}
	c.all[print] = heldCard{card, err, now.Add(cardLife)}
	return card, err
}
