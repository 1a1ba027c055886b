package target

import (
	"math/rand/v2"
	"net/http"

	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/route/rotation"
	"gateway/shared/route/saved"
)

// rotating is the choice among several credentials of a target. The zero value has none.
type rotating struct {
	ring     *rotation.Ring
	list     []rotation.Entry
	at       int
	tried    rotation.Set
	rejected rotation.Set // with 401, and no other one was accepted since
}

// rotated chooses the credential of a saved provider.
func rotated(tg *Target, s *saved.Provider, opened *saved.OpenCredential) (*provider.Credential, error) {
	if len(opened.Credentials) == 0 {
		return opened.Credential, nil
	}
	r := rotating{ring: tg.Deps.Rotation.Of(tg.Req.Ctx, s.IntegrationScope(), s.IntegrationID), list: opened.Credentials}
	var ok bool
	if r.at, ok = r.ring.Pick(r.list, 0, rand.Uint32()); !ok {
		f := fault.Newf(fault.ProviderError, "provider", "The provider rejected all %d credentials of @%s with 401; save new keys, or save the same ones again", len(r.list), s.Slug)
		f.StatusCode = http.StatusUnauthorized
		return nil, f
	}
	tg.Choice.rotates = r
	tg.Choice.Names.Credential = r.list[r.at].Label
	return r.list[r.at].Credential, nil
}

// CredentialAnswered records the status of a response for the target's credential.
//
// A 401 alone is not recorded: a caller can cause one with a header, or with a path that
// needs another kind of key, and every credential of the list would become unusable for
// all callers. It is recorded once another credential was accepted for the same request.
func CredentialAnswered(tg *Target, status int, h http.Header) {
	if status == http.StatusUnauthorized {
		tg.CredentialRefused()
	}
	r := &tg.Choice.rotates
	if r.ring == nil || tg.Req.DryRun {
		return
	}
	switch {
	case status == http.StatusUnauthorized:
		r.rejected = r.rejected.Add(r.at)
	case status == http.StatusTooManyRequests:
		named, _ := fault.ParseRetryAfter(h, tg.Req.Now(), rotation.MostRest)
		r.ring.Limit(r.list[r.at].ID, named)
	case status >= 200 && status <= 299:
		r.ring.Succeed(r.list[r.at].ID)
		for i := range r.list {
			if i != r.at && r.rejected.Has(i) {
				r.ring.MarkRejected(tg.Req.Ctx, r.list[i].ID)
			}
		}
		r.rejected = 0
	}
}

// Rotates reports whether a response with this status may be followed by a call with another
// credential of the target.
func Rotates(tg *Target, status int) bool {
	return tg.Choice.rotates.ring != nil && (status == http.StatusUnauthorized || status == http.StatusTooManyRequests)
}

// NextCredential selects another credential of the target after a response with 401 or 429. It
// returns false if no usable credential is left that was not tried for this request.
func NextCredential(tg *Target, status int) bool {
	if !Rotates(tg, status) {
		return false
	}
	r := &tg.Choice.rotates
	r.tried = r.tried.Add(r.at)
	at, ok := r.ring.Pick(r.list, r.tried, rand.Uint32())
	if !ok {
		return false
	}
	r.at = at
	tg.Choice.Target.Credential = *r.list[at].Credential
	tg.Choice.Names.Credential = r.list[at].Label
	return true
}

// Keys appends the keys of a target with several credentials, since earlier calls of the request
// may have used another one.
func Keys(tg *Target, dst []string) []string {
	for i := range tg.Choice.rotates.list {
		t := provider.Target{Credential: provider.Credential{Key: tg.Choice.rotates.list[i].Key}}
		dst = t.Secrets(dst, false)
	}
	return dst
}
