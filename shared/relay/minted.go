package relay

import (
	"bytes"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay/ephemeral"
	"gateway/shared/route"
)

// mint answers with a client secret. What the secret will open must exist now; each session
// is admitted again.
func (c *call) mint() error {
	leaf, f := c.Walker.Next(route.Outcome{})
	switch {
	case f != nil:
		return f
	case leaf == nil:
		return fault.New(fault.InvalidConfig, "x-gateway-config", "No provider selected, please check the weights")
	}
	c.fresh()
	if err := c.Choose(leaf); err != nil {
		return err
	}
	if s := c.To.Saved; s != nil && c.Minting.Transcription != "" {
		if err := s.Allows(c.Minting.Transcription); err != nil {
			return err
		}
	}
	s, err := c.Minting.Secret()
	if err != nil {
		return err
	}
	s.Key, s.Headers = c.KeyHash(), ephemeral.Bind(c.HeadersForProvider(), c.Ask.Forward)
	s.Until = c.Now().Add(c.Minting.TTL).Truncate(time.Second)
	if ends := c.Who.Until; !ends.IsZero() {
		if ends.Before(s.Until) {
			s.Until = ends
		}
		if err := c.Auth.Entrust(c.Ctx, c.Who, s.Key, ends); err != nil {
			return err
		}
	}
	raw, err := c.Relay.ephemeral.Keep(c.Ctx, c.Who.Scope, s)
	if err != nil {
		return err
	}
	body, err := c.Minting.Answer(raw, "sess_"+c.ULID, s.Until)
	if err != nil {
		return err
	}
	c.sendHidden(body, bytes.ReplaceAll(body, []byte(raw), []byte("ek_*****")))
	return nil
}
