package target

import (
	"net/url"
	"slices"
	"strings"

	"gateway/shared/dialect/reference"
	"gateway/shared/provider"
	"gateway/shared/relay/body"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/routes"
	"gateway/shared/store"
)

// Bookings are the claims at a target to charge a provider's background work: each is charged by
// exactly one request.
type Bookings struct{ Target *Target }

// Bookings returns the claims at the target.
func (tg *Target) Bookings() Bookings { return Bookings{tg} }

// Claim reports whether this request is the first to see the end of a provider's background
// work. After an error another request may be the first.
func (b Bookings) Claim(id string) (first bool, err error) {
	sc, places := b.places()
	if first, err = b.Target.Means.Owners.ClaimAt(b.Target.Req.Base, sc, places, id, b.Target.Req.ULID); err != nil {
		b.Target.Req.Fail("claim booking", err)
	}
	return first, err
}

// Await has a background response polled until it is charged.
func (b Bookings) Await(id string) { b.Target.Means.Await(b, id) }

// PathOfLooks returns the path by which an interaction or a video is read: the same credential
// and host that created it also read it. It is empty for a response, and for objects that are
// not read by GET.
func (b Bookings) PathOfLooks(id string) string {
	if b.Target.Req.Route.Shape != routes.Raw {
		return ""
	}
	if path := b.Target.Body.RawPath(); body.OrdersVideo(path) {
		if path = body.PathOfJob(path, url.PathEscape(id)); path != "" {
			return "/proxy" + path
		}
		return ""
	}
	if b.Target.Body.StoredPath().Collection != "interactions" {
		return ""
	}
	return "/proxy" + strings.TrimSuffix(b.Target.Body.RawPath(), "/") + "/" + url.PathEscape(id)
}

// At returns where a claim is stored: at which place, and whether for the organization or only
// for the workspace.
func (b Bookings) At() (organisation bool, place string) {
	_, places := b.places()
	return b.Target.To.Saved != nil, places[0]
}

// Claimed reports whether the work under an id was charged.
func (b Bookings) Claimed(id string) (bool, error) {
	sc, places := b.places()
	for _, place := range places {
		if claimed, err := b.Target.Means.Owners.Claimed(b.Target.Req.Ctx, sc, place, id); claimed || err != nil {
			return claimed, err
		}
	}
	return false, nil
}

// places returns the scope and the places of such claims: the credential's, which several
// integrations may share, then the integration's, which holds older claims and outlives a change
// of the credential. Work done with a caller's own credential is claimed in the caller's
// workspace.
func (b Bookings) places() (sc store.Scope, places []string) {
	if b.Target.To.Saved == nil {
		return b.Target.Req.Who.Scope, []string{broughtPlace(&b.Target.To.Target)}
	}
	places = append(places, b.Target.To.Wall.Places...)
	if own := b.Target.To.Saved.IntegrationID; !slices.Contains(places, own) {
		places = append(places, own)
	}
	return b.Target.Req.Who.Scope.Organisation(), places
}

// broughtPlace returns the place for work done with a caller's own credential: the provider, and
// its host if that is not the provider's usual one. Otherwise a caller could report from its own
// host that work at another host has failed.
func broughtPlace(t *provider.Target) string {
	host := func(t *provider.Target) string {
		raw, err := t.PassthroughURL("/", "")
		if err != nil {
			return ""
		}
		u, err := url.Parse(raw)
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(strings.ToLower(u.Host), ":443")
	}
	at := host(t)
	if at == host(&provider.Target{Provider: t.Provider}) {
		return t.Provider.ID
	}
	return t.Provider.ID + "-" + reference.Hash(at)
}

// Hold stores the reservations for work that continues under an id; Held returns them.
func (b Bookings) Hold(id string, held []byte) error {
	sc, places := b.places()
	return b.Target.Means.Owners.Hold(b.Target.Req.Base, sc, places, id, held)
}

// NoteOrder stores a video that was ordered under an id; Order returns it.
func (b Bookings) NoteOrder(id string, v ownership.Order) error {
	sc, places := b.places()
	return ownership.NoteOrder(b.Target.Req.Base, b.Target.Means.Owners, sc, places, id, v)
}

// Order returns what NoteOrder has stored for an id; ok is false if it has stored nothing.
func (b Bookings) Order(id string) (v ownership.Order, ok bool, err error) {
	sc, places := b.places()
	return ownership.FindOrder(b.Target.Req.Ctx, b.Target.Means.Owners, sc, places, id)
}

// NoteTurn stores the size of a response that a later request may continue by its id.
func (b Bookings) NoteTurn(id string, t ownership.Turn) error {
	sc, places := b.places()
	return ownership.NoteTurn(b.Target.Req.Base, b.Target.Means.Owners, sc, places[0], id, t)
}

// Turn returns what NoteTurn has stored for an id; ok is false if it has stored nothing.
func (b Bookings) Turn(id string) (t ownership.Turn, ok bool, err error) {
	sc, places := b.places()
	return ownership.FindTurn(b.Target.Req.Ctx, b.Target.Means.Owners, sc, places[0], id)
}

// Held returns what Hold has stored for an id; nil if it has stored nothing.
func (b Bookings) Held(id string) ([]byte, error) {
	sc, places := b.places()
	return b.Target.Means.Owners.Held(b.Target.Req.Base, sc, places, id)
}
