package apikeys

import (
	"time"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/resource"
)

// secretSchema is the answer that shows a raw key.
var secretSchema = admin.Closed(map[string]admin.Schema{
	"id": {"type": "string"}, "key": {"type": "string"}, "key_transition_expires_at": {"type": []string{"string", "null"}, "format": "date-time"},
})

func (f *family) rotateRoute() admin.Route {
	return admin.Route{
		Method: "POST", Path: "/api-keys/{id}/rotate", Name: "rotateApiKey",
		Doc:    "Give the key a new secret; the old one works until key_transition_expires_at.",
		Scopes: append(anyOf("rotate"), anyOf("update")...), Where: admin.InEither, Role: admin.Member,
		Body: []admin.Field{{
			Name: "key_transition_period_ms", Doc: "How long old and new secret are both valid, for this time.",
			Type: admin.Integer, Min: identity.MinTransition.Milliseconds(), Max: maxTransition,
		}},
		BodyMode: admin.OptionalBody, Action: audit.Rotate, Resource: "api_keys", Errors: []int{409}, Do: f.keys.At("rotate", f.rotate),
		Answer: secretSchema,
	}
}

// rotate gives a key a new secret. Id, limits and usage stay.
func (f *family) rotate(c *admin.Call) (any, error) {
	var raw string
	var until time.Time
	err := c.Change(func(tx *resource.Tx) error {
		it, err := f.keys.FindIn(c, tx)
		if err != nil {
			return err
		}
		rec, k := it.Record, it.Form
		if identity.Live(rec.Status, k, c.Now) != identity.StatusActive {
			return fault.New(fault.Conflict, "id", "an expired key cannot be rotated; change its expires_at first")
		}
		transition := k.Rotation.Transition()
		if ms := c.Body.Int("key_transition_period_ms"); ms > 0 {
			transition = time.Duration(ms) * time.Millisecond
		}
		if !k.Rotation.AllowsTransition(transition) {
			return fault.Invalid("key_transition_period_ms", "must be less than the rotation period")
		}
		if err := withinOwnRights(c, k.Scopes, nil); err != nil && c.Caller.KeyID != rec.ID {
			return err // its answer is a key with these rights
		}
		if err := rec.SetSecret(c.Context, c.Sealer, identity.UncollectedSecret, nil); err != nil {
			return err
		}
		was := *k
		if raw, err = identity.Rotate(k, c.Now, transition); err != nil {
			return err
		}
		until = *k.Previous.ExpiresAt
		c.AuditDetails(map[string]string{
			"api_key_id": rec.ID, "rotation_mode": "manual", "old_key_masked": was.Secret.Masked, "transition_expires_at": until.UTC().Format(time.RFC3339),
		})
		if err := f.keys.Save(c, tx, it); err != nil {
			return err
		}
		if err := identity.Reschedule(tx, rec.Ref(), &was, k); err != nil {
			return err
		}
		return stage(c, tx, &change{Rec: rec, Form: k})
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"id": c.Param("id"), "key": raw, "key_transition_expires_at": admin.FormatTime(until)}, nil
}

func (f *family) collectRoute() admin.Route {
	return admin.Route{
		Method: "POST", Path: "/api-keys/{id}/collect", Name: "collectApiKey",
		Doc:    "Hand out, once, the secret that an automatic rotation has given the key. 404 when none waits.",
		Scopes: append(anyOf("rotate"), anyOf("update")...), Where: admin.InEither, Role: admin.Member,
		BodyMode: admin.OptionalBody, Action: audit.Rotate, Resource: "api_keys", Errors: []int{404}, Do: f.keys.At("rotate", f.collect),
		Answer: secretSchema,
	}
}

// collect hands out the secret of the last automatic rotation and forgets it.
func (f *family) collect(c *admin.Call) (any, error) {
	var raw []byte
	var until *time.Time
	err := c.Change(func(tx *resource.Tx) error {
		it, err := f.keys.FindIn(c, tx)
		if err != nil {
			return err
		}
		rec, k := it.Record, it.Form
		if err := withinOwnRights(c, k.Scopes, nil); err != nil && c.Caller.KeyID != rec.ID {
			return err
		}
		if !rec.HasSecret(identity.UncollectedSecret) {
			return fault.New(fault.NotFound, "id", "no secret of an automatic rotation waits to be collected")
		}
		secrets, err := rec.OpenSecrets(c.Context, c.Sealer)
		if err != nil {
			return fault.Unavailable(err)
		}
		raw = secrets[identity.UncollectedSecret]
		if err := rec.SetSecret(c.Context, c.Sealer, identity.UncollectedSecret, nil); err != nil {
			return err
		}
		if k.Previous != nil {
			until = k.Previous.ExpiresAt
		}
		return tx.Update(rec)
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"id": c.Param("id"), "key": string(raw), "key_transition_expires_at": timeOf(until)}, nil
}
