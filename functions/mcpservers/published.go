package mcpservers

import (
	"bytes"
	"encoding/json"
	"sync"

	"gateway/shared/admin"
	"gateway/shared/identity/signing"
)

// pathKeys is the path of the gateway's public keys.
const pathKeys = "/.well-known/jwks.json"

// published is the cached key set for verifying the gateway's signatures.
type published struct {
	Keys *signing.Keys

	mu   sync.Mutex
	text json.RawMessage
	made *admin.Document // of the text
}

func (p *published) routes() []admin.Route {
	text := admin.Schema{"type": "string"}
	key := admin.ObjectSchema(map[string]admin.Schema{"kty": text, "use": text, "alg": text, "kid": text, "n": text, "e": text, "crv": text, "x": text, "y": text})
	return []admin.Route{{
		Method: "GET", Path: pathKeys, Name: "getSigningKeys", Public: true, Errors: []int{304, 503},
		Doc:    "Read the public signing keys of the gateway, for identities sent to MCP servers (RS256) and agent cards (ES256).",
		Answer: admin.Closed(map[string]admin.Schema{"keys": {"type": "array", "items": key}}),
		Do:     func(c *admin.Call) (any, error) { return p.document(c) },
	}}
}

// document returns the current set, rendered once per change.
func (p *published) document(c *admin.Call) (*admin.Document, error) {
	text, err := p.Keys.Set(c.Context)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made == nil || !bytes.Equal(p.text, text) {
		made, err := admin.NewDocument(text)
		if err != nil {
			return nil, err
		}
		p.text, p.made = text, made
	}
	return p.made, nil
}
