package chosen

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/routes"
	"gateway/shared/store"
)

// Wall keeps what workspaces made at a provider apart: see kept.Owners.
type Wall struct {
	*Target
}

// ClaimBooking tells whether this request is the first to see the end of what a
// provider did in its own time.
func (o *Wall) ClaimBooking(id string) bool {
	first, _ := o.claim(id)
	return first
}

// ClaimedByOther claims the booking as well, and tells whether another request surely
// was the first.
func (o *Wall) ClaimedByOther(id string) bool {
	first, err := o.claim(id)
	return !first && err == nil
}

func (o *Wall) claim(id string) (first bool, err error) {
	sc, places := o.booked()
	if first, err = o.Means.Owners.ClaimAt(o.Base, sc, places, id, o.ULID); err != nil {
		o.Fail("claim booking", err)
	}
	return first, err
}

// Await has a response that is made in the background asked for until it is booked.
func (o *Wall) Await(id string) { o.Means.Await(o, id) }

// PathOfLooks is the path by which an interaction is read: what led to its making leads to
// it, too. "" for a response.
func (o *Wall) PathOfLooks(id string) string {
	if o.Route.Shape != routes.Raw || o.KeptPath().Collection != "interactions" {
		return ""
	}
	return "/proxy" + strings.TrimSuffix(o.RawPath(), "/") + "/" + url.PathEscape(id)
}

// BookedAt tells where a claim for the books is kept: at which place, and whether for the
// organisation or for the workspace alone.
func (o *Wall) BookedAt() (organisation bool, place string) {
	_, places := o.booked()
	return o.To.Saved != nil, places[0]
}

// BatchClaimed tells whether the usage of a batch stands in the books.
func (o *Wall) BatchClaimed(id string) (bool, error) {
	sc, places := o.booked()
	for _, place := range places {
		if claimed, err := o.Means.Owners.Claimed(o.Ctx, sc, place, id); claimed || err != nil {
			return claimed, err
		}
	}
	return false, nil
}

// booked is the scope and the places of such claims: below the credential, which several
// integrations may hold, then below the integration, where older claims stand and which
// outlives a change of the credential. What is made with a credential of the caller's own
// is claimed in the caller's workspace.
func (o *Wall) booked() (sc store.Scope, places []string) {
	if o.To.Saved == nil {
		return o.Who.Scope, []string{o.To.Target.Provider.ID}
	}
	places = append(places, o.To.Wall.Places...)
	if own := o.To.Saved.IntegrationID; !slices.Contains(places, own) {
		places = append(places, own)
	}
	return o.Who.Scope.Organisation(), places
}

// UsedLater is what the answer is charged that creates a response which ends later: what it
// tells of its usage, if nobody has booked that yet.
func (o *Wall) UsedLater(m chat.Meter) (u pricing.Usage) {
	if !m.Usage.Known() || m.ID == "" || len(m.ID) > kept.MaxID || !o.ClaimBooking(m.ID) {
		return u
	}
	return m.Usage
}

// Holds tells whether a raw answer is read whole before it is sent, because it
// makes things known or is a list that must be divided.
func (o *Wall) Holds(resp *http.Response) bool {
	if resp.StatusCode < 200 || resp.StatusCode > 299 || !o.keeps() {
		return false
	}
	s := o.KeptPath()
	if s.Collection == "" {
		return false
	}
	if o.Filtered() {
		return true
	}
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") && (o.Req.Method == http.MethodPost || !s.Below)
}

// Watch makes a watcher for answers that need one.
func (o *Wall) Watch(resp *http.Response) *kept.Watcher {
	if !o.keeps() || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return nil
	}
	sound := o.Req.Method == http.MethodPost && o.KeptPath().Collection == "chat/completions" && kept.AsksSound(o.In)
	if !o.makes() && !sound {
		return nil
	}
	return kept.Watch(o.makes(), sound, o.keepIDs)
}
