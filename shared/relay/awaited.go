package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"gateway/shared/relay/admission"
	"gateway/shared/relay/batch"
	"gateway/shared/relay/target"
	"gateway/shared/store"
)

// await has a background response polled until it has ended, so that it is charged even if its
// client never reads it. The message is queued before the client gets the response's id.
func (r *Relay) await(b target.Bookings, id string) {
	if r.Runs == nil {
		return
	}
	ctx := b.Target.Req.Base // the provider continues even if the client disconnects
	hash := b.Target.Req.KeyHash()
	a := &batch.Awaited{
		ID: id, Key: hash, Headers: headersOfLooks(b.Target), Made: b.Target.Req.Now().Unix(),
		Maker: batch.Maker{KeyID: b.Target.Req.Who.KeyID, Type: string(b.Target.Req.Who.Type), User: b.Target.Req.Who.UserID, Slug: b.Target.Req.Who.WorkspaceSlug},
	}
	a.Org, a.Place = b.At()
	a.Path = b.PathOfLooks(id)
	err := r.Auth.Entrust(ctx, b.Target.Req.Who, hash, b.Target.Req.Now().Add(batch.AwaitedFor))
	if err == nil {
		message, failed := r.batches.Await(ctx, b.Target.Req.Who.Scope, a)
		if err = failed; err == nil {
			err = r.Runs.Send(ctx, message)
		}
	}
	b.Target.Req.Fail("await a background response", err)
}

// headersOfLooks returns the headers that route a later read to the provider of the background
// response: they name the saved provider, even if a config chose it; with a credential of the
// client's own they are the client's headers.
func headersOfLooks(tg *target.Target) http.Header {
	out := make(http.Header)
	from := tg.Req.HeadersForProvider()
	if tg.To.Saved != nil {
		out[admission.Provider] = []string{"@" + tg.To.Saved.Slug}
	} else {
		for name, v := range from {
			if leadsOn(name) {
				out[name] = v
			}
		}
		for _, name := range tg.Req.Ask.Forward {
			if v := from[name]; len(v) > 0 {
				out[name] = v
			}
		}
	}
	for _, name := range [...]string{"X-Gateway-Debug", "X-Gateway-Sensitive-Headers"} {
		if v := from[name]; len(v) > 0 {
			out[name] = v
		}
	}
	out.Set(admission.TraceID, tg.Req.Ask.TraceID)
	out.Set(admission.ParentSpanID, cmp.Or(tg.Req.Ask.SpanID, tg.Req.ULID))
	if len(tg.Body.Metadata) > 0 {
		b, _ := json.Marshal(tg.Body.Metadata) // texts
		out.Set(admission.Metadata, string(b))
	}
	return out
}

// leadsOn reports whether a header of a client affects the choice of the provider or of the
// account.
func leadsOn(name string) bool {
	switch name {
	case "X-Gateway-Api-Key", "X-Gateway-Span-Id", "X-Gateway-Request-Timeout", admission.Translation:
		return false
	case "Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Openai-Organization", "Openai-Project":
		return true
	}
	return strings.HasPrefix(name, "X-Gateway-")
}

// Charged reports whether an awaited response was charged.
func (m *Mux) Charged(ctx context.Context, sc store.Scope, a *batch.Awaited) (bool, error) {
	if a.Org {
		sc = sc.Organisation()
	}
	return m.relay.owners.Claimed(ctx, sc, a.Place, a.ID)
}

// Settler returns the principal for polling an awaited response: the key that created it, even
// if it is no longer valid, because the money is spent.
func (m *Mux) Settler(ctx context.Context, sc store.Scope, a *batch.Awaited) (*Behalf, error) {
	closing, _, err := m.Admits(ctx, sc, a.Key, &a.Maker)
	if err != nil {
		return nil, err
	}
	return &Behalf{Key: a.Key, Closing: closing, Settling: true}, nil
}
