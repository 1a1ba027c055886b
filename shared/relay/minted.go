package relay

import (
	"bytes"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/target"
	"gateway/shared/route"
)

// mint responds with a client secret. The objects that the secret refers to must exist now; each
// session is admitted again.
func mint(c *call) error {
	leaf, f := c.plan.Walker.Next(route.Outcome{})
	switch {
	case f != nil:
		return f
	case leaf == nil:
		return fault.New(fault.InvalidConfig, "x-gateway-config", "No provider selected, please check the weights")
	}
	fresh(c)
	if err := target.Choose(&c.target, leaf); err != nil {
		return err
	}
	if s := c.target.To.Saved; s != nil && c.body.Minting.Transcription != "" {
		if err := s.Allows(c.body.Minting.Transcription); err != nil {
			return err
		}
	}
	s, err := c.body.Minting.Secret()
	if err != nil {
		return err
	}
	s.Key, s.Headers = c.req.KeyHash(), admission.Bind(c.req.HeadersForProvider(), c.req.Ask.Forward)
	s.Until = c.relay.Now().Add(c.body.Minting.TTL).Truncate(time.Second)
	if ends := c.req.Who.Until; !ends.IsZero() {
		if ends.Before(s.Until) {
			s.Until = ends
		}
		if err := c.relay.Auth.Entrust(c.req.Ctx, c.req.Who, s.Key, ends); err != nil {
			return err
		}
	}
	raw, err := c.relay.ephemeral.Keep(c.req.Ctx, c.req.Who.Scope, s)
	if err != nil {
		return err
	}
	body, err := c.body.Minting.Answer(raw, "sess_"+c.req.ULID, s.Until)
	if err != nil {
		return err
	}
	sendHidden(c, body, bytes.ReplaceAll(body, []byte(raw), []byte("ek_*****")))
	return nil
}
