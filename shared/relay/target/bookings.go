package target

import (
	"net/url"
	"slices"
	"strings"

	"gateway/shared/dialect/reference"
	"gateway/shared/provider"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/units"
	"gateway/shared/store"
)

// Bookings are the claims, at a target, for the books of what a provider does in its own
// time: each is booked by one request alone.
type Bookings struct{ Target *Target }

// Bookings are those at the target.
func (tg *Target) Bookings() Bookings { return Bookings{tg} }

// Claim reports whether this request is the first to see the end of what a provider did in
// its own time. After an error another request may be the first.
func (b Bookings) Claim(id string) (first bool, err error) {
	sc, places := b.places()
	if first, err = b.Target.Means.Owners.ClaimAt(b.Target.Req.Base, sc, places, id, b.Target.Req.ULID); err != nil {
		b.Target.Req.Fail("claim booking", err)
	}
	return first, err
}

// Await has a response that is made in the background asked for until it is booked.
func (b Bookings) Await(id string) { b.Target.Means.Await(b, id) }

// PathOfLooks returns the path by which an interaction or a video is read: what led to its making
// leads to it, too. It is empty for a response, and for what is not read by GET.
func (b Bookings) PathOfLooks(id string) string {
	if b.Target.Req.Route.Shape != routes.Raw {
		return ""
	}
	if path := b.Target.Body.RawPath(); units.OrdersVideo(path) {
		if path = units.PathOfJob(path, url.PathEscape(id)); path != "" {
			return "/proxy" + path
		}
		return ""
	}
	if b.Target.Body.KeptPath().Collection != "interactions" {
		return ""
	}
	return "/proxy" + strings.TrimSuffix(b.Target.Body.RawPath(), "/") + "/" + url.PathEscape(id)
}

// At tells where a claim for the books is kept: at which place, and whether for the
// organisation or for the workspace alone.
func (b Bookings) At() (organisation bool, place string) {
	_, places := b.places()
	return b.Target.To.Saved != nil, places[0]
}

// Claimed tells whether what was done under an id stands in the books.
func (b Bookings) Claimed(id string) (bool, error) {
	sc, places := b.places()
	for _, place := range places {
		if claimed, err := b.Target.Means.Owners.Claimed(b.Target.Req.Ctx, sc, place, id); claimed || err != nil {
			return claimed, err
		}
	}
	return false, nil
}

// places are the scope and the places of such claims: below the credential, which several
// integrations may hold, then below the integration, where older claims stand and which
// outlives a change of the credential. What is made with a credential of the caller's own
// is claimed in the caller's workspace.
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

// broughtPlace returns the place of what is made with a credential of the caller's own: the
// provider, and its host if that is not the provider's usual one. Otherwise a caller could answer
// from a host of its own that work at another host has failed.
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

// Hold stores what budgets hold for work that goes on under an id; Held returns it.
func (b Bookings) Hold(id string, held []byte) error {
	sc, places := b.places()
	return b.Target.Means.Owners.Hold(b.Target.Req.Base, sc, places, id, held)
}

// NoteOrder stores a video that was ordered under an id; Order returns it.
func (b Bookings) NoteOrder(id string, v kept.Order) error {
	sc, places := b.places()
	return kept.NoteOrder(b.Target.Req.Base, b.Target.Means.Owners, sc, places, id, v)
}

// Order returns what NoteOrder has stored for an id; ok is false if it has stored nothing.
func (b Bookings) Order(id string) (v kept.Order, ok bool, err error) {
	sc, places := b.places()
	return kept.FindOrder(b.Target.Req.Ctx, b.Target.Means.Owners, sc, places, id)
}

// NoteTurn stores what a response amounts to that a later request may continue by its id.
func (b Bookings) NoteTurn(id string, t kept.Turn) error {
	sc, places := b.places()
	return kept.NoteTurn(b.Target.Req.Base, b.Target.Means.Owners, sc, places[0], id, t)
}

// Turn returns what NoteTurn has stored for an id; ok is false if it has stored nothing.
func (b Bookings) Turn(id string) (t kept.Turn, ok bool, err error) {
	sc, places := b.places()
	return kept.FindTurn(b.Target.Req.Ctx, b.Target.Means.Owners, sc, places[0], id)
}

// Held returns what Hold has stored for an id; nil if nothing was.
func (b Bookings) Held(id string) ([]byte, error) {
	sc, places := b.places()
	return b.Target.Means.Owners.Held(b.Target.Req.Base, sc, places, id)
}
