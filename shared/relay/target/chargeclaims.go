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

// ChargeClaims are the claims at a target to charge a provider's background work: each is charged by
// exactly one request.
type ChargeClaims struct{ Target *Target }

// ChargeClaims returns the claims at the target.
func (tg *Target) ChargeClaims() ChargeClaims { return ChargeClaims{tg} }

// Claim reports whether this request is the first to see the end of a provider's background
// work. After an error another request may be the first.
func (b ChargeClaims) Claim(id string) (first bool, err error) {
	sc, places := b.places()
	if first, err = b.Target.Deps.Owners.ClaimAt(b.Target.Req.Base, sc, places, id, b.Target.Req.ULID); err != nil {
		b.Target.Req.Fail("claim booking", err)
	}
	return first, err
}

// Poll has a background response polled until it is charged.
func (b ChargeClaims) Poll(id string) { b.Target.Deps.Poll(b, id) }

// PathOfLooks returns the path by which an interaction or a video is read: the same credential
// and host that created it also read it. It is empty for a response, and for objects that are
// not read by GET.
func (b ChargeClaims) PathOfLooks(id string) string {
	if b.Target.Req.Route.BodyMode != routes.Raw {
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
func (b ChargeClaims) At() (organisation bool, place string) {
	_, places := b.places()
	return b.Target.Choice.Saved != nil, places[0]
}

// Claimed reports whether the work under an id was charged.
func (b ChargeClaims) Claimed(id string) (bool, error) {
	sc, places := b.places()
	for _, place := range places {
		if claimed, err := b.Target.Deps.Owners.Claimed(b.Target.Req.Ctx, sc, place, id); claimed || err != nil {
			return claimed, err
		}
	}
	return false, nil
}

// places returns the scope and the places of such claims: the credential's, which several
// integrations may share, then the integration's, which holds older claims and outlives a change
// of the credential. Work done with a caller's own credential is claimed in the caller's
// workspace.
func (b ChargeClaims) places() (sc store.Scope, places []string) {
	if b.Target.Choice.Saved == nil {
		return b.Target.Req.Principal.Scope, []string{broughtPlace(&b.Target.Choice.Target)}
	}
	places = append(places, b.Target.Choice.Isolation.Places...)
	if own := b.Target.Choice.Saved.IntegrationID; !slices.Contains(places, own) {
		places = append(places, own)
	}
	return b.Target.Req.Principal.Scope.Organisation(), places
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

// StoreReservations stores the reservations for work that continues under an id; LoadReservations returns them.
func (b ChargeClaims) StoreReservations(id string, held []byte) error {
	sc, places := b.places()
	return b.Target.Deps.Owners.StoreReservations(b.Target.Req.Base, sc, places, id, held)
}

// StoreOrder stores a video that was ordered under an id; Order returns it.
func (b ChargeClaims) StoreOrder(id string, v ownership.Order) error {
	sc, places := b.places()
	return ownership.StoreOrder(b.Target.Req.Base, b.Target.Deps.Owners, sc, places, id, v)
}

// Order returns what StoreOrder has stored for an id; ok is false if it has stored nothing.
func (b ChargeClaims) Order(id string) (v ownership.Order, ok bool, err error) {
	sc, places := b.places()
	return ownership.FindOrder(b.Target.Req.Ctx, b.Target.Deps.Owners, sc, places, id)
}

// StoreTurn stores the size of a response that a later request may continue by its id.
func (b ChargeClaims) StoreTurn(id string, t ownership.Turn) error {
	sc, places := b.places()
	return ownership.StoreTurn(b.Target.Req.Base, b.Target.Deps.Owners, sc, places[0], id, t)
}

// LoadTurn returns what StoreTurn has stored for an id; ok is false if it has stored nothing.
func (b ChargeClaims) LoadTurn(id string) (t ownership.Turn, ok bool, err error) {
	sc, places := b.places()
	return ownership.FindTurn(b.Target.Req.Ctx, b.Target.Deps.Owners, sc, places[0], id)
}

// LoadReservations returns what StoreReservations has stored for an id; nil if it has stored nothing.
func (b ChargeClaims) LoadReservations(id string) ([]byte, error) {
	sc, places := b.places()
	return b.Target.Deps.Owners.LoadReservations(b.Target.Req.Base, sc, places, id)
}
