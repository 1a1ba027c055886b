package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/seal/hostpin"
	"gateway/shared/store"
	"gateway/shared/tenant/upstream"
)

// Configuration is how an agent is called. Its members are stored one by one: an
// update names those that it changes.
type Configuration struct {
	Headers        map[string]string `json:"headers,omitempty" max:"50" each:"max=8192" doc:"Sent with each call."`
	ForwardHeaders *upstream.Forward `json:"forward_headers,omitempty" doc:"Which of a client's headers go to the agent."`
	// PushNotifications: what the agent pushes does not pass through the gateway.
	PushNotifications bool `json:"push_notifications,omitempty" doc:"Clients may have the agent push to public addresses of theirs."`
}

const confHeaders = "headers"

var secretsOf = upstream.Secrets{confHeaders: nil}

// Configure checks the members that are changed, seals the secret ones into rec and keeps
// the rest.
func (i *Integration) Configure(ctx context.Context, s seal.Sealer, rec *resource.Record, ch upstream.Change) error {
	sent := new(Configuration)
	if err := upstream.Open(ch.Members, nil, sent); err != nil {
		return fault.Invalid("configurations", "does not have the expected form")
	}
	next, err := ch.Apply(ctx, s, rec, i.Configurations, secretsOf, func() []fault.Detail {
		return upstream.CheckHeaders(upstream.Prefix+confHeaders, sent.Headers)
	})
	if err == nil {
		i.Configurations = next
	}
	return err
}

// Addresses returns the host that the headers are sent to, before and after a change. was is
// the zero Integration for a new one.
func (i *Integration) Addresses(was *Integration) []hostpin.Address {
	return []hostpin.Address{{Field: "url", Was: was.URL, Now: i.URL, Open: true, Secrets: []string{upstream.Prefix + confHeaders}}}
}

// Configuration reads the stored members and puts the sealed ones in their places. sealed
// is what Record.OpenSecrets gives; without it secrets are masked.
func (i *Integration) Configuration(sealed map[string][]byte) (*Configuration, error) {
	c := new(Configuration)
	return c, upstream.Open(i.Configurations, sealed, c)
}

// Check tells which members are out of bounds and which do not go together, once the
// configurations are in place.
func (i *Integration) Check() []fault.Detail {
	bad := append(bound.Check(i), i.Access.Validate()...)
	c, err := i.Configuration(nil)
	if err != nil {
		return append(bad, fault.Detail{Field: "configurations", Message: "does not have the expected form"})
	}
	if i.AuthType == AuthHeaders && len(c.Headers) == 0 && len(i.SecretMappings) == 0 {
		bad = append(bad, fault.Detail{Field: "configurations.headers", Message: "is required with auth_type headers, unless secret_mappings fill it"})
	}
	if strings.Contains(i.URL, "#") {
		bad = append(bad, fault.Detail{Field: "url", Message: "must not have a fragment"})
	}
	return bad
}

// Pushes tells whether clients may have the agent push.
func (i *Integration) Pushes() bool { return string(i.Configurations["push_notifications"]) == "true" }

// CheckMappings gives what is wrong with the targets of secret mappings.
func CheckMappings(list []provider.SecretMapping) (bad []fault.Detail) {
	var seen []string
	for n, m := range list {
		at := fmt.Sprintf("secret_mappings[%d].target_field", n)
		if m.TargetField != upstream.Prefix+confHeaders && !strings.HasPrefix(m.TargetField, upstream.Prefix+confHeaders+".") {
			bad = append(bad, fault.Detail{Field: at, Message: "must be configurations.headers, or configurations.headers.<name>"})
		}
		if slices.Contains(seen, m.TargetField) {
			bad = append(bad, fault.Detail{Field: at, Message: "is mapped twice"})
		}
		seen = append(seen, m.TargetField)
	}
	return bad
}

// Opener gives the headers that agents are called with.
type Opener struct {
	Sealer  seal.Sealer
	Via     http.RoundTripper
	Secrets *provider.Loaded // nil: integrations with secret mappings cannot be called
}

// Open gives the headers of each call of an integration, which is used in a workspace
// or by the organisation.
func (o *Opener) Open(ctx context.Context, rec *resource.Record, in store.Scope) (*Integration, http.Header, error) {
	i, err := DecodeIntegration(*rec)
	if err != nil {
		return nil, nil, err
	}
	sealed, err := rec.OpenSecrets(ctx, o.Sealer)
	if err != nil {
		return nil, nil, err
	}
	c, err := i.Configuration(sealed)
	if err != nil {
		return nil, nil, err
	}
	h := http.Header{}
	for name, v := range c.Headers {
		h.Set(name, v)
	}
	return i, h, o.fill(ctx, in, i, h)
}

// fill puts the values of secret mappings into headers.
func (o *Opener) fill(ctx context.Context, in store.Scope, i *Integration, h http.Header) error {
	if len(i.SecretMappings) == 0 {
		return nil
	}
	if o.Secrets == nil {
		return upstream.Fail(0, "the agent's credentials are in a secret manager, which is not reached from here")
	}
	values, err := o.Secrets.Values(ctx, in, i.SecretMappings)
	if err != nil {
		return upstream.Unresolved(err)
	}
	for _, m := range i.SecretMappings {
		all := map[string]string{}
		if name, one := strings.CutPrefix(m.TargetField, upstream.Prefix+confHeaders+"."); one {
			all[name] = values[m.TargetField]
		} else if json.Unmarshal([]byte(values[m.TargetField]), &all) != nil {
			return upstream.Fail(0, "a secret of the agent's credentials does not have the form of its field")
		}
		if len(upstream.CheckHeaders(confHeaders, all)) > 0 {
			return upstream.Fail(0, "a secret of the agent's credentials is no header that can be sent")
		}
		for name, v := range all {
			h.Set(name, v)
		}
	}
	return nil
}

// Card fetches the card of an integration's agent. When the agent refuses the credentials,
// those of secret managers are read again, once.
func (o *Opener) Card(ctx context.Context, rec *resource.Record, in store.Scope) (json.RawMessage, error) {
	card, err := o.card(ctx, rec, in)
	var failed *upstream.Failure
	if o.Secrets == nil || !errors.As(err, &failed) || failed.Status != http.StatusUnauthorized {
		return card, err
	}
	i, decoded := DecodeIntegration(*rec)
	if decoded != nil || len(i.SecretMappings) == 0 {
		return card, err
	}
	o.Secrets.Doubt(ctx, in, i.SecretMappings)
	return o.card(ctx, rec, in)
}

func (o *Opener) card(ctx context.Context, rec *resource.Record, in store.Scope) (json.RawMessage, error) {
	i, headers, err := o.Open(ctx, rec, in)
	if err != nil {
		return nil, err
	}
	return Fetch(ctx, o.Via, i.URL, headers, provider.MappedHeaders(i.SecretMappings))
}
